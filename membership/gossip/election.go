package gossip

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// Campaign waits until nobody is controller, and takes the seat.
func (c *coordination) Campaign(ctx context.Context, brokerID int32) (election.Term, error) {
	if brokerID < 0 {
		return nil, fmt.Errorf("memberlist: %w: broker id %d", election.ErrInvalid, brokerID)
	}
	node, inner, done, err := c.call(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	for {
		s, err := c.await(inner)
		if err != nil {
			return nil, c.fault(ctx, err)
		}
		c.mu.Lock()
		seat, taken := c.seat, c.seated != 0
		c.mu.Unlock()
		if !taken {
			t, err := c.stand(inner, node, s, brokerID)
			switch {
			case t != nil:
				return t, nil
			case inner.Err() != nil:
				return nil, c.fault(ctx, inner.Err())
			case err != nil && !errors.Is(err, election.ErrUnavailable):
				return nil, c.fault(ctx, err)
			case err != nil:
				c.pause(50*time.Millisecond, s.over, inner.Done())
			}
			continue
		}
		select {
		case <-seat:
		case <-s.over:
		case <-inner.Done():
			return nil, c.fault(ctx, inner.Err())
		}
	}
}

// stand tries once to become controller. It returns nothing when somebody else is, or the session is over.
func (c *coordination) stand(ctx context.Context, node *consensus.Node, s *session, brokerID int32) (*term, error) {
	h := &held{Holding: s.holding(), session: s, seat: true, broker: brokerID, lost: make(chan struct{})}
	a, err := node.Submit(ctx, &machine.Command{Campaign: &machine.Campaign{Holding: h.Holding, Broker: brokerID}})
	if err == nil && a.Result.Err != nil {
		switch {
		case errors.Is(a.Result.Err, machine.ErrSeatTaken):
			return nil, node.Wait(ctx, a.Index) // so that this server sees it, too
		case errors.Is(a.Result.Err, machine.ErrNoSession):
			c.drop(s)
			return nil, nil
		}
		return nil, a.Result.Err
	}
	ok := false
	if err == nil {
		ok, err = c.hold(ctx, node, a.Index, h)
	}
	if !ok {
		c.takeBack(node, h)
		return nil, err
	}
	return &term{c: c, node: node, held: h, epoch: int32(a.Result.Number)}, nil
}

// takeBack has something taken back whose caller has gone, or which was lost meanwhile: not longer than Stop, and without making
// anybody wait.
func (c *coordination) takeBack(node *consensus.Node, h *held) {
	ended, cancel := context.WithCancel(c.ctx)
	cancel()
	_ = c.giveBack(ended, node, h) // in the background, as it can't be done within this context
}

// Controller says who is controller.
func (c *coordination) Controller(ctx context.Context) (brokerID, epoch int32, err error) {
	brokerID = election.NoBroker
	err = c.read(ctx, func(m *machine.Machine) { brokerID, epoch = m.Controller() })
	return brokerID, epoch, err
}

// term implements election.Term.
type term struct {
	c     *coordination
	node  *consensus.Node
	held  *held
	epoch int32
}

func (t *term) Epoch() int32          { return t.epoch }
func (t *term) Lost() <-chan struct{} { return t.held.lost }

func (t *term) Resign(ctx context.Context) error {
	if t.c.isLostNow(t.held) {
		return nil
	}
	return t.c.fault(ctx, t.c.giveBack(ctx, t.node, t.held))
}
