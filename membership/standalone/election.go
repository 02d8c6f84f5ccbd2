package standalone

import (
	"context"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// Campaign takes the seat as soon as it is free.
func (c *coordination) Campaign(ctx context.Context, brokerID int32) (election.Term, error) {
	if brokerID < 0 {
		return nil, fmt.Errorf("standalone: %w: broker id %d", election.ErrInvalid, brokerID)
	}
	if err := c.read(ctx, func() {}); err != nil {
		return nil, err
	}
	select {
	case c.seat <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, election.ErrClosed
	}
	var t *term
	err := c.write(ctx, func() (ops []state.Op, err error) {
		ops, _, err = c.state.NewControllerEpoch()
		return ops, prefixed(err)
	}, func() {
		t = &term{c: c, broker: brokerID, epoch: c.state.ControllerEpoch, lost: make(chan struct{})}
		c.term = t
	})
	if err != nil {
		<-c.seat
		return nil, err
	}
	return t, nil
}

// Controller says who sits.
func (c *coordination) Controller(ctx context.Context) (brokerID, epoch int32, err error) {
	brokerID = election.NoBroker
	err = c.read(ctx, func() {
		epoch = c.state.ControllerEpoch
		if c.term != nil {
			brokerID = c.term.broker
		}
	})
	return brokerID, epoch, err
}

// endTerm ends the term that there is. The caller holds the lock.
func (c *coordination) endTerm() {
	if c.term != nil {
		close(c.term.lost)
		c.term = nil
		<-c.seat
	}
}

// term implements election.Term.
type term struct {
	c      *coordination
	broker int32
	epoch  int32
	lost   chan struct{}
}

func (t *term) Epoch() int32          { return t.epoch }
func (t *term) Lost() <-chan struct{} { return t.lost }

func (t *term) Resign(context.Context) error {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.c.term == t {
		t.c.endTerm()
	}
	return nil
}
