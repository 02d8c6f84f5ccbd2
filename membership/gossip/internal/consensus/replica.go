package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// Observer is told what commands may have changed; the state may be read during the call only.
type Observer func(m *machine.Machine, changes []election.Change)

// replica is the state that this server has applied. It implements raft.FSM.
type replica struct {
	observe Observer
	decided func()        // told when raft's log is decided further than before; set before raft begins
	failure chan struct{} // closed when the state can't follow any more
	compact chan struct{} // capacity 1: much was applied since the last snapshot

	mu      sync.Mutex
	state   *machine.Machine
	index   uint64 // of the last command in state
	failed  error
	bytes   int64 // of commands since the last snapshot
	waiting map[*waiter]struct{}
}

type waiter struct {
	index uint64
	done  chan struct{}
}

// compactAfter is how many bytes of commands are applied before a snapshot is taken, whatever their number.
const compactAfter = 32 << 20

func newReplica(observe Observer) *replica {
	if observe == nil {
		observe = func(*machine.Machine, []election.Change) {}
	}
	return &replica{observe: observe, decided: func() {}, failure: make(chan struct{}), compact: make(chan struct{}, 1), state: machine.New(), waiting: map[*waiter]struct{}{}}
}

// Apply implements raft.FSM: one command.
func (r *replica) Apply(l *raft.Log) any {
	r.decided() // before it is applied here: others can begin
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return machine.Result{Err: fmt.Errorf("%w: %w", election.ErrUnavailable, r.failed)}
	}
	c, err := machine.DecodeCommand(l.Data)
	if err != nil {
		// It was written by a later version. To go on without it would lead to another state than the others have.
		r.failed = fmt.Errorf("entry %d of raft's log: %w; start the version that wrote it", l.Index, err)
		close(r.failure)
		r.wake()
		return machine.Result{Err: fmt.Errorf("%w: %w", election.ErrUnavailable, r.failed)}
	}
	result, changes := r.state.Apply(l.Index, c)
	r.index = l.Index
	if r.bytes += int64(len(l.Data)); r.bytes >= compactAfter {
		r.bytes = 0
		select {
		case r.compact <- struct{}{}:
		default:
		}
	}
	r.observe(r.state, changes)
	r.wake()
	return result
}

// wake ends the waits for what is applied. The caller holds the lock.
func (r *replica) wake() {
	for w := range r.waiting {
		if r.index >= w.index || r.failed != nil {
			close(w.done)
			delete(r.waiting, w)
		}
	}
}

// wait waits until the command at an index is applied, or anything behind it.
func (r *replica) wait(ctx context.Context, index uint64) error {
	r.mu.Lock()
	if r.failed != nil || r.index >= index {
		defer r.mu.Unlock()
		return r.failed
	}
	w := &waiter{index, make(chan struct{})}
	r.waiting[w] = struct{}{}
	r.mu.Unlock()
	select {
	case <-w.done:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.failed
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, w)
		return ctx.Err()
	}
}

// applied is the index of the last command that was applied.
func (r *replica) applied() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.index
}

// view runs f over the state.
func (r *replica) view(f func(*machine.Machine)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.state)
}

// Snapshot implements raft.FSM.
func (r *replica) Snapshot() (raft.FSMSnapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return nil, r.failed
	}
	r.bytes = 0
	return snapshot{r.state.Snapshot(r.index)}, nil
}

// Restore implements raft.FSM: it replaces the state.
func (r *replica) Restore(source io.ReadCloser) error {
	defer source.Close()
	m, index, err := machine.ReadSnapshot(source)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.index, r.bytes = m, index, 0
	r.observe(m, []election.Change{{Kind: election.EverythingChanged}})
	r.wake()
	return nil
}

// snapshot implements raft.FSMSnapshot.
type snapshot struct{ *machine.Snapshot }

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := s.WriteTo(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

func (snapshot) Release() {}

// encodeCommand gives the entry for a command.
func encodeCommand(c *machine.Command) ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if len(text) > maxCommand {
		return nil, fmt.Errorf("%w: a write of %d bytes, at most %d are possible", election.ErrInvalid, len(text), maxCommand)
	}
	return text, nil
}

// maxCommand is the largest command, in bytes: entries of the log are whole, and so are messages.
const maxCommand = 32 << 20
