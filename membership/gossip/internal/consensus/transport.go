package consensus

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// stream is raft's view of the coordination port. Targets that it dials are "server@address": a server must not be mistaken
// for another that has got its address. It keeps its connections together, since raft's transport leaves them open when it is closed.
type stream struct {
	net.Listener
	address string
	dial    func(ctx context.Context, server, address string) (net.Conn, error)

	mu     sync.Mutex
	closed bool
	conns  map[*streamConn]struct{}
}

func newStream(l net.Listener, address string, dial func(ctx context.Context, server, address string) (net.Conn, error)) *stream {
	return &stream{Listener: l, address: address, dial: dial, conns: map[*streamConn]struct{}{}}
}

// streamConn is a connection of a stream.
type streamConn struct {
	net.Conn
	s *stream
}

// keep makes a connection one of the stream's.
func (s *stream) keep(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	c := &streamConn{conn, s}
	s.conns[c] = struct{}{}
	return c, nil
}

func (c *streamConn) Close() error {
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	return c.Conn.Close()
}

// end closes all connections, and those to come.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		c.Conn.Close()
	}
}

func (s *stream) Accept() (net.Conn, error) { return s.keep(s.Listener.Accept()) }

func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	server, address, ok := strings.Cut(string(to), "@")
	if !ok {
		server, address = "", string(to)
	}
	return s.keep(s.dial(ctx, server, address))
}

// Addr is where others reach this server, as raft tells them.
func (s *stream) Addr() net.Addr { return advertised(s.address) }

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }

// addresses tells raft where to dial a server.
type addresses struct{ n *Node }

func (a addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	return raft.ServerAddress(string(id) + "@" + a.n.locate(string(id))), nil
}
