package gossip

import (
	"net"
	"sync"
)

// link is the way from one server to another, as a proxy: what is cut isn't closed, but silent.
type link struct {
	g        *group
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	target string
	cut    bool
	healed *sync.Cond
	closed bool
	conns  map[net.Conn]struct{}
}

// link gives the link between two servers. The caller holds the group's lock.
func (g *group) link(from, to string) *link {
	key := [2]string{from, to}
	if l := g.links[key]; l != nil {
		return l
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	l := &link{g: g, listener: listener, conns: map[net.Conn]struct{}{}}
	l.healed = sync.NewCond(&l.mu)
	g.links[key] = l
	l.running.Go(l.accept)
	g.t.Cleanup(l.close)
	return l
}

// to points the link at an address, and gives its own.
func (l *link) to(address string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = address
	return l.listener.Addr().String()
}

func (l *link) accept() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.carry(in) })
	}
}

// carry connects both ends, and copies in both directions while the link isn't cut.
func (l *link) carry(in net.Conn) {
	defer in.Close()
	if !l.keep(in) {
		return
	}
	out, err := net.Dial("tcp", l.address())
	if err != nil {
		return
	}
	defer out.Close()
	if !l.keep(out) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			b := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(b)
				if !l.open() || n == 0 && err != nil {
					return
				}
				if _, err := way[1].Write(b[:n]); err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

func (l *link) address() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.target
}

// keep remembers a connection, and waits until the link isn't cut; false when it is closed.
func (l *link) keep(conn net.Conn) bool {
	l.mu.Lock()
	l.conns[conn] = struct{}{}
	l.mu.Unlock()
	return l.open()
}

// open waits until the link isn't cut; false when it is closed.
func (l *link) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.cut && !l.closed {
		l.healed.Wait()
	}
	return !l.closed
}

func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	l.healed.Broadcast()
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.healed.Broadcast()
	for conn := range l.conns {
		conn.Close()
	}
	l.mu.Unlock()
	l.listener.Close()
	l.running.Wait()
}

// cut makes a server unreachable for others, or others for it, or heals that.
func (g *group) cut(server string, in, out bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other := range g.hosts {
		if other == server {
			continue
		}
		g.link(other, server).set(in)
		g.link(server, other).set(out)
	}
}
