package consensus

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// contacts is what this server, as leader, knows of when others last took it for their leader. It proves that this server leads: a majority of the
// voters has answered what was sent after that was asked. Raft's own VerifyLeader (v1.8.0) has heartbeats sent at once, and counts more than proves
// anything: answers to what was sent before, which may lie unread for long in a process that was stopped and goes on, and those of servers that don't
// vote.
type contacts struct {
	voters func() (servers []string, own bool)

	mu      sync.Mutex
	peers   map[raft.ServerID]*contact
	waiting map[*confirmation]struct{}
}

// contact is what is known of one server.
type contact struct {
	term uint64    // of the leader that it answered
	sent time.Time // when that was sent which it has answered
}

// confirmation is somebody who waits for the proof.
type confirmation struct {
	term  uint64
	since time.Time
	done  chan struct{}
}

// newContacts makes contacts. voters gives the servers that vote, but for this one, and whether this one does.
func newContacts(voters func() (servers []string, own bool)) *contacts {
	return &contacts{voters: voters, peers: map[raft.ServerID]*contact{}, waiting: map[*confirmation]struct{}{}}
}

// answered notes that a server has taken this one for the leader of a term, in answer to what was sent at a time.
func (c *contacts) answered(id raft.ServerID, term uint64, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[id]
	if p == nil {
		p = &contact{}
		c.peers[id] = p
	}
	if term < p.term || term == p.term && !sent.After(p.sent) {
		return // it was overtaken by the answer to a later one
	}
	p.term, p.sent = term, sent
	for w := range c.waiting {
		if c.leads(w.term, w.since) {
			close(w.done)
			delete(c.waiting, w)
		}
	}
}

// leads says whether this server led a term after since: with itself, a majority of the voters says so. The caller holds the lock.
func (c *contacts) leads(term uint64, since time.Time) bool {
	voters, own := c.voters()
	all, agree := len(voters), 0
	if own {
		all, agree = all+1, agree+1
	}
	for _, id := range voters {
		if p := c.peers[raft.ServerID(id)]; p != nil && p.term == term && p.sent.After(since) {
			agree++
		}
	}
	return agree > all/2
}

// confirm waits until it is sure that this server led a term after since, until ctx ends, or until the term is over, as far as this server knows:
// errNotLeader then. It waits for answers to what raft sends in any case, each fifth of its heartbeat timeout at the latest.
func (c *contacts) confirm(ctx context.Context, over <-chan struct{}, term uint64, since time.Time) error {
	c.mu.Lock()
	if c.leads(term, since) {
		c.mu.Unlock()
		return nil
	}
	w := &confirmation{term, since, make(chan struct{})}
	c.waiting[w] = struct{}{}
	c.mu.Unlock()
	err := errNotLeader()
	select {
	case <-w.done:
		return nil
	case <-over:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, w)
	return err
}
