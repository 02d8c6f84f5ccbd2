package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// server is this broker's part of the cluster: its store, its port, gossip and raft.
type server interface {
	// open begins to take part. observe is told what raft has decided (consensus.Observer). When it fails it has undone what it began.
	open(ctx context.Context, observe consensus.Observer) (*consensus.Node, error)
	// id is the server's id in raft, once it is open.
	id() string
	// close ends what open began, raft included.
	close(ctx context.Context) error
}

// coordination implements election.Coordination, and its four interfaces with views of itself.
type coordination struct {
	server  server
	timings consensus.Timings
	log     *slog.Logger

	ctx     context.Context // ends with Stop
	end     context.CancelFunc
	running sync.WaitGroup

	// mu may be taken while raft's state is viewed, and not the other way round.
	mu       sync.Mutex
	node     *consensus.Node // nil before Start and after Stop
	started  bool
	stopped  bool
	watches  map[*watch]struct{}
	session  *session
	wanted   chan struct{} // closed when a session is wanted
	isWanted bool
	opened   chan struct{} // closed, and replaced, when there is another session
	seat     chan struct{} // closed, and replaced, when another broker is controller, or none
	seated   int32         // the epoch of the controller, 0 while there is none
}

func newCoordination(s server, t consensus.Timings, log *slog.Logger) *coordination {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &coordination{server: s, timings: t, log: log, watches: map[*watch]struct{}{},
		wanted: make(chan struct{}), opened: make(chan struct{}), seat: make(chan struct{})}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// Start opens the store and takes part in the cluster, as far as there is one; it doesn't wait for it.
func (c *coordination) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.started || c.stopped {
		c.mu.Unlock()
		return errors.New("memberlist: started a second time")
	}
	c.started = true
	c.mu.Unlock()
	node, err := c.server.open(ctx, c.observe)
	if err != nil {
		return fmt.Errorf("memberlist: %w", err)
	}
	c.mu.Lock()
	c.node = node
	c.mu.Unlock()
	c.running.Go(c.keepSession)
	return nil
}

// Stop ends what this broker holds, says so to the others as far as they can be reached, and leaves.
func (c *coordination) Stop(ctx context.Context) error {
	c.mu.Lock()
	node, s := c.node, c.session
	if c.stopped = true; node == nil {
		c.mu.Unlock()
		c.end()
		return nil
	}
	c.node = nil
	for w := range c.watches {
		w.End()
	}
	c.endSession(s)
	c.mu.Unlock()
	c.end()
	c.running.Wait()
	if s != nil {
		leaving, cancel := context.WithTimeout(ctx, c.timings.Session) // by then it is over in any case
		_, _ = node.Submit(leaving, &machine.Command{CloseSessions: []uint64{s.id}})
		cancel()
	}
	if err := c.server.close(ctx); err != nil {
		return fmt.Errorf("memberlist: %w", err)
	}
	return nil
}

func (c *coordination) Election() election.Election     { return c }
func (c *coordination) Membership() election.Membership { return membership{c} }
func (c *coordination) Metadata() election.Metadata     { return metadata{c} }
func (c *coordination) Requests() election.Requests     { return requests{c} }

// call begins a call: with the node, and a context that ends with Stop, too. The caller calls done.
func (c *coordination) call(ctx context.Context) (node *consensus.Node, inner context.Context, done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, nil, err
	}
	c.mu.Lock()
	node = c.node
	c.mu.Unlock()
	if node == nil {
		return nil, nil, nil, election.ErrClosed
	}
	inner, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	return node, inner, func() { stop(); cancel() }, nil
}

// fault gives the error of a call as the contract wants it.
func (c *coordination) fault(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case c.ctx.Err() != nil:
		return election.ErrClosed
	}
	return fmt.Errorf("memberlist: %w", err)
}

// read runs f over a state in which all is that was acknowledged before.
func (c *coordination) read(ctx context.Context, f func(*machine.Machine)) error {
	node, inner, done, err := c.call(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := node.Sync(inner); err != nil {
		return c.fault(ctx, err)
	}
	node.View(f)
	return nil
}

// write has a command applied. Its result's own error is returned, too.
func (c *coordination) write(ctx context.Context, command *machine.Command) (machine.Result, error) {
	node, inner, done, err := c.call(ctx)
	if err != nil {
		return machine.Result{}, err
	}
	defer done()
	a, err := node.Submit(inner, command)
	if err == nil {
		err = a.Result.Err
		if err != nil {
			return machine.Result{}, fmt.Errorf("memberlist: %w", err)
		}
	}
	return a.Result, c.fault(ctx, err)
}

// observe is told what was decided: by raft's goroutine, which holds the state.
func (c *coordination) observe(m *machine.Machine, changes []election.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// What is over is over before anything else is seen (1.6).
	if s := c.session; s != nil {
		if !m.HasSession(s.id) {
			c.endSession(s)
		}
		for h := range s.held {
			if !h.holds(m) {
				h.lose()
			}
		}
	}
	broker, epoch := m.Controller()
	if broker == election.NoBroker {
		epoch = 0
	}
	if epoch != c.seated {
		c.seated = epoch
		close(c.seat)
		c.seat = make(chan struct{})
	}
	for _, ch := range changes {
		c.tell(ch)
	}
}
