package standalone

import (
	"cmp"
	"context"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// membership implements election.Membership.
type membership struct{ c *coordination }

func (m membership) ClusterID(ctx context.Context, proposed string) (string, error) {
	if proposed == "" {
		proposed = state.RandomClusterID()
	}
	var id string
	err := m.c.write(ctx, func() (ops []state.Op, err error) {
		ops, id, err = m.c.state.Identify(proposed)
		return ops, prefixed(err)
	}, nil)
	if err != nil {
		return "", err
	}
	return id, nil
}

func (m membership) NewBrokerID(ctx context.Context) (int32, error) {
	var id int32
	err := m.c.write(ctx, func() (ops []state.Op, err error) {
		ops, id, err = m.c.state.NewBrokerID()
		return ops, prefixed(err)
	}, nil)
	return id, err
}

func (m membership) Register(ctx context.Context, b election.Broker) (election.Registration, error) {
	if err := state.CheckBroker(b); err != nil {
		return nil, prefixed(err)
	}
	c := m.c
	var r *registration
	err := c.write(ctx, func() (ops []state.Op, err error) {
		for _, other := range c.alive {
			if err := state.CheckAlone(other.broker, b); err != nil {
				return nil, prefixed(err)
			}
		}
		ops, b.Epoch, err = c.state.NewBrokerEpoch()
		return ops, prefixed(err)
	}, func() {
		b.Endpoints = slices.Clone(b.Endpoints)
		r = &registration{c: c, broker: b, lost: make(chan struct{})}
		c.alive[b.ID] = r
		c.changed(election.Change{Kind: election.BrokersChanged})
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (m membership) Brokers(ctx context.Context) ([]election.Broker, error) {
	var brokers []election.Broker
	err := m.c.read(ctx, func() {
		for _, r := range m.c.alive {
			b := r.broker
			b.Endpoints = slices.Clone(b.Endpoints)
			brokers = append(brokers, b)
		}
	})
	slices.SortFunc(brokers, func(a, b election.Broker) int { return cmp.Compare(a.ID, b.ID) })
	return brokers, err
}

func (m membership) Watch(ctx context.Context) (election.Watch, error) {
	return m.c.watch(ctx, func(k election.ChangeKind) bool { return k == election.BrokersChanged })
}

// registration implements election.Registration.
type registration struct {
	c      *coordination
	broker election.Broker
	lost   chan struct{}
}

func (r *registration) Epoch() int64          { return r.broker.Epoch }
func (r *registration) Lost() <-chan struct{} { return r.lost }

func (r *registration) Leave(context.Context) error {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.endRegistration(r)
	return nil
}

// endRegistration ends a registration, unless it has ended. The caller holds the lock.
func (c *coordination) endRegistration(r *registration) {
	if c.alive[r.broker.ID] == r {
		delete(c.alive, r.broker.ID)
		close(r.lost)
		c.changed(election.Change{Kind: election.BrokersChanged})
	}
}
