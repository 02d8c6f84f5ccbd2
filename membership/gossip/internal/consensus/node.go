package consensus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// Node is this server's part of raft. Its methods may be called from any goroutine.
type Node struct {
	c        Config
	store    *store
	replica  *replica
	raft     atomic.Pointer[raft.Raft] // set before Open returns, but after raft has begun to dial
	hadState bool
	reached  atomic.Bool // once a leader has answered this server
	current  atomic.Bool // once this server has applied what was acknowledged when it asked
	network  *teller
	stream   *stream
	server   *rpc.Server
	client   *rpc.Client
	index    *shared[uint64] // read indexes that this server asks for
	verified *shared[uint64] // checks of this server that it leads, and how far it has applied

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	down    chan struct{} // closed when raft has been shut down, and answers no call any more
	running sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, when the leader is another one
	leading *leading      // while this server leads and has applied all that was decided before
	refused error         // why no cluster will have this server
}

// Open opens the store and takes part in raft, as far as it is configured there: a server without state waits until it is
// bootstrapped, or added by a leader. handlers are more methods to be answered on Config.Requests.
func Open(c Config, handlers map[string]rpc.Handler) (_ *Node, err error) {
	log := NewLogger(c.Logger, "raft: ")
	st, err := openStore(c.Dir, c.SegmentSize, log)
	if err != nil {
		return nil, err
	}
	n := &Node{c: c, store: st, replica: newReplica(c.Observer), changed: make(chan struct{}), down: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			n.cancel()
			if n.network != nil {
				err = errors.Join(err, n.network.Close())
				n.stream.end()
				n.network.end()
			}
			err = errors.Join(err, st.close())
			n.running.Wait()
		}
	}()
	if n.hadState, err = st.check(c.Dir); err != nil {
		return nil, err
	}
	n.stream = newStream(c.Raft, c.Address, c.DialRaft)
	// One request at a time to each server: raft v1.8.0 can wait for ever in a pipeline whose follower has deposed it, and then never
	// shuts down.
	n.network = newTeller(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{ServerAddressProvider: addresses{n}, Logger: log,
		Stream: n.stream, MaxPool: 3, MaxRPCsInFlight: 1, Timeout: max(10*time.Second, 4*c.Timings.Heartbeat)}),
		n.raft.Load, newContacts(n.otherVoters))
	n.replica.decided = n.network.decided
	leads := make(chan bool, 8)
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger, conf.NotifyCh = raft.ServerID(c.ID), log, leads
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = c.Timings.Heartbeat, c.Timings.Election, c.Timings.Lease
	conf.CommitTimeout = cmp.Or(c.Timings.Commit, 500*time.Millisecond)
	conf.SnapshotThreshold, conf.SnapshotInterval = uint64(c.SnapshotThreshold), 30*time.Second
	if c.Timings.Snapshot > 0 {
		conf.SnapshotInterval = c.Timings.Snapshot
	}
	conf.TrailingLogs = min(1024, uint64(c.SnapshotThreshold))
	conf.BatchApplyCh, conf.ShutdownOnRemove, conf.NoLegacyTelemetry = true, false, true
	r, err := n.begin(conf)
	if err != nil {
		return nil, err
	}
	n.raft.Store(r)
	n.client = rpc.NewClient(c.DialRequests)
	n.index = newShared(n.askIndex, &n.running)
	n.verified = newShared(n.verify, &n.running)
	n.server = rpc.NewServer(n.handlers(handlers), c.Logger)
	n.server.Serve(c.Requests)
	seen := make(chan raft.Observation, 8)
	r.RegisterObserver(raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	}))
	n.running.Go(func() { n.follow(leads, seen) })
	n.running.Go(n.upkeep)
	n.running.Go(n.miss)
	return n, nil
}

// begin makes raft read its store and take part.
func (n *Node) begin(conf *raft.Config) (r *raft.Raft, err error) {
	defer guard(n.c.Dir, &err)()
	if r, err = raft.NewRaft(conf, n.replica, n.store.log, n.store.log, n.store.snapshots, n.network); err != nil {
		return nil, damaged(n.c.Dir, err)
	}
	return r, nil
}

// Close leaves the leadership to another voter, if this server has it and ctx allows, and ends everything.
func (n *Node) Close(ctx context.Context) error {
	r := n.raft.Load()
	if r.State() == raft.Leader && n.voters() > 1 {
		_ = n.TransferLeadership(ctx) // without it the others elect a leader when they miss this one
	}
	n.cancel()
	n.server.Close()
	n.client.Close()
	err := r.Shutdown().Error()
	close(n.down)
	if nerr := n.network.Close(); err == nil {
		err = nerr
	}
	n.stream.end()
	n.network.end()
	n.running.Wait()
	if serr := n.store.close(); err == nil {
		err = serr
	}
	return err
}

// Failed is closed when this server can't follow the others any more; Err says why, and whoever runs it should say so.
func (n *Node) Failed() <-chan struct{} { return n.replica.failure }

// Err says why this server can't follow the others, nil while it can.
func (n *Node) Err() error {
	n.replica.mu.Lock()
	defer n.replica.mu.Unlock()
	return n.replica.failed
}

// View runs f over what this server has applied; nobody writes meanwhile. After Sync it sees all that was acknowledged before that.
func (n *Node) View(f func(*machine.Machine)) { n.replica.view(f) }

// Wait waits until this server has applied the command at an index.
func (n *Node) Wait(ctx context.Context, index uint64) error {
	return unavailable(n.replica.wait(ctx, index))
}

// unavailable marks errors that aren't the contract's, but for those of contexts.
func unavailable(err error) error {
	if err == nil || errors.Is(err, election.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", election.ErrUnavailable, err)
}

// follow keeps up with who leads, until Close.
func (n *Node) follow(leads <-chan bool, seen <-chan raft.Observation) {
	var end context.CancelFunc
	var serving sync.WaitGroup
	stop := func() {
		if end != nil {
			end()
			serving.Wait()
			end = nil
		}
	}
	defer stop()
	for {
		select {
		case leader := <-leads:
			stop()
			if leader {
				ctx, cancel := context.WithCancel(n.ctx)
				end = cancel
				serving.Go(func() { n.lead(ctx) })
			}
		case <-seen:
		case <-n.ctx.Done():
			return
		}
		n.mu.Lock()
		n.tellChanged()
		n.mu.Unlock()
	}
}

// tellChanged has those look again who wait for another leader, or for this server to lead. The caller holds the lock.
func (n *Node) tellChanged() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// upkeep takes snapshots when much was written, and says when this server can't follow.
func (n *Node) upkeep() {
	failure := n.replica.failure
	for {
		select {
		case <-n.replica.compact:
			if err := n.await(n.ctx, n.raft.Load().Snapshot()); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && n.ctx.Err() == nil {
				n.c.Logger.Warn("could not write a snapshot of the coordination's state; its log grows on", "dir", n.c.Dir, "err", err)
			}
		case <-failure:
			failure = nil
			n.c.Logger.Error("this broker can't follow the coordination any more", "dir", n.c.Dir, "err", n.Err())
		case <-n.ctx.Done():
			return
		}
	}
}

// shared does something once for all who ask for it at the same time: each gets an outcome that was begun after it asked.
type shared[T any] struct {
	do      func() (T, error)
	running *sync.WaitGroup

	mu            sync.Mutex
	current, next *attempt[T]
}

type attempt[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func newShared[T any](do func() (T, error), running *sync.WaitGroup) *shared[T] {
	return &shared[T]{do: do, running: running}
}

func (s *shared[T]) get(ctx context.Context) (value T, err error) {
	s.mu.Lock()
	a := s.next
	if a == nil {
		a = &attempt[T]{done: make(chan struct{})}
		s.next = a
		if s.current == nil {
			s.begin()
		}
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// begin makes the next attempt the current one. The caller holds the lock.
func (s *shared[T]) begin() {
	a := s.next
	s.current, s.next = a, nil
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		a.value, a.err = s.do()
		close(a.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current = nil; s.next != nil {
			s.begin()
		}
	}()
}
