package adminhttp

import (
	"net"
	"sync"
	"sync/atomic"
)

// bounded is a listener with at most so many connections. One more is closed at once rather than kept waiting: who watches the
// broker learns that there are too many, not that it is slow.
type bounded struct {
	net.Listener
	most int64
	open atomic.Int64
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, most: int64(most)}
}

// Accept waits for a connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= b.most {
			return &counted{Conn: conn, end: sync.OnceFunc(func() { b.open.Add(-1) })}, nil
		}
		b.open.Add(-1)
		_ = conn.Close()
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	end func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.end()
	return c.Conn.Close()
}
