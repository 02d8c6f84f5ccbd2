package standalone

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/core/election"
)

// firstBrokerID is where ids for brokers without one begin: Kafka's reserved.broker.max.id + 1.
const firstBrokerID = 1001

// membership implements election.Membership.
type membership struct{ c *coordination }

func (m membership) ClusterID(ctx context.Context, proposed string) (string, error) {
	if !utf8.ValidString(proposed) {
		return "", fmt.Errorf("standalone: %w: cluster id %q", election.ErrInvalid, proposed)
	}
	var id string
	err := m.c.write(ctx, func() ([]op, error) {
		if id = m.c.state.ClusterID; id != "" {
			return nil, nil
		}
		if id = proposed; id == "" {
			id = randomClusterID()
		}
		return []op{{ClusterID: id}}, nil
	}, nil)
	if err != nil {
		return "", err
	}
	return id, nil
}

// randomClusterID makes an id as Kafka's Uuid does: it never begins with '-', which command lines take for an option.
func randomClusterID() string {
	for {
		var id election.TopicID
		rand.Read(id[:])
		if text := encodeID(id); text[0] != '-' {
			return text
		}
	}
}

func (m membership) NewBrokerID(ctx context.Context) (int32, error) {
	var id int32
	err := m.c.write(ctx, func() ([]op, error) {
		id = max(m.c.state.LastBrokerID+1, firstBrokerID)
		return []op{{LastBrokerID: id}}, nil
	}, nil)
	return id, err
}

func (m membership) Register(ctx context.Context, b election.Broker) (election.Registration, error) {
	if err := checkBroker(b); err != nil {
		return nil, err
	}
	c := m.c
	var r *registration
	err := c.write(ctx, func() ([]op, error) {
		for _, other := range c.alive {
			if clash := clashes(other.broker, b); clash != "" {
				return nil, fmt.Errorf("standalone: %w: %s", election.ErrBrokerExists, clash)
			}
		}
		return []op{{BrokerEpoch: c.state.BrokerEpoch + 1}}, nil
	}, func() {
		b.Epoch = c.state.BrokerEpoch
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

func checkBroker(b election.Broker) error {
	if b.ID < 0 || len(b.Endpoints) == 0 {
		return fmt.Errorf("standalone: %w: broker %d with %d endpoints", election.ErrInvalid, b.ID, len(b.Endpoints))
	}
	for i, e := range b.Endpoints {
		if e.Listener == "" || e.Host == "" || e.Port < 1 || e.Port > 65535 ||
			slices.ContainsFunc(b.Endpoints[:i], func(o election.Endpoint) bool { return o.Listener == e.Listener }) {
			return fmt.Errorf("standalone: %w: broker %d's endpoint %q at %s:%d", election.ErrInvalid, b.ID, e.Listener, e.Host, e.Port)
		}
	}
	return nil
}

// clashes says in what way two brokers can't be alive together, or nothing.
func clashes(a, b election.Broker) string {
	if a.ID == b.ID {
		return fmt.Sprintf("id %d", a.ID)
	}
	for _, x := range a.Endpoints {
		for _, y := range b.Endpoints {
			if x.Host == y.Host && x.Port == y.Port {
				return fmt.Sprintf("broker %d advertises %s:%d", a.ID, x.Host, x.Port)
			}
		}
	}
	return ""
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
