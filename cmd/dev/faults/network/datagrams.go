package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// datagramMax is the largest datagram of UDP's.
const datagramMax = 64 << 10

// sameTries is how many ports are tried until one is free for both TCP and UDP.
const sameTries = 100

// GateBoth is Gate for a process that takes connections and datagrams at the same port: the gate has one port for both, too. From
// where a datagram comes is what sender says of the address that it was sent from, "" when that is nobody with a name: no system
// tells whose datagram it was.
//
// A datagram that may not pass is lost, as datagrams are. What answers the gate instead of the sender isn't brought back: who
// speaks through gates has to tell others where it can be reached.
func (n *Network) GateBoth(to, addr string, sender func(netip.AddrPort) string) (*Gate, error) {
	var failed error
	for range sameTries {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		packets, err := net.ListenPacket("udp", listener.Addr().String())
		if err != nil {
			failed = errors.Join(err, listener.Close())
			continue
		}
		target, err := netip.ParseAddrPort(addr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("a gate to %s: %w", to, err), listener.Close(), packets.Close())
		}
		g := &Gate{network: n, to: to, addr: addr, listener: listener, packets: packets.(*net.UDPConn), done: make(chan struct{})}
		n.open(g)
		g.all.Go(func() { g.pass(target, sender) })
		return g, nil
	}
	return nil, fmt.Errorf("no port is free for both TCP and UDP: %w", failed)
}

// pass brings datagrams to where they are meant to go until the gate is closed.
func (g *Gate) pass(target netip.AddrPort, sender func(netip.AddrPort) string) {
	buf := make([]byte, datagramMax)
	for {
		n, from, err := g.packets.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // who was spoken to isn't there, says an earlier datagram's fate
		}
		p := g.network.path(sender(netip.AddrPortFrom(from.Addr().Unmap(), from.Port())), g.to)
		cut, delay := p.now()
		switch {
		case cut:
		case delay == 0:
			_, _ = g.packets.WriteToUDPAddrPort(buf[:n], target) // it may be lost
		default:
			late := append([]byte(nil), buf[:n]...)
			g.all.Go(func() {
				if sleep(delay, g.done) {
					_, _ = g.packets.WriteToUDPAddrPort(late, target)
				}
			})
		}
	}
}

// now is what becomes of a datagram that comes now.
func (p *path) now() (cut bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isCut, p.delay
}
