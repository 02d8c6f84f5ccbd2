package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
)

// Options are what a [Server] needs. Zero limits mean Kafka's defaults.
type Options struct {
	Logger    *slog.Logger
	Handler   Handler
	Listeners []Listener

	// MaxRequestBytes is the largest frame that is read: socket.request.max.bytes.
	MaxRequestBytes int
	// Limits are on connections at first; SetLimits sets others.
	Limits
	// MaxDescriptor is the largest file descriptor that a connection may have, nine tenths of the process's limit by default:
	// however many clients come, the logs can still open files. Beyond it is as beyond MaxConnections.
	MaxDescriptor int
	// MaxIdle is how long a connection may neither send nor take a byte: connections.max.idle.ms. Waiting for a handler
	// doesn't count.
	MaxIdle time.Duration
	// SendBuffer and ReceiveBuffer are the sizes of the sockets' buffers in bytes: socket.send.buffer.bytes and
	// socket.receive.buffer.bytes. 0 and below leave them to the system.
	SendBuffer, ReceiveBuffer int
	// Meter counts requests; nil is for one of the server's own.
	Meter *meter.Requests
}

// Limits are on the number of connections. They hold for new ones.
type Limits struct {
	// MaxConnections is the most connections at a time: max.connections. When it is reached, a new one takes the place of the
	// one that has been idle for longest, and is refused when none is idle.
	MaxConnections int
	// MaxConnectionsPerIP is the most connections of one client address: max.connections.per.ip. New ones beyond it are closed.
	MaxConnectionsPerIP int
	// PerIP are exceptions from MaxConnectionsPerIP, by address: max.connections.per.ip.overrides. Nobody changes the map.
	PerIP map[string]int
}

// Listener is one address to listen on.
type Listener struct {
	// Name is the listener's name, such as PLAINTEXT.
	Name string
	// Address is host:port; an empty host means all interfaces, port 0 any free one.
	Address string
}

// Kafka's defaults.
const (
	DefaultMaxRequestBytes = 100 << 20
	DefaultMaxIdle         = 10 * time.Minute
)

// Server owns the listeners and their connections.
//
// Listen binds, Start begins to accept, Stop ends all. Between Listen and Start clients can connect and wait, so a broker
// can know its ports before it is ready to answer.
type Server struct {
	logger  *slog.Logger
	handler Handler
	options Options
	meter   *meter.Requests
	began   time.Time

	buffers   Buffers
	responses sync.Pool

	ctx      context.Context // ends when draining begins
	cancel   context.CancelFunc
	draining atomic.Bool

	mu        sync.Mutex
	listeners []*listener
	conns     map[*Conn]struct{}
	perIP     map[string]int
	limits    Limits
	started   bool
	stopped   bool
	counts    Counts
	most      int // connections when MaxDescriptor was reached, 0 when it isn't

	running sync.WaitGroup // connections, acceptors and the sweeper
}

// New makes a server. Nothing happens before Listen.
func New(o Options) (*Server, error) {
	switch {
	case o.Handler == nil:
		return nil, errors.New("wire: no handler")
	case len(o.Listeners) == 0:
		return nil, errors.New("wire: no listeners")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = DefaultMaxRequestBytes
	}
	if o.MaxDescriptor <= 0 {
		o.MaxDescriptor = defaultDescriptors()
	}
	if o.MaxIdle <= 0 {
		o.MaxIdle = DefaultMaxIdle
	}
	if o.Meter == nil {
		o.Meter = meter.NewRequests()
	}
	s := &Server{logger: o.Logger, handler: o.Handler, options: o, meter: o.Meter, began: time.Now(), conns: map[*Conn]struct{}{}, perIP: map[string]int{}, limits: o.Limits}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Listen binds all listeners; on an error none stays bound.
func (s *Server) Listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || len(s.listeners) > 0 {
		return errors.New("wire: Listen after Listen or Stop")
	}
	var lc net.ListenConfig
	for _, l := range s.options.Listeners {
		nl, err := lc.Listen(ctx, "tcp", l.Address)
		if err != nil {
			for _, bound := range s.listeners {
				bound.nl.Close()
			}
			s.listeners = nil
			return fmt.Errorf("listener %s: %w", l.Name, err)
		}
		s.listeners = append(s.listeners, &listener{name: l.Name, nl: nl})
	}
	return nil
}

// Addr is the address that the listener of that name is bound to, nil before Listen and for unknown names.
func (s *Server) Addr(name string) net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		if l.name == name {
			return l.nl.Addr()
		}
	}
	return nil
}

// Start begins to accept connections.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.started || len(s.listeners) == 0 {
		return errors.New("wire: Start without Listen, twice or after Stop")
	}
	s.started = true
	for _, l := range s.listeners {
		s.running.Go(func() { s.accept(l) })
	}
	s.running.Go(s.sweep)
	return nil
}

// Stop drains the server: no connection is accepted and no request read any more, handlers that wait are told to end by
// their context, what was read is still answered, and then the connections are closed. When ctx ends first, they are closed
// as they are, and its error is returned. Safe at any time and more than once.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.draining.Store(true)
	s.cancel()
	for _, l := range s.listeners {
		l.nl.Close()
	}
	conns := s.snapshot()
	s.mu.Unlock()
	for _, c := range conns {
		c.wake()
	}
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	conns = s.snapshot()
	s.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
	<-done
	return fmt.Errorf("%d connections were closed before their requests were answered: %w", len(conns), ctx.Err())
}

// clock is the time since the server was made.
func (s *Server) clock() time.Duration { return time.Since(s.began) }

func (s *Server) snapshot() []*Conn {
	conns := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// forget takes a connection off the books.
func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.perIP[c.ip]--; s.perIP[c.ip] <= 0 {
		delete(s.perIP, c.ip)
	}
}
