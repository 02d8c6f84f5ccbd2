package zookeeper

import (
	"cmp"
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

// session is one ZooKeeper session: from the first connection until it expires, is in doubt, or is closed. The library would open
// another one by itself; here a session that is over stays over, so that nothing that was meant for one happens in the next.
type session struct {
	root   string // what all paths are below; "" or "/kafka"
	conn   *zk.Conn
	net    *network
	log    *slog.Logger
	events func(s *session, path string, kind zk.EventType) // told of each change; must be quick
	joined func(s *session)                                 // told of each new connection but the first; must be quick

	ended chan struct{} // closed when the library's goroutines have
	over  chan struct{} // closed when the session can't be relied on any more

	mu        sync.Mutex
	connected chan struct{} // closed while there is a connection
	online    bool
	before    bool // there was a connection before
	closed    bool
	doubted   bool
	cause     error
	settled   chan struct{} // closed when a session in doubt is known to be alive or expired
	calls     sync.WaitGroup
}

// sessionOptions are what a session is made of.
type sessionOptions struct {
	servers []string
	root    string
	timeout time.Duration
	tls     *tls.Config
	auth    []byte // "user:password" for digest authentication; nil for none
	log     *slog.Logger
	events  func(s *session, path string, kind zk.EventType)
	joined  func(s *session)
}

// maxPacket is the most that is taken from a server at once. It answers a list of children as a whole, however many there are.
const maxPacket = 256 << 20

// openSession connects, and returns when there is a session, at the latest when ctx ends.
func openSession(ctx context.Context, o sessionOptions) (*session, error) {
	s := &session{root: o.root, net: newNetwork(o.servers, o.tls, o.timeout), log: o.log, events: o.events, joined: o.joined,
		ended: make(chan struct{}), over: make(chan struct{}), connected: make(chan struct{}), settled: make(chan struct{})}
	s.net.timeout.Store(int64(o.timeout))
	s.net.late = s.doubt
	conn, events, err := zk.Connect(s.net.servers, o.timeout, zk.WithDialer(s.net.dial), zk.WithHostProvider(s.net),
		zk.WithEventCallback(s.event), zk.WithLogger(debugLogger{o.log}), zk.WithLogInfo(false), zk.WithMaxBufferSize(maxPacket))
	if err != nil {
		s.net.shut()
		return nil, err
	}
	s.conn = conn
	go func() { // ends with the library's loop, which close sees to
		for range events { // told through the callback
		}
		close(s.ended)
	}()
	if err := s.await(ctx); err != nil {
		if last := s.net.failure(); last != nil {
			err = fmt.Errorf("%w (%w)", last, err)
		}
		s.close()
		return nil, err
	}
	if o.auth != nil {
		if _, err := call(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.AddAuth("digest", o.auth) }); err != nil {
			s.close()
			return nil, fmt.Errorf("authenticate: %w", err)
		}
	}
	go s.guard() // ends when the session is over
	return s, nil
}

// debugLogger takes what the library says: what matters of it is told by the session's own states.
type debugLogger struct{ log *slog.Logger }

func (l debugLogger) Printf(format string, args ...any) {
	l.log.Debug("zookeeper client", "says", fmt.Sprintf(format, args...))
}

// id is the session's id, also when it is over: the library forgets it.
func (s *session) id() int64 { return s.net.session.Load() }

// timeout is the session's, as the server set it.
func (s *session) timeout() time.Duration { return time.Duration(s.net.timeout.Load()) }

// patience is how much silence there may be before the session is in doubt. A server expires it no earlier than its timeout after it has
// heard this side; the rest is for clocks that differ, and for a machine that is slow to notice.
func (n *network) patience() time.Duration {
	timeout := time.Duration(n.timeout.Load())
	return timeout - timeout/10
}

// event is told by the library, from its own goroutines, of changes of its state and of nodes.
func (s *session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		if path, ok := strings.CutPrefix(e.Path, s.root); ok && e.Type != zk.EventNotWatching {
			s.events(s, path, e.Type)
		}
		return
	}
	switch e.State {
	case zk.StateHasSession:
		s.setOnline()
	case zk.StateExpired:
		s.net.giveUp()
		s.end(zk.ErrSessionExpired, false)
		s.settle()
	case zk.StateDisconnected:
		s.mu.Lock()
		if s.online {
			s.online, s.connected = false, make(chan struct{})
		}
		s.mu.Unlock()
	}
}

func (s *session) setOnline() {
	s.mu.Lock()
	again := s.before
	if !s.online {
		s.online, s.before = true, true
		close(s.connected)
	}
	doubted := s.doubted
	s.mu.Unlock()
	if doubted {
		s.settle()
	} else if again {
		s.joined(s)
	}
}

// settle says that a session that was in doubt isn't any more.
func (s *session) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.settled:
	default:
		close(s.settled)
	}
}

// end says that the session can't be relied on any more.
func (s *session) end(cause error, doubted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return
	}
	s.cause, s.doubted = cause, doubted
	close(s.over)
}

// doubt ends a session that had a connection, because no server was heard for so long that it may have expired.
func (s *session) doubt() {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before {
		s.end(fmt.Errorf("no server was heard for nearly the session's timeout of %s", s.timeout()), true)
	}
}

// guard ends the session when no server was heard for nearly as long as a server takes to expire it. The server may know better, or may
// be slower: until somebody says so, it is over.
func (s *session) guard() {
	for {
		left := s.net.patience() - s.net.silence()
		if left <= 0 {
			s.doubt()
			return
		}
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-s.over:
			t.Stop()
			return
		}
	}
}

// close ends the session, with the server too when there is a connection, and everything that belongs to it.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	online := s.online
	s.mu.Unlock()
	s.end(election.ErrClosed, false)
	if !online {
		s.net.shut()
	}
	s.conn.Close() // waits a second at most for the server
	s.net.shut()
	<-s.ended
	s.calls.Wait()
}

// closeDoubted ends a session that is in doubt: should a server still know it, what it holds (as a controller, as a broker) is given
// back before another session asks for the same. It waits until a server has said so, or ctx ends.
func (s *session) closeDoubted(ctx context.Context) {
	s.mu.Lock()
	wait := s.doubted && !s.online
	s.mu.Unlock()
	if wait {
		select {
		case <-s.settled:
		case <-ctx.Done():
		}
	}
	s.close()
}

// await waits until there is a connection.
func (s *session) await(ctx context.Context) error {
	for {
		s.mu.Lock()
		connected, online, cause := s.connected, s.online, s.cause
		s.mu.Unlock()
		if cause != nil {
			return fmt.Errorf("%w: %w", election.ErrUnavailable, cause)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if online {
			return nil
		}
		select {
		case <-connected:
		case <-s.over:
		case <-ctx.Done():
		}
	}
}

// path is where a node is for the server.
func (s *session) path(p string) string { return s.root + p }

// begin counts a request in, unless the session is closed.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	return true
}

// call has the library do a request, and waits for the answer, the end of ctx, or that of the session. The library itself
// listens to none of them; a request that nobody waits for any more may be done or not.
func call[T any](ctx context.Context, s *session, do func(c *zk.Conn) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := s.await(ctx); err != nil {
		return none, err
	}
	if !s.begin() {
		return none, election.ErrClosed
	}
	answers := make(chan answer, 1)
	go func() {
		defer s.calls.Done()
		value, err := do(s.conn)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, translate(a.err)
	case <-ctx.Done():
		return none, ctx.Err()
	case <-s.over:
		return none, fmt.Errorf("%w: the session ended meanwhile", election.ErrUnavailable)
	}
}

// translate makes what keeps ZooKeeper from answering the contract's error, and leaves what it answers.
func translate(err error) error {
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNotEmpty):
		return err
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: ZooKeeper refuses it to this user: %w", election.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", election.ErrUnavailable, err)
}

// node is what a node holds.
type node struct {
	data []byte
	stat *zk.Stat
}

func (s *session) get(ctx context.Context, path string) (node, error) {
	return call(ctx, s, func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(s.path(path))
		return node{data, stat}, err
	})
}

// exists says whether there is a node; there is as well when this user may not look at it.
func (s *session) exists(ctx context.Context, path string) (bool, error) {
	return call(ctx, s, func(c *zk.Conn) (bool, error) {
		exists, _, err := c.Exists(s.path(path))
		if errors.Is(err, zk.ErrNoAuth) {
			return true, nil
		}
		return exists, err
	})
}

func (s *session) children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, s, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(s.path(path))
		return names, err
	})
}

func (s *session) create(ctx context.Context, path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	return call(ctx, s, func(c *zk.Conn) (string, error) { return c.Create(s.path(path), data, flags, acl) })
}

func (s *session) set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	return call(ctx, s, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(s.path(path), data, version) })
}

func (s *session) delete(ctx context.Context, path string, version int32) error {
	_, err := call(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(s.path(path), version) })
	return err
}

// sync makes the server that answers know all that any server had acknowledged: without it, a read may see the past.
func (s *session) sync(ctx context.Context) error {
	_, err := call(ctx, s, func(c *zk.Conn) (string, error) { return c.Sync(cmp.Or(s.root, "/")) })
	return err
}

// multi does operations together, or none of them. The paths in them are whole ones. When an operation is why they weren't
// done, failed is its number and err says why; otherwise failed is -1.
func (s *session) multi(ctx context.Context, ops []any) (results []zk.MultiResponse, failed int, err error) {
	type outcome struct {
		results []zk.MultiResponse
		err     error
	}
	o, err := call(ctx, s, func(c *zk.Conn) (outcome, error) {
		results, err := c.Multi(ops...)
		for _, r := range results {
			if r.Error != nil {
				return outcome{results, err}, nil //nolint:nilerr // ZooKeeper's word, and no failure of the connection
			}
		}
		return outcome{results, nil}, err
	})
	if err != nil {
		return nil, -1, err
	}
	for i, r := range o.results {
		if r.Error != nil {
			return nil, i, translate(r.Error)
		}
	}
	return o.results, -1, nil
}
