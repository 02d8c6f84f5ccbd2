package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// This file is what a server does while it leads.

// Methods that the leader answers.
const (
	methodApply     = "apply"
	methodReadIndex = "read_index"
	methodHeartbeat = "heartbeat"
)

// Codes of the leader's errors.
const (
	codeNotLeader = "not_leader" // nothing was done
	codeUnknown   = "unknown"    // it may have been done, or be done still
)

func errNotLeader() error { return &rpc.Error{Code: codeNotLeader, Text: "this server doesn't lead"} }

// leading is a time as leader: of one raft term.
type leading struct {
	term uint64
	over <-chan struct{} // closed when it ends
	wake chan struct{}   // capacity 1: there is another session

	mu     sync.Mutex
	keeper *keeper
}

// handlers adds what the leader answers to other methods.
func (n *Node) handlers(more map[string]rpc.Handler) map[string]rpc.Handler {
	all := map[string]rpc.Handler{
		methodApply: func(ctx context.Context, body []byte) (any, error) {
			return n.applyHere(ctx, body)
		},
		methodReadIndex: func(ctx context.Context, _ []byte) (any, error) {
			return n.indexHere(ctx)
		},
		methodHeartbeat: func(ctx context.Context, body []byte) (any, error) {
			var session uint64
			if err := json.Unmarshal(body, &session); err != nil {
				return nil, fmt.Errorf("no session: %w", err)
			}
			return n.heartbeatHere(ctx, session)
		},
	}
	for method, h := range more {
		all[method] = h
	}
	return all
}

// lead makes this server serve as leader until ctx ends: once it has applied all that was decided before.
func (n *Node) lead(ctx context.Context) {
	r := n.raft.Load()
	term := r.CurrentTerm()
	if err := n.await(ctx, r.Barrier(0)); err != nil || ctx.Err() != nil {
		return // raft has stopped leading; it notifies again when it leads again
	}
	n.network.decided() // what the leader before told nobody any more
	now := time.Now()
	l := &leading{term: term, over: ctx.Done(), wake: make(chan struct{}, 1)}
	n.View(func(m *machine.Machine) {
		ids, _ := m.Sessions()
		l.keeper = newKeeper(n.c.Timings.Session, ids, now)
	})
	n.mu.Lock()
	n.leading = l
	n.tellChanged()
	n.mu.Unlock()
	n.c.Logger.Info("this broker leads the coordination", "server", n.c.ID, "term", term)
	defer func() {
		n.mu.Lock()
		n.leading = nil
		n.mu.Unlock()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.mu.Lock()
		over := l.keeper.due(time.Now())
		next := l.keeper.next()
		l.mu.Unlock()
		if len(over) > 0 {
			n.endSessions(l, over)
			continue
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
			return
		}
	}
}

// endSessions ends sessions whose servers were silent for too long.
func (n *Node) endSessions(l *leading, over []uint64) {
	var living []uint64
	n.View(func(m *machine.Machine) {
		for _, id := range over {
			if m.HasSession(id) {
				living = append(living, id)
			}
		}
	})
	if len(living) > 0 {
		n.c.Logger.Info("brokers were silent for too long and are taken for dead", "sessions", living, "session_timeout", n.c.Timings.Session)
		if text, err := encodeCommand(&machine.Command{CloseSessions: living}); err == nil {
			_ = n.await(n.ctx, n.raft.Load().Apply(text, n.c.Timings.Patience())) // one who can't write doesn't lead any more
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range over {
		l.keeper.close(id)
	}
}

// leader gives this server's time as leader, if it is one that may answer.
func (n *Node) leader() (*leading, error) {
	n.mu.Lock()
	l := n.leading
	n.mu.Unlock()
	r := n.raft.Load()
	if l == nil || r.State() != raft.Leader || r.CurrentTerm() != l.term {
		return nil, errNotLeader()
	}
	return l, nil
}

// verify makes sure, at once, that this server leads, and says how far it had applied before. All that was acknowledged before the call is
// applied there: by this leader, which applies before it acknowledges, or by one before, and applied before it began to serve.
func (n *Node) verify() (uint64, error) {
	l, err := n.leader()
	if err != nil {
		return 0, err
	}
	since, index := time.Now(), n.replica.applied()
	// Raft asks the others at once. That it is content proves too little (contacts); what does comes with it, or a moment later.
	if n.await(n.ctx, n.raft.Load().VerifyLeader()) != nil || n.network.contacts.confirm(n.ctx, l.over, l.term, since) != nil {
		return 0, errNotLeader()
	}
	return index, nil
}

func (n *Node) indexHere(ctx context.Context) (uint64, error) {
	if _, err := n.leader(); err != nil {
		return 0, err
	}
	return n.verified.get(ctx)
}

// Heartbeat is the answer to a heartbeat.
type Heartbeat struct {
	Alive   bool  `json:"alive"`   // the session goes on
	Timeout int64 `json:"timeout"` // the leader's session timeout, in milliseconds
}

func (n *Node) heartbeatHere(ctx context.Context, session uint64) (Heartbeat, error) {
	l, err := n.leader()
	if err != nil {
		return Heartbeat{}, err
	}
	now := time.Now()
	if _, err := n.verified.get(ctx); err != nil {
		return Heartbeat{}, err
	}
	alive := false
	n.View(func(m *machine.Machine) { alive = m.HasSession(session) })
	l.mu.Lock()
	defer l.mu.Unlock()
	return Heartbeat{Alive: alive && l.keeper.keep(session, now), Timeout: n.c.Timings.Session.Milliseconds()}, nil
}

// Applied is the outcome of a command, and its place in the log.
type Applied struct {
	Index  uint64         `json:"index"`
	Result machine.Result `json:"result"`
}

// applyHere appends a command to the log and waits until it is applied. After ctx has ended it may still be.
func (n *Node) applyHere(ctx context.Context, text []byte) (Applied, error) {
	c, err := machine.DecodeCommand(text)
	if err != nil {
		return Applied{}, err // nothing that others can't read gets into the log
	}
	l, err := n.leader()
	if err != nil {
		return Applied{}, err
	}
	future := n.raft.Load().Apply(text, n.c.Timings.Patience())
	switch err = n.await(ctx, future); {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return Applied{}, errNotLeader()
	case err != nil:
		return Applied{}, &rpc.Error{Code: codeUnknown, Text: err.Error()}
	}
	result, ok := future.Response().(machine.Result)
	if !ok {
		return Applied{}, &rpc.Error{Code: codeUnknown, Text: fmt.Sprintf("the state machine answers %T", future.Response())}
	}
	if c.OpenSession != nil && result.Err == nil {
		l.mu.Lock()
		l.keeper.open(uint64(result.Number), time.Now())
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return Applied{Index: future.Index(), Result: result}, nil
}

// isCode says whether an error has a code.
func isCode(err error, code string) bool {
	var coded *rpc.Error
	return errors.As(err, &coded) && coded.Code == code
}

// errNoLeader is why writes and reads fail while there is no majority.
var errNoLeader = fmt.Errorf("%w: there is no raft leader", election.ErrUnavailable)
