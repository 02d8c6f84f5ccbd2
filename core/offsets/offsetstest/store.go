package offsetstest

import (
	"context"
	"sync"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// Disk is what outlives a [Store]: for each shard, what was written.
type Disk struct {
	mu     sync.Mutex
	events map[int32][]offsets.Event
}

// NewDisk makes an empty disk.
func NewDisk() *Disk { return &Disk{events: map[int32][]offsets.Event{}} }

// Shards is the number of shards of a [Store].
const Shards = 7

// Store is the plainest store that keeps the contract, for tests of those who use one: seven shards, in memory.
type Store struct {
	// Before, when set, is called at the start of each write and load; its error is theirs. It may wait.
	Before func(ctx context.Context, shard int32, b *offsets.Batch) error

	owners offsets.Owners
	disk   *Disk
}

// NewStore makes a store over a disk.
func NewStore(d *Disk) *Store {
	s := &Store{disk: d}
	s.owners.Close()
	return s
}

// Start makes the store usable.
func (s *Store) Start(context.Context) error { s.owners.Open(); return nil }

// Stop ends all ownership.
func (s *Store) Stop(context.Context) error { s.owners.Close(); return nil }

// Topic is "groups".
func (*Store) Topic() string { return "groups" }

// Prepare has nothing to do.
func (*Store) Prepare(context.Context) error { return nil }

// Shard is as Kafka has it.
func (*Store) Shard(group string) (int32, error) { return offsets.ShardOf(group, Shards), nil }

// Unload implements the contract.
func (s *Store) Unload(shard, epoch int32) { s.owners.Drop(shard, epoch) }

// Load implements the contract.
func (s *Store) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	if err := s.owners.Begin(shard, epoch); err != nil {
		return err
	}
	return s.owners.Finish(shard, epoch, s.visitAll(ctx, shard, visit))
}

func (s *Store) visitAll(ctx context.Context, shard int32, visit func(offsets.Event) error) error {
	if s.Before != nil {
		if err := s.Before(ctx, shard, nil); err != nil {
			return err
		}
	}
	s.disk.mu.Lock()
	events := s.disk.events[shard]
	s.disk.mu.Unlock()
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(copied(e)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// copied sends an event through the record format.
func copied(e offsets.Event) offsets.Event {
	if e.Entry.Tombstone() {
		return e
	}
	key, _ := offsets.AppendKey(nil, e.Entry.Key)
	value, _ := offsets.AppendValue(nil, e.Entry)
	entry, _, err := offsets.Decode(key, value)
	if err == nil { // else it wasn't one that fits, which a Store refuses
		e.Entry = entry
	}
	return e
}

// Write implements the contract.
func (s *Store) Write(ctx context.Context, shard, epoch int32, b offsets.Batch) error {
	if s.Before != nil {
		if err := s.Before(ctx, shard, &b); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, e := range b.Entries {
		if _, err := offsets.AppendKey(nil, e.Key); err != nil {
			return err
		}
		if _, err := offsets.AppendValue(nil, e); err != nil {
			return err
		}
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if err := s.owners.Check(shard, epoch); err != nil {
		return err
	}
	s.keep(shard, b)
	return nil
}

func (s *Store) keep(shard int32, b offsets.Batch) {
	producer := int64(offsets.None)
	if b.Producer != nil {
		producer = b.Producer.ID
	}
	if b.Ended != offsets.NotEnded {
		s.disk.events[shard] = append(s.disk.events[shard], offsets.Event{Producer: producer, Ended: b.Ended})
	}
	for _, e := range b.Entries {
		s.disk.events[shard] = append(s.disk.events[shard], copied(offsets.Event{Producer: producer, Entry: e}))
	}
}

// Entries lists what was written to a shard, in order.
func (d *Disk) Entries(shard int32) []offsets.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []offsets.Entry
	for _, e := range d.events[shard] {
		list = append(list, e.Entry)
	}
	return list
}
