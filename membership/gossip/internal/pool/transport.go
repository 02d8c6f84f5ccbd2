package pool

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
)

// maxPacket is the largest UDP packet.
const maxPacket = 65536

// transport is memberlist's view of the coordination port.
type transport struct {
	port      *port.Port
	label     string
	encrypted func() bool
	ip        net.IP
	number    int
	own       string              // IP:PORT of the two
	dropped   func(from net.Addr) // told of packets that aren't acceptable

	packets chan *memberlist.Packet
	streams chan net.Conn
	closed  chan struct{}
	once    sync.Once
	running sync.WaitGroup

	mu    sync.Mutex
	conns map[*tracked]struct{} // streams that are open
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(p *port.Port, label string, encrypted func() bool, ip net.IP, number int, dropped func(net.Addr)) *transport {
	return &transport{port: p, label: label, encrypted: encrypted, ip: ip, number: number, dropped: dropped,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), closed: make(chan struct{}), conns: map[*tracked]struct{}{}}
}

// start begins to read. Only then Shutdown must be called.
func (t *transport) start() {
	t.running.Go(t.readPackets)
	t.running.Go(t.acceptStreams)
}

func (t *transport) readPackets() {
	buffer := make([]byte, maxPacket)
	for {
		n, from, err := t.port.Packets().ReadFrom(buffer)
		at := time.Now()
		select {
		case <-t.closed:
			return
		default:
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // such as no memory: rather late than busy
			case <-time.After(10 * time.Millisecond):
			case <-t.closed:
				return
			}
			continue
		}
		if !acceptable(buffer[:n], t.label, t.encrypted()) {
			t.dropped(from)
			continue
		}
		select {
		case t.packets <- &memberlist.Packet{Buf: append([]byte(nil), buffer[:n]...), From: from, Timestamp: at}:
		case <-t.closed:
			return
		}
	}
}

func (t *transport) acceptStreams() {
	l := t.port.Listener(port.Gossip)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		t.hand(conn)
	}
}

// hand gives a stream to memberlist.
func (t *transport) hand(conn net.Conn) {
	tracked := t.track(conn)
	select {
	case t.streams <- tracked:
	case <-t.closed:
		tracked.Close()
	}
}

// FinalAdvertiseAddr implements memberlist.Transport.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) { return t.ip, t.number, nil }

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, address string) (time.Time, error) {
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return time.Time{}, err
	}
	_, err = t.port.Packets().WriteTo(b, to)
	return time.Now(), err
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(address string, timeout time.Duration) (net.Conn, error) {
	select {
	case <-t.closed:
		return nil, net.ErrClosed
	default:
	}
	if address == t.own { // no packet and no connection leaves the process: see surveyor
		here, there := net.Pipe()
		t.hand(there)
		return t.track(here), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	go func() { // ends with ctx, which ends with this call
		select {
		case <-t.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, err := t.port.Dial(ctx, port.Gossip, "", address)
	if err != nil {
		return nil, err
	}
	return t.track(conn), nil
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

// Shutdown implements memberlist.Transport. It closes what is open, so that nobody waits for it, and leaves the port to its owner.
func (t *transport) Shutdown() error {
	t.once.Do(func() {
		close(t.closed)
		t.port.Listener(port.Gossip).Close()
		_ = t.port.Packets().SetReadDeadline(time.Unix(1, 0))
		t.mu.Lock()
		for c := range t.conns {
			c.Conn.Close()
		}
		t.mu.Unlock()
		t.running.Wait()
	})
	return nil
}

// tracked is a stream that Shutdown closes when nobody else has.
type tracked struct {
	net.Conn
	t *transport
}

func (t *transport) track(conn net.Conn) *tracked {
	c := &tracked{conn, t}
	t.mu.Lock()
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	select {
	case <-t.closed: // Shutdown may have been before
		conn.Close()
	default:
	}
	return c
}

func (c *tracked) Close() error {
	c.t.mu.Lock()
	delete(c.t.conns, c)
	c.t.mu.Unlock()
	return c.Conn.Close()
}
