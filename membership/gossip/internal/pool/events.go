package pool

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// What memberlist asks and tells. It calls these while it holds its lock: they call nothing of it.

// NodeMeta implements memberlist.Delegate.
func (p *Pool) NodeMeta(limit int) []byte { return p.Self().encode(limit) }

// NotifyMsg implements memberlist.Delegate. There are no messages.
func (p *Pool) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate. There are none.
func (p *Pool) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate. There is none.
func (p *Pool) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (p *Pool) MergeRemoteState([]byte, bool) {}

// NotifyAlive implements memberlist.AliveDelegate: whether a server may be known at all.
func (p *Pool) NotifyAlive(n *memberlist.Node) error {
	err := p.judge(n)
	if err != nil {
		p.refuse(fmt.Sprintf("the broker %.32q", n.Name), n.Address(), err)
	}
	return err
}

// judge says what is wrong with a server.
func (p *Pool) judge(n *memberlist.Node) error {
	if !validName(n.Name) {
		return errors.New("it has no broker's name")
	}
	if n.Addr.To16() == nil || n.Addr.IsUnspecified() || n.Port == 0 {
		return errors.New("it has no address")
	}
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return err
	}
	own := p.c.Identity.Cluster()
	if own != "" && m.Cluster != "" && own != m.Cluster {
		return fmt.Errorf("it belongs to the raft cluster %s, this broker to %s", m.Cluster, own)
	}
	return nil
}

// validName says whether this is a NodeName.
func validName(name string) bool {
	if server := member.ServerID(name); server.Valid() {
		return server.Name() == member.Generated
	}
	id, err := strconv.ParseInt(name, 10, 32)
	return err == nil && id >= 0 && strconv.FormatInt(id, 10) == name
}

// NotifyMerge implements memberlist.MergeDelegate: what a server says that joins, or is joined.
func (p *Pool) NotifyMerge(peers []*memberlist.Node) error {
	if p.survey.take(p, peers) {
		return errSurvey
	}
	for _, n := range peers {
		if n.State != memberlist.StateAlive && n.State != memberlist.StateSuspect {
			continue
		}
		if n.Name == p.c.Name && n.Address() != p.own {
			if err := p.meetRival(n); err != nil {
				return err
			}
			continue
		}
		if err := p.judge(n); err != nil {
			p.refuse(fmt.Sprintf("to join the broker %.32q", n.Name), n.Address(), err)
			return fmt.Errorf("the broker %.32q at %s: %w", n.Name, n.Address(), err)
		}
	}
	return nil
}

// meetRival is told of another server with this one's name. While nobody else is known here, this one is the newcomer.
func (p *Pool) meetRival(n *memberlist.Node) error {
	rival := Node{Name: n.Name, Gossip: n.Address()}
	rival.Meta, _ = decodeMeta(n.Meta)
	p.mu.Lock()
	newcomer := true
	for _, other := range p.nodes {
		newcomer = newcomer && other.Gone
	}
	if newcomer {
		p.rival = &rival
	}
	p.mu.Unlock()
	err := fmt.Errorf("%w: broker %s is at %s", ErrNameTaken, n.Name, n.Address())
	p.refuse("another broker with the name "+p.c.Name, n.Address(), err)
	return err
}

// NotifyConflict implements memberlist.ConflictDelegate: the other isn't let in.
func (p *Pool) NotifyConflict(existing, other *memberlist.Node) {
	p.refuse(fmt.Sprintf("a second broker with the name %.32s", other.Name), other.Address(), fmt.Errorf("the first, at %s, isn't known to be gone", existing.Address()))
}

// NotifyJoin implements memberlist.EventDelegate.
func (p *Pool) NotifyJoin(n *memberlist.Node) { p.note(n, false) }

// NotifyUpdate implements memberlist.EventDelegate.
func (p *Pool) NotifyUpdate(n *memberlist.Node) { p.note(n, false) }

// NotifyLeave implements memberlist.EventDelegate.
func (p *Pool) NotifyLeave(n *memberlist.Node) { p.note(n, true) }

// note remembers what is known of another server now.
func (p *Pool) note(n *memberlist.Node, gone bool) {
	if n.Name == p.c.Name {
		return
	}
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return // NotifyAlive has refused it
	}
	now := time.Now()
	p.mu.Lock()
	before, known := p.nodes[n.Name]
	node := Node{Meta: m, Name: n.Name, Gossip: net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port))), Gone: gone, Since: now}
	if known && before.Gone == gone {
		node.Since = before.Since
	}
	p.nodes[n.Name] = node
	p.forget(now)
	p.mu.Unlock()
	if !known || before.Gone != gone {
		what := "gossip: a broker is there"
		if gone {
			what = "gossip: a broker is gone, or can't be reached"
		}
		p.c.Logger.Info(what, "broker", n.Name, "server", string(m.Server), "at", node.Gossip)
	}
	if p.c.OnChange != nil {
		p.c.OnChange()
	}
}

// forget drops those that are gone for long, and the oldest of too many. The caller holds the lock.
func (p *Pool) forget(now time.Time) {
	gone, oldest := 0, ""
	for name, n := range p.nodes {
		if !n.Gone {
			continue
		}
		if now.Sub(n.Since) > goneFor {
			delete(p.nodes, name)
			continue
		}
		gone++
		if oldest == "" || n.Since.Before(p.nodes[oldest].Since) {
			oldest = name
		}
	}
	if gone > maxGone {
		delete(p.nodes, oldest)
	}
}
