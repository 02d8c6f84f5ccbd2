package gossip

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// membership implements election.Membership.
type membership struct{ c *coordination }

func (m membership) ClusterID(ctx context.Context, proposed string) (string, error) {
	if !utf8.ValidString(proposed) {
		return "", fmt.Errorf("memberlist: %w: cluster id %q", election.ErrInvalid, proposed)
	}
	var id string
	if err := m.c.read(ctx, func(s *machine.Machine) { id = s.Kept().ClusterID }); err != nil || id != "" {
		return id, err
	}
	if proposed == "" {
		proposed = state.RandomClusterID()
	}
	r, err := m.c.write(ctx, &machine.Command{Identify: proposed})
	return r.Text, err
}

func (m membership) NewBrokerID(ctx context.Context) (int32, error) {
	r, err := m.c.write(ctx, &machine.Command{NewBrokerID: true})
	return int32(r.Number), err
}

func (m membership) Register(ctx context.Context, b election.Broker) (election.Registration, error) {
	if err := state.CheckBroker(b); err != nil {
		return nil, fmt.Errorf("memberlist: %w", err)
	}
	c := m.c
	node, inner, done, err := c.call(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	patience, cancel := context.WithTimeout(inner, c.timings.Patience())
	defer cancel()
	for {
		s, err := c.await(patience)
		if err != nil {
			if inner.Err() == nil {
				err = fmt.Errorf("%w: there is no raft leader", election.ErrUnavailable)
			}
			return nil, c.fault(ctx, err)
		}
		r, err := c.register(inner, node, s, b)
		if r != nil || err != nil {
			return r, c.fault(ctx, err)
		}
	}
}

// register tries once. It returns nothing when the session is over.
func (c *coordination) register(ctx context.Context, node *consensus.Node, s *session, b election.Broker) (election.Registration, error) {
	h := &held{Holding: s.holding(), session: s, broker: b.ID, lost: make(chan struct{})}
	a, err := node.Submit(ctx, &machine.Command{Register: &machine.Register{Holding: h.Holding, Broker: machine.NewBroker(b)}})
	if err == nil && a.Result.Err != nil {
		if errors.Is(a.Result.Err, machine.ErrNoSession) {
			c.drop(s)
			return nil, nil
		}
		return nil, a.Result.Err
	}
	ok := false
	if err == nil {
		if ok, err = c.hold(ctx, node, a.Index, h); err == nil && !ok {
			err = errTooLate
		}
	}
	if !ok {
		c.takeBack(node, h)
		return nil, err
	}
	return &registration{c: c, node: node, held: h, epoch: a.Result.Number}, nil
}

func (m membership) Brokers(ctx context.Context) (brokers []election.Broker, err error) {
	err = m.c.read(ctx, func(s *machine.Machine) { brokers = s.Brokers() })
	return brokers, err
}

func (m membership) Watch(ctx context.Context) (election.Watch, error) {
	return m.c.watch(ctx, election.BrokersChanged)
}

// registration implements election.Registration.
type registration struct {
	c     *coordination
	node  *consensus.Node
	held  *held
	epoch int64
}

func (r *registration) Epoch() int64          { return r.epoch }
func (r *registration) Lost() <-chan struct{} { return r.held.lost }

func (r *registration) Leave(ctx context.Context) error {
	if r.c.isLostNow(r.held) {
		return nil
	}
	return r.c.fault(ctx, r.c.giveBack(ctx, r.node, r.held))
}
