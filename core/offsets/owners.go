package offsets

import (
	"fmt"
	"sync"
)

// Owners keeps for a store which shards are loaded, under which epochs: clauses 4.4, 4.6, 5.1, 5.2 and 6.3. The zero value
// is ready; any goroutine may use it.
type Owners struct {
	mu     sync.Mutex
	shards map[int32]ownership
	closed bool
}

type ownership struct {
	epoch  int32 // the newest one given
	loaded bool
	busy   bool // loading
}

// Begin begins a load. It ends what an older epoch owned.
func (o *Owners) Begin(shard, epoch int32) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ErrClosed
	}
	s, known := o.shards[shard]
	if known && (epoch < s.epoch || epoch == s.epoch && (s.loaded || s.busy)) {
		return fmt.Errorf("%w: shard %d epoch %d, after epoch %d", ErrNotOwner, shard, epoch, s.epoch)
	}
	if o.shards == nil {
		o.shards = map[int32]ownership{}
	}
	o.shards[shard] = ownership{epoch: epoch, busy: true}
	return nil
}

// Finish ends a load and returns its outcome: failed, if it is an error, or ErrNotOwner when the ownership ended meanwhile.
func (o *Owners) Finish(shard, epoch int32, failed error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.shards[shard]
	if s.epoch != epoch || !s.busy {
		if failed == nil {
			failed = fmt.Errorf("%w: shard %d epoch %d was unloaded while it was loading", ErrNotOwner, shard, epoch)
		}
		return failed
	}
	o.shards[shard] = ownership{epoch: epoch, loaded: failed == nil}
	return failed
}

// Drop ends the ownership under epoch, whether loaded or loading.
func (o *Owners) Drop(shard, epoch int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s, known := o.shards[shard]; known && s.epoch == epoch {
		o.shards[shard] = ownership{epoch: epoch}
	}
}

// Check says, with nil, that the shard is loaded under epoch.
func (o *Owners) Check(shard, epoch int32) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch s := o.shards[shard]; {
	case o.closed:
		return ErrClosed
	case s.epoch != epoch || !s.loaded:
		return fmt.Errorf("%w: shard %d epoch %d", ErrNotOwner, shard, epoch)
	}
	return nil
}

// Open makes the store usable, Close ends all ownership and makes everything fail with ErrClosed. A store calls them from
// Start and Stop, and Close also when it is built.
func (o *Owners) Open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = false
}

// Close is described at Open.
func (o *Owners) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.shards = nil
}
