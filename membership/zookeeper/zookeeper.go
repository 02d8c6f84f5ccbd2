package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
)

// New makes a coordination through the ZooKeeper that the options name. Nothing happens before Start.
func New(o Options, s election.Settings) (election.Coordination, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o, err := o.complete(s.Properties)
	if err != nil {
		return nil, err
	}
	servers, root, err := parseConnect(o.Connect)
	if err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	log := s.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &coordination{o: o, servers: servers, root: root, dir: s.DataDir, log: log, now: time.Now,
		seat: make(chan struct{}, 1), closed: make(chan struct{}), arrived: make(chan struct{}), alive: map[int32]*registration{}}
	c.points = newPoints(log, c.current)
	c.hub = newHub(c)
	return c, nil
}

// coordination implements election.Coordination, and its four interfaces with views of itself.
type coordination struct {
	o       Options
	servers []string
	root    string
	dir     string // for the file that remembers the session; empty for none
	log     *slog.Logger
	now     func() time.Time
	points  *points
	hub     *hub
	seat    chan struct{} // holds an element while there is a term, or is about to be
	closed  chan struct{} // closed by Stop
	cancel  context.CancelFunc
	keeper  sync.WaitGroup

	mu       sync.Mutex // never held over I/O
	running  bool
	stopped  bool
	session  *session      // the last one
	arrived  chan struct{} // closed when there is another session
	term     *term
	ended    int32 // the epoch of the last term that ended here
	alive    map[int32]*registration
	earlier  []int64 // ids of sessions that were this broker's, the last ones
	previous int64   // the session that the file remembers from before
	trusted  int64   // the session of this broker's earlier life, once it is known to be its; 0 for none
}

// Start connects, and creates the nodes that must be there. It fails when no server answers in time.
func (c *coordination) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.running || c.stopped {
		c.mu.Unlock()
		return errors.New("zookeeper: started a second time")
	}
	c.mu.Unlock()
	tlsConfig, err := c.o.tlsConfig()
	if err != nil {
		return err
	}
	open, cancel := context.WithTimeout(ctx, c.o.ConnectionTimeout)
	defer cancel()
	s, err := c.open(open, tlsConfig)
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: none of %s answered within %s (connection_timeout): %w", election.ErrUnavailable, strings.Join(c.servers, ", "), c.o.ConnectionTimeout, err)
		}
		return fmt.Errorf("zookeeper: %w", err)
	}
	if err := c.prepare(open, s); err != nil {
		s.close()
		return fmt.Errorf("zookeeper: %w", err)
	}
	c.mu.Lock()
	c.running, c.session, c.previous = true, s, c.savedSession()
	c.mu.Unlock()
	keep, stop := context.WithCancel(context.Background())
	c.cancel = stop
	c.points.start()
	c.keeper.Go(func() { c.keep(keep, s, tlsConfig) })
	return nil
}

func (c *coordination) open(ctx context.Context, tlsConfig *tls.Config) (*session, error) {
	return openSession(ctx, sessionOptions{servers: c.servers, root: c.root, timeout: c.o.SessionTimeout, tls: tlsConfig, auth: c.o.auth(), log: c.log,
		events: c.nodeChanged, joined: func(*session) { c.points.lost() }})
}

// Stop ends the term, the registrations and the watches, and the session with ZooKeeper.
func (c *coordination) Stop(ctx context.Context) error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	close(c.closed)
	running := c.running
	c.running = false
	c.mu.Unlock()
	c.endAll()
	if !running {
		return nil
	}
	c.hub.end()
	c.cancel()
	done := make(chan struct{})
	go func() {
		c.keeper.Wait() // closes the session, which ends what points wait for
		c.points.stop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keep sees that there is a session, for as long as the coordination runs.
func (c *coordination) keep(ctx context.Context, s *session, tlsConfig *tls.Config) {
	for {
		select {
		case <-s.over:
		case <-ctx.Done():
			s.close()
			return
		}
		c.log.Warn("the ZooKeeper session is over; another one is begun", "session", hex(s.id()), "why", s.cause)
		c.endAll()
		s.closeDoubted(ctx)
		for {
			next, err := c.open(ctx, tlsConfig)
			if err == nil {
				s = next
				break
			}
			if ctx.Err() != nil {
				return
			}
			c.log.Warn("could not begin a ZooKeeper session", "error", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return
			}
		}
		c.log.Info("there is another ZooKeeper session", "session", hex(s.id()))
		c.mu.Lock()
		c.remember(c.session.id())
		c.session = s
		close(c.arrived)
		c.arrived = make(chan struct{})
		c.mu.Unlock()
		c.points.lost()
	}
}

func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// remember keeps the id of a session that was this broker's. The caller holds the lock.
func (c *coordination) remember(id int64) {
	const most = 64
	if c.earlier = append(c.earlier, id); len(c.earlier) > most {
		c.earlier = c.earlier[1:]
	}
}

// endAll ends the term and the registrations: the session that they were made in is over.
func (c *coordination) endAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != nil {
		c.endTerm(c.term)
	}
	for _, r := range c.alive {
		c.endRegistration(r)
	}
}

// nodeChanged is told of changes by the session, from the library's goroutine.
func (c *coordination) nodeChanged(s *session, path string, kind zk.EventType) {
	if path == controllerPath && kind == zk.EventNodeDeleted {
		// Before anything that a successor writes can be read here.
		c.mu.Lock()
		if c.term != nil && c.term.session == s {
			c.endTerm(c.term)
		}
		c.mu.Unlock()
	}
	c.points.told(path)
}

func (c *coordination) Election() election.Election     { return c }
func (c *coordination) Membership() election.Membership { return membership{c} }
func (c *coordination) Metadata() election.Metadata     { return metadata{c} }
func (c *coordination) Requests() election.Requests     { return requests{c} }

// current is the session that there is; nil when there is none that can be relied on.
func (c *coordination) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return nil
	}
	select {
	case <-c.session.over:
		return nil
	default:
		return c.session
	}
}

// await waits until there is a session that is connected.
func (c *coordination) await(ctx context.Context) (*session, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.mu.Lock()
		s, arrived, running := c.session, c.arrived, c.running
		c.mu.Unlock()
		if !running {
			return nil, election.ErrClosed
		}
		if err := s.await(ctx); err == nil {
			return s, nil
		}
		select {
		case <-s.over:
		default:
			continue // ctx has ended
		}
		select {
		case <-arrived:
		case <-ctx.Done():
		case <-c.closed:
		}
	}
}

// read does what only reads, again when the connection was lost meanwhile, for connection_timeout at most.
func (c *coordination) read(ctx context.Context, what string, do func(ctx context.Context, s *session) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.o.ConnectionTimeout, errTooLong)
	defer cancel()
	var last error
	for {
		s, err := c.await(limited)
		if err == nil {
			if err = s.sync(limited); err == nil {
				err = do(limited, s)
			}
		}
		switch {
		case err == nil:
			return nil
		case c.isStopped():
			return election.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			return fmt.Errorf("zookeeper: %s: %w: %w", what, election.ErrUnavailable, errors.Join(errTooLong, last))
		case !passes(err):
			return fmt.Errorf("zookeeper: %s: %w", what, err)
		}
		last = err
		c.rest(limited)
	}
}

// passes says whether an error comes from a connection, so that another one may do better.
func passes(err error) bool {
	return errors.Is(err, election.ErrUnavailable) && !errors.Is(err, zk.ErrNoAuth)
}

// rest waits a little before something is tried again: that a connection is lost is not known at once.
func (c *coordination) rest(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	case <-c.closed:
	}
}

var errTooLong = errors.New("no answer within connection_timeout")

func (c *coordination) isStopped() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// write does something once, whose outcome is unknown when the connection is lost meanwhile.
func (c *coordination) write(ctx context.Context, what string, do func(ctx context.Context, s *session) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.o.ConnectionTimeout, errTooLong)
	defer cancel()
	s, err := c.await(limited)
	if err == nil {
		err = do(limited, s)
	}
	return c.outcome(ctx, limited, what, err)
}

// outcome makes an error of a call the contract's.
func (c *coordination) outcome(ctx, limited context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case c.isStopped():
		return election.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("zookeeper: %s: %w: %w", what, election.ErrUnavailable, errTooLong)
	}
	return fmt.Errorf("zookeeper: %s: %w", what, err)
}
