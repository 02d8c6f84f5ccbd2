// Package network is the wires between processes on one machine: TCP connections go through gates, and UDP datagrams where a
// process takes both; what goes from one process to another can be cut, one way or both, delayed, and let through again.
//
// A cut is what it is in a real network: nothing is refused and nothing is closed. What was sent waits, and new connections hang,
// until the wire is whole again or somebody gives up; that a process has ended isn't heard of either. Unlike in a real
// network a cut of one direction lets the other one go on for as long as there is room in the buffers: nobody waits for
// acknowledgements of TCP's. Who is behind a connection is found out through the system, so a process needn't say so.
package network

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Owner names the process that has a connection's end: local is its own address, remote the other one's. "" is any that has
// no name.
type Owner func(local, remote netip.AddrPort) string

// Network is all wires of a test. Its methods may be called from any goroutine.
type Network struct {
	owner Owner

	mu    sync.Mutex
	paths map[pair]*path
	gates []*Gate
}

type pair struct{ from, to string }

// New makes a network in which all wires are whole.
func New(owner Owner) *Network { return &Network{owner: owner, paths: map[pair]*path{}} }

// Close ends all gates and connections, and waits for them. It may be called again.
func (n *Network) Close() {
	n.mu.Lock()
	gates := n.gates
	n.gates = nil
	n.mu.Unlock()
	for _, g := range gates {
		g.close()
	}
}

// path is the wire from one process to another, in one direction.
func (n *Network) path(from, to string) *path {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.paths[pair{from, to}]
	if p == nil {
		p = &path{open: make(chan struct{})}
		close(p.open)
		n.paths[pair{from, to}] = p
	}
	return p
}

// CutOneWay lets nothing more pass from one process to another.
func (n *Network) CutOneWay(from, to string) { n.path(from, to).cut() }

// Cut lets nothing more pass between two processes.
func (n *Network) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// Delay lets everything that passes from one process to another wait for so long.
func (n *Network) Delay(from, to string, by time.Duration) { n.path(from, to).setDelay(by) }

// Heal mends all wires, and takes all delays away.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.paths {
		p.heal()
	}
}

// path is one direction. open is closed while it lets through.
type path struct {
	mu    sync.Mutex
	open  chan struct{}
	isCut bool
	delay time.Duration
}

func (p *path) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isCut {
		p.isCut, p.open = true, make(chan struct{})
	}
}

func (p *path) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.delay = 0; p.isCut {
		p.isCut = false
		close(p.open)
	}
}

func (p *path) setDelay(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

// due is when what comes now may go on.
func (p *path) due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.delay)
}

// wait waits until the path is open; false means that done was closed before.
func (p *path) wait(done <-chan struct{}) bool {
	for {
		p.mu.Lock()
		open, cut := p.open, p.isCut
		p.mu.Unlock()
		if !cut {
			return true
		}
		select {
		case <-open:
		case <-done:
			return false
		}
	}
}

// Gate is the way to one address of one process.
type Gate struct {
	network  *Network
	to, addr string
	from     string // "" asks the owner
	listener net.Listener
	packets  *net.UDPConn // nil when no datagrams pass
	done     chan struct{}
	all      sync.WaitGroup
}

// Gate opens a way to the process named to, which listens at addr. All who come are from the process named from, or, when that is
// "", from whom the owner says.
func (n *Network) Gate(from, to, addr string) (*Gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gate{network: n, to: to, addr: addr, from: from, listener: l, done: make(chan struct{})}
	n.open(g)
	return g, nil
}

// open lets connections through a gate.
func (n *Network) open(g *Gate) {
	n.mu.Lock()
	n.gates = append(n.gates, g)
	n.mu.Unlock()
	g.all.Go(g.accept)
}

// Addr is where the gate listens.
func (g *Gate) Addr() string { return g.listener.Addr().String() }

// Port is the port that the gate listens on.
func (g *Gate) Port() int { return g.listener.Addr().(*net.TCPAddr).Port }

func (g *Gate) close() {
	_ = g.listener.Close()
	if g.packets != nil {
		_ = g.packets.Close()
	}
	close(g.done)
	g.all.Wait()
}

func (g *Gate) accept() {
	for {
		c, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.all.Go(func() { g.serve(c) })
	}
}

// serve connects through, once both directions are open, and copies until both ends have ended or one is broken.
func (g *Gate) serve(client net.Conn) {
	defer client.Close()
	from := g.from
	if from == "" {
		from = g.network.owner(addrPort(client.RemoteAddr()), addrPort(client.LocalAddr()))
	}
	there, back := g.network.path(from, g.to), g.network.path(g.to, from)
	if !there.wait(g.done) || !back.wait(g.done) {
		return
	}
	server, err := net.DialTimeout("tcp", g.addr, 10*time.Second)
	if err != nil {
		_ = client.(*net.TCPConn).SetLinger(0) // nobody listens: the nearest to a refusal is a reset
		return
	}
	defer server.Close()
	var once sync.Once
	broken := make(chan struct{})
	breakIt := func() {
		once.Do(func() {
			close(broken)
			_ = client.Close()
			_ = server.Close()
		})
	}
	defer whenDone(g.done, breakIt)()
	var both sync.WaitGroup
	both.Go(func() { carry(there, client, server, broken, breakIt) })
	both.Go(func() { carry(back, server, client, broken, breakIt) })
	both.Wait()
}

// whenDone calls f when done is closed, until what it returns is called.
func whenDone(done <-chan struct{}, f func()) (stop func()) {
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(gone)
		select {
		case <-done:
			f()
		case <-ended:
		}
	}()
	return func() {
		close(ended)
		<-gone
	}
}

// piece is what was read at once, and when it may go on. Without bytes it is the end.
type piece struct {
	bytes []byte
	due   time.Time
}

// carry copies what comes from one end to the other along a path, the end of it, too.
func carry(p *path, from, to net.Conn, broken <-chan struct{}, breakIt func()) {
	pieces := make(chan piece, 64)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(pieces)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 && !put(pieces, piece{buf[:n], p.due()}, broken) {
				return
			}
			if err != nil {
				put(pieces, piece{nil, p.due()}, broken)
				return
			}
		}
	})
	for piece := range pieces {
		if !sleep(time.Until(piece.due), broken) || !p.wait(broken) {
			break
		}
		if piece.bytes == nil {
			_ = to.(*net.TCPConn).CloseWrite()
			break
		}
		if _, err := to.Write(piece.bytes); err != nil {
			breakIt()
			break
		}
	}
	reading.Wait()
}

func put(pieces chan<- piece, p piece, broken <-chan struct{}) bool {
	select {
	case pieces <- p:
		return true
	case <-broken:
		return false
	}
}

// sleep waits; false means that done was closed before.
func sleep(d time.Duration, done <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
