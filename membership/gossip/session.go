package gossip

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// session is one time of this broker being there, for the others.
type session struct {
	id   uint64
	over chan struct{} // closed when it has ended, or may have
	held map[*held]struct{}
}

// held is what a session holds: a term or a registration. What follows is guarded by the coordination's lock.
type held struct {
	machine.Holding
	session *session
	seat    bool // a term; else a registration
	broker  int32
	lost    chan struct{}
	isLost  bool
}

// holds says whether it still is this broker's.
func (h *held) holds(m *machine.Machine) bool {
	if h.seat {
		return m.HoldsSeat(h.Holding)
	}
	return m.HoldsRegistration(h.broker, h.Holding)
}

// lose ends it. The caller holds the lock.
func (h *held) lose() {
	if !h.isLost {
		h.isLost = true
		close(h.lost)
		delete(h.session.held, h)
	}
}

// endSession ends a session, and all that it holds. The caller holds the lock.
func (c *coordination) endSession(s *session) {
	if s == nil || c.session != s {
		return
	}
	c.session = nil
	close(s.over)
	for h := range s.held {
		h.lose()
	}
}

// drop is endSession for a session that others have ended, or that can't be kept.
func (c *coordination) drop(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endSession(s)
}

// await gives the session, and waits while there is none.
func (c *coordination) await(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, opened := c.session, c.opened
		if !c.isWanted {
			c.isWanted = true
			close(c.wanted)
		}
		c.mu.Unlock()
		if s != nil {
			return s, nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// keepSession keeps a session alive, and opens another when one has ended, from the first time that one is wanted until Stop.
func (c *coordination) keepSession() {
	select {
	case <-c.wanted:
	case <-c.ctx.Done():
		return
	}
	c.mu.Lock()
	node := c.node
	c.mu.Unlock()
	if node == nil {
		return // stopped already
	}
	for c.ctx.Err() == nil {
		sent := time.Now()
		s, err := c.openSession(node)
		if err != nil {
			c.log.Debug("no session with the raft leader yet", "err", err)
			c.pause(50*time.Millisecond, node.Changed(), nil)
			continue
		}
		c.heartbeats(node, s, sent.Add(c.timings.Doubt()))
		c.drop(s)
		if c.ctx.Err() == nil {
			c.log.Info("this broker's session with the coordination is over", "session", s.id)
		}
	}
}

func (c *coordination) openSession(node *consensus.Node) (*session, error) {
	a, err := node.Submit(c.ctx, &machine.Command{OpenSession: &machine.OpenSession{Server: c.server.id()}})
	if err != nil {
		return nil, err
	}
	if a.Result.Err != nil {
		return nil, a.Result.Err
	}
	if err := node.Wait(c.ctx, a.Index); err != nil { // what it is going to hold is looked up in this server's state
		return nil, err
	}
	s := &session{id: uint64(a.Result.Number), over: make(chan struct{}), held: map[*held]struct{}{}}
	node.View(func(m *machine.Machine) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.stopped || !m.HasSession(s.id) {
			err = errors.New("it was over as soon as it began")
			return
		}
		c.session = s
		close(c.opened)
		c.opened = make(chan struct{})
	})
	return s, err
}

// heartbeats tells the leader that this broker is alive until the session is over: the leader says so, or nothing was heard of a
// leader up to the deadline, from which on one might have ended it.
func (c *coordination) heartbeats(node *consensus.Node, s *session, deadline time.Time) {
	for {
		sent, changed := time.Now(), node.Changed()
		if !sent.Before(deadline) {
			c.log.Warn("no raft leader was heard of in time: this broker doesn't know whether it still counts as alive", "session", s.id)
			return
		}
		ctx, cancel := context.WithTimeout(c.ctx, min(c.timings.Session/3, time.Until(deadline)))
		stop := c.cancelOn(changed, cancel)
		h, err := node.Heartbeat(ctx, s.id)
		stop()
		cancel()
		switch {
		case err == nil && !h.Alive:
			return
		case err == nil:
			timeout := min(c.timings.Session, time.Duration(h.Timeout)*time.Millisecond)
			deadline = sent.Add(consensus.Timings{Session: timeout}.Doubt())
			c.pause(min(timeout/4, time.Until(deadline)), s.over, nil)
		default:
			c.pause(min(20*time.Millisecond, time.Until(deadline)), changed, s.over)
		}
		select {
		case <-s.over:
			return
		case <-c.ctx.Done():
			return
		default:
		}
	}
}

// cancelOn calls cancel when ch is closed, until the result is called.
func (c *coordination) cancelOn(ch <-chan struct{}, cancel func()) (stop func()) {
	done := make(chan struct{})
	c.running.Go(func() {
		select {
		case <-ch:
			cancel()
		case <-done:
		}
	})
	return func() { close(done) }
}

// pause waits for some time, or until something happens or Stop is called.
func (c *coordination) pause(d time.Duration, a, b <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a:
	case <-b:
	case <-c.ctx.Done():
	}
}

// holding names something that a session is going to hold.
func (s *session) holding() machine.Holding {
	return machine.Holding{Session: s.id, Nonce: rand.Text()}
}

// hold makes what a command gave, at an index of the log, this broker's; false when it is lost already.
func (c *coordination) hold(ctx context.Context, node *consensus.Node, index uint64, h *held) (bool, error) {
	if err := node.Wait(ctx, index); err != nil {
		return false, err
	}
	ok := false
	node.View(func(m *machine.Machine) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if ok = c.session == h.session && h.holds(m); ok {
			h.session.held[h] = struct{}{}
		}
	})
	return ok, nil
}

// giveBack has what is or may be held taken back. When nobody knows whether that was done, it goes on in the background until it is,
// or the session is over.
func (c *coordination) giveBack(ctx context.Context, node *consensus.Node, h *held) error {
	command := &machine.Command{Leave: &h.Holding}
	if h.seat {
		command = &machine.Command{Resign: &h.Holding}
	}
	over := func() bool {
		select {
		case <-h.session.over:
			return true
		default:
			return false
		}
	}
	if over() {
		return nil
	}
	_, err := node.Submit(ctx, command)
	if err == nil || over() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return err
	}
	c.running.Go(func() {
		for !over() && c.ctx.Err() == nil {
			if _, err := node.Submit(c.ctx, command); err == nil {
				return
			}
			c.pause(50*time.Millisecond, h.session.over, nil)
		}
	})
	return err
}

// isLostNow loses something that this broker gives back, and says whether it was lost before.
func (c *coordination) isLostNow(h *held) (before bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = h.isLost
	h.lose()
	return before
}

// errTooLate says that something was lost before its caller could be told that it has it.
var errTooLate = fmt.Errorf("%w: it was lost at once", election.ErrUnavailable)
