package electiontest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Export implements election.Portable.
func (c *memoryMember) Export(ctx context.Context, o election.ExportOptions) (election.Export, error) {
	var d election.Dump
	err := c.port(ctx, func(m *Memory) error {
		switch {
		case m.clusterID == "":
			return election.ErrEmpty
		case !o.Living && m.inUse():
			return election.ErrInUse
		}
		d = m.dump()
		return nil
	})
	return election.Export{Dump: d}, err
}

// Import implements election.Portable.
func (c *memoryMember) Import(ctx context.Context, d election.Dump, o election.ImportOptions) error {
	return c.port(ctx, func(m *Memory) error {
		if err := d.Validate(); err != nil {
			return err
		}
		if m.inUse() {
			return election.ErrInUse
		}
		if m.clusterID != "" {
			if !o.Replace {
				return election.ErrNotEmpty
			}
			have := m.dump()
			if err := d.Follows(&have); err != nil {
				return err
			}
		}
		if o.DryRun {
			return nil
		}
		for i := range d.Topics {
			if o.Progress != nil {
				o.Progress(i, len(d.Topics))
			}
			if ctx.Err() != nil {
				return ctx.Err() // and nothing was changed yet
			}
		}
		m.load(&d)
		return nil
	})
}

// port runs f in place of Start.
func (c *memoryMember) port(ctx context.Context, f func(m *Memory) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.started || c.stopped {
		return fmt.Errorf("%w: the member was started", election.ErrInvalid)
	}
	return f(c.m)
}

// lastReserved is the last broker id that isn't generated.
const lastReserved = 1000

func (m *Memory) inUse() bool { return len(m.alive) > 0 || m.term != nil }

func (m *Memory) dump() election.Dump {
	d := election.Dump{ClusterID: m.clusterID, ControllerEpoch: m.epoch, BrokerEpoch: m.brokerEpoch, NextProducerID: m.producerID}
	if m.brokerID > lastReserved {
		d.LastBrokerID = m.brokerID
	}
	for _, name := range slices.Sorted(maps.Keys(m.topics)) {
		d.Topics = append(d.Topics, cloneTopic(m.topics[name]))
	}
	for _, e := range slices.SortedFunc(maps.Keys(m.configs), election.CompareEntities) {
		d.Configs = append(d.Configs, election.Config{Entity: e, Values: maps.Clone(m.configs[e].Values)})
	}
	return d
}

func (m *Memory) load(d *election.Dump) {
	m.clusterID, m.epoch, m.brokerEpoch, m.producerID = d.ClusterID, d.ControllerEpoch, d.BrokerEpoch, d.NextProducerID
	m.brokerID = max(lastReserved, d.LastBrokerID)
	clear(m.topics)
	clear(m.configs)
	for _, t := range d.Topics {
		m.topics[t.Name] = cloneTopic(t)
	}
	for _, c := range d.Configs {
		m.setConfig(c.Entity, c.Values)
	}
	m.tell(election.Change{Kind: election.EverythingChanged})
}
