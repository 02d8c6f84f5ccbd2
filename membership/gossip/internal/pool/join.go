package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
)

// Pauses between two attempts to find others.
const (
	firstPause = 100 * time.Millisecond
	alonePause = 2 * time.Second // at most, while nobody else is known
	usualPause = 5 * time.Second // to those who are missing
)

// run finds others, for as long as the pool lasts, and tells them what has changed here.
func (p *Pool) run() {
	pause := firstPause
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.closed:
			return
		case <-p.renew:
			if err := p.list.UpdateNode(p.c.Timings.Probe); err != nil {
				p.c.Logger.Debug("nobody may have heard yet what has changed here", "error", err)
			}
			continue
		case <-timer.C:
		}
		alone := p.seek()
		if pause = min(2*pause, usualPause); alone {
			pause = min(pause, alonePause)
		}
		timer.Reset(pause + rand.N(pause/4+1))
	}
}

// seek joins whoever isn't there and may be, and says whether nobody else is.
func (p *Pool) seek() (alone bool) {
	if p.Err() != nil {
		return false
	}
	for _, address := range p.missing() {
		select {
		case <-p.closed:
			return false
		default:
		}
		if _, err := p.list.Join([]string{address}); err != nil {
			p.c.Logger.Debug("gossip: could not join", "address", address, "error", err)
			if errors.Is(err, port.ErrRefused) {
				p.refuse("this broker is", address, err)
			}
			p.meet()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		if !n.Gone {
			p.rival = nil
			return false
		}
	}
	return true
}

// missing gives the addresses of servers to join that aren't known to be there, and of one of those that are gone.
func (p *Pool) missing() []string {
	p.mu.Lock()
	there := []string{p.own}
	var gone []string
	for _, n := range p.nodes {
		if n.Gone {
			gone = append(gone, n.Gossip)
		} else {
			there = append(there, n.Gossip)
		}
	}
	p.mu.Unlock()
	var missing []string
	for _, address := range p.c.Join {
		for _, a := range p.resolve(address) {
			if !slices.Contains(there, a) && !slices.Contains(missing, a) {
				missing = append(missing, a)
			}
		}
	}
	if len(gone) > 0 {
		if a := gone[rand.IntN(len(gone))]; !slices.Contains(missing, a) && !slices.Contains(there, a) {
			missing = append(missing, a)
		}
	}
	return missing
}

// resolve gives the addresses that HOST:PORT stands for.
func (p *Pool) resolve(address string) []string {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	if ip := net.ParseIP(host); ip != nil {
		return []string{net.JoinHostPort(ip.String(), number)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		p.refuse("the name "+host, address, err)
		return nil
	}
	list := make([]string, len(ips))
	for i, ip := range ips {
		list[i] = net.JoinHostPort(ip.String(), number)
	}
	return list
}

// meet finds out whether the rival lives, if there is one: others may not have noticed yet that it is dead.
func (p *Pool) meet() {
	p.mu.Lock()
	rival := p.rival
	p.mu.Unlock()
	if rival == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := p.c.Port.Dial(ctx, port.Commands, rival.Server, rival.Gossip)
	if err != nil {
		return
	}
	conn.Close()
	p.mu.Lock()
	p.err = fmt.Errorf("%w: broker %s is at %s, as server %s; this is server %s", ErrNameTaken, rival.Name, rival.Gossip, rival.Server, p.c.Identity.Server())
	err = p.err
	p.mu.Unlock()
	p.c.Logger.Error("this broker takes no part in its cluster", "because", err)
	if p.c.OnChange != nil {
		p.c.OnChange()
	}
}
