package electiontest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// porter breaks what it changes on the way.
type porter struct {
	*memoryMember
	living bool                         // exports while brokers are alive
	out    func(d *election.Dump)       // what it makes of what it exports
	in     func(d *election.Dump)       // what it makes of what it imports
	force  bool                         // replaces anything
	dry    bool                         // writes in dry runs
	half   func(d *election.Dump)       // what is there after an import that was stopped
	keeps  func(have, d *election.Dump) // what it leaves of what was there before
}

func (p porter) Export(ctx context.Context, o election.ExportOptions) (election.Export, error) {
	o.Living = o.Living || p.living
	e, err := p.memoryMember.Export(ctx, o)
	if err == nil && p.out != nil {
		p.out(&e.Dump)
	}
	return e, err
}

func (p porter) Import(ctx context.Context, d election.Dump, o election.ImportOptions) error {
	d.Topics = slices.Clone(d.Topics)
	for i := range d.Topics {
		d.Topics[i] = cloneTopic(d.Topics[i])
	}
	have, none := p.memoryMember.Export(ctx, election.ExportOptions{})
	if p.in != nil && d.Validate() == nil {
		p.in(&d)
	}
	if p.keeps != nil && none == nil && !o.DryRun {
		p.keeps(&have.Dump, &d)
	}
	if p.force && none == nil {
		o.Replace = true
		p.m.mu.Lock()
		p.m.epoch, p.m.brokerEpoch, p.m.producerID, p.m.brokerID, p.m.clusterID = 0, 0, 0, 0, d.ClusterID
		clear(p.m.topics)
		p.m.mu.Unlock()
	}
	if p.dry {
		o.DryRun = false
	}
	err := p.memoryMember.Import(ctx, d, o)
	if err != nil && p.half != nil && ctx.Err() != nil {
		p.half(&d)
		p.m.mu.Lock()
		p.m.load(&d)
		p.m.mu.Unlock()
	}
	return err
}

func eachState(d *election.Dump, change func(st *election.PartitionState)) {
	for i := range d.Topics {
		for n := range d.Topics[i].Partitions {
			if st := d.Topics[i].Partitions[n].State; st != nil {
				change(st)
			}
		}
	}
}

func TestBrokenPortersAreRejected(t *testing.T) {
	for _, tc := range []struct {
		name, clause string
		porter       porter
	}{
		{"exports from under living brokers", "12.1", porter{living: true}},
		{"exports no marks", "12.1", porter{out: func(d *election.Dump) { d.Topics[1].Deleting = false }}},
		{"exports no configurations", "12.1", porter{out: func(d *election.Dump) { d.Configs = nil }}},
		{"exports a low broker epoch", "12.1", porter{out: func(d *election.Dump) { d.BrokerEpoch = 0 }}},
		{"exports a low position of producer ids", "12.1", porter{out: func(d *election.Dump) { d.NextProducerID = 0 }}},
		{"forgets broker epochs", "12.4 imports", porter{in: func(d *election.Dump) { d.BrokerEpoch = 0 }}},
		{"forgets controller epochs", "12.4 imports", porter{in: func(d *election.Dump) {
			d.ControllerEpoch = 0
			eachState(d, func(st *election.PartitionState) { st.ControllerEpoch = 0 })
		}}},
		{"forgets generated broker ids", "12.4 imports", porter{in: func(d *election.Dump) { d.LastBrokerID = 0 }}},
		{"begins partition epochs anew", "12.4 imports", porter{in: func(d *election.Dump) { eachState(d, func(st *election.PartitionState) { st.PartitionEpoch = 0 }) }}},
		{"forgets recoveries", "12.4 imports", porter{in: func(d *election.Dump) { eachState(d, func(st *election.PartitionState) { st.Recovering = false }) }}},
		{"keeps topics that are gone", "12.4 imports one", porter{keeps: func(have, d *election.Dump) {
			for _, was := range have.Topics {
				if !slices.ContainsFunc(d.Topics, func(t election.Topic) bool { return t.Name == was.Name }) {
					d.Topics = append(d.Topics, was)
				}
			}
			slices.SortFunc(d.Topics, func(a, b election.Topic) int { return strings.Compare(a.Name, b.Name) })
		}}},
		{"is half done", "12.5", porter{half: func(d *election.Dump) { d.Topics, d.Configs = d.Topics[:1], nil }}},
		{"replaces anything", "12.6", porter{force: true}},
		{"writes in dry runs", "12.6", porter{dry: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := slices.IndexFunc(Clauses(), func(c Clause) bool { return strings.HasPrefix(c.Name, tc.clause) })
			require.GreaterOrEqual(t, at, 0)
			require.True(t, rejected(Clauses()[at], broken{NewMemory(), func(m *brokenMember) {
				p := tc.porter
				p.memoryMember = m.memoryMember
				m.portable = p
			}}))
			require.False(t, rejected(Clauses()[at], broken{NewMemory(), func(m *brokenMember) { m.portable = porter{memoryMember: m.memoryMember} }}), "the clause rejects everything")
		})
	}
}
