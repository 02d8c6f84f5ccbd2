package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// This file is how any server gets the leader to do something.

// firstPause and lastPause are between two attempts to find a leader, which doubles from the first to the last.
const firstPause, lastPause = 10 * time.Millisecond, 160 * time.Millisecond

// Submit has a command written and applied, by whoever leads. It tries on, for Timings.Patience at most, or longer after Open, while it is sure that nothing has
// happened, or that once more does no harm. ErrUnavailable: nothing happened, or nobody knows; a ctx that ended: nobody knows.
func (n *Node) Submit(ctx context.Context, c *machine.Command) (Applied, error) {
	text, err := encodeCommand(c)
	if err != nil {
		return Applied{}, err
	}
	var a Applied
	err = n.ask(ctx, c.Repeatable(), func(ctx context.Context, leader, address string) error {
		if leader == n.c.ID {
			a, err = n.applyHere(ctx, text)
			return err
		}
		return n.client.Call(ctx, leader, address, methodApply, json.RawMessage(text), &a)
	})
	return a, err
}

// Sync waits until this server has applied all that was acknowledged, on any server, before the call.
func (n *Node) Sync(ctx context.Context) error {
	index, err := n.index.get(ctx)
	if err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, n.patience(&n.current))
	defer cancel()
	switch err := n.Wait(patience, index); {
	case err == nil:
		n.current.Store(true)
		return nil
	case ctx.Err() != nil || patience.Err() == nil:
		return err
	}
	return fmt.Errorf("%w: this server is behind the raft leader", election.ErrUnavailable)
}

// askIndex asks the leader how far servers must have applied to read.
func (n *Node) askIndex() (index uint64, err error) {
	err = n.ask(n.ctx, true, func(ctx context.Context, leader, address string) (err error) {
		if leader == n.c.ID {
			index, err = n.indexHere(ctx)
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, max(n.c.Timings.Heartbeat, time.Second))
		defer cancel()
		return n.client.Call(ctx, leader, address, methodReadIndex, nil, &index)
	})
	return index, err
}

// Heartbeat tells the leader that the server of a session is alive. It makes one attempt.
func (n *Node) Heartbeat(ctx context.Context, session uint64) (h Heartbeat, err error) {
	leader, address := n.Leader()
	switch leader {
	case "":
		return h, errNoLeader
	case n.c.ID:
		return n.heartbeatHere(ctx, session)
	}
	err = n.client.Call(ctx, leader, address, methodHeartbeat, session, &h)
	return h, err
}

// startPatience is how long a server waits that was opened and doesn't know yet what the others know: for others to form a cluster with, for
// a leader to add it, for a majority that is started one after the other, or for the entries that it lacks. These may be late: raft tries no
// more than every ten seconds to send them to a server that was away for long.
const startPatience = time.Minute

// patience is how long a call may take before it fails, which depends on whether something was done before.
func (n *Node) patience(before *atomic.Bool) time.Duration {
	if !before.Load() {
		return max(startPatience, n.c.Timings.Patience())
	}
	return n.c.Timings.Patience()
}

// ask does something with the leader, again and again until it is done, certainly can't be done, or patience ends.
func (n *Node) ask(ctx context.Context, repeatable bool, do func(ctx context.Context, leader, address string) error) error {
	patience, cancel := context.WithTimeout(ctx, n.patience(&n.reached))
	defer cancel()
	pause, last := firstPause, errNoLeader
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		changed := n.Changed()
		if why := n.hopeless(); why != nil {
			return fmt.Errorf("%w: %w", election.ErrUnavailable, why)
		}
		leader, address := n.Leader()
		err := errNoLeader
		if leader != "" {
			err = do(patience, leader, address)
		}
		var coded *rpc.Error
		switch {
		case err == nil:
			n.reached.Store(true)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case n.ctx.Err() != nil:
			return election.ErrClosed
		case errors.Is(err, machine.ErrCommand):
			return fmt.Errorf("%w: %w", election.ErrInvalid, err)
		case err == errNoLeader, isCode(err, codeNotLeader), isCode(err, rpc.CodeBusy), errors.Is(err, rpc.ErrNotSent):
		case repeatable && (isCode(err, codeUnknown) || !errors.As(err, &coded)):
		default:
			return fmt.Errorf("%w: raft leader %s: %w", election.ErrUnavailable, leader, err)
		}
		if err != errNoLeader {
			last = err
		}
		t := time.NewTimer(pause)
		select {
		case <-changed:
		case <-t.C:
			pause = min(2*pause, lastPause)
		case <-patience.Done():
			t.Stop()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(last, election.ErrUnavailable) {
				return last
			}
			return fmt.Errorf("%w: %w", election.ErrUnavailable, last) // a deadline in it is that of patience, and not the caller's
		case <-n.ctx.Done():
			t.Stop()
			return election.ErrClosed
		}
		t.Stop()
	}
}
