package electiontest

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// recorder is a TB that remembers whether the suite failed.
type recorder struct {
	mu       sync.Mutex
	failed   bool
	cleanups []func()
}

func (r *recorder) Errorf(string, ...any) { r.mu.Lock(); r.failed = true; r.mu.Unlock() }
func (r *recorder) FailNow()              { r.Errorf(""); runtime.Goexit() }
func (r *recorder) Helper()               {}
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }

// rejected runs a clause and says whether it failed.
func rejected(c Clause, cluster Cluster) bool {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		defer func() {
			if recover() != nil {
				r.Errorf("")
			}
		}()
		c.Check(r, NewSubject(r, Options{Patience: 300 * time.Millisecond}, cluster))
	}()
	<-done
	return r.failed
}

// broken is a cluster whose members break the contract in one way.
type broken struct {
	*Memory
	change func(m *brokenMember)
}

func (b broken) Member() election.Coordination {
	m := &brokenMember{memoryMember: b.Memory.Member().(*memoryMember)}
	m.metadata = memoryMetadata{m.memoryMember}
	m.membership = memoryMembership{m.memoryMember}
	m.election = m.memoryMember
	m.requests = memoryRequests{m.memoryMember}
	m.portable = m.memoryMember
	b.change(m)
	return m
}

type brokenMember struct {
	*memoryMember
	metadata   election.Metadata
	membership election.Membership
	election   election.Election
	requests   election.Requests
	portable   election.Portable
	stop       func()
}

func (m *brokenMember) Export(ctx context.Context, o election.ExportOptions) (election.Export, error) {
	return m.portable.Export(ctx, o)
}

func (m *brokenMember) Import(ctx context.Context, d election.Dump, o election.ImportOptions) error {
	return m.portable.Import(ctx, d, o)
}

func (m *brokenMember) Election() election.Election     { return m.election }
func (m *brokenMember) Membership() election.Membership { return m.membership }
func (m *brokenMember) Metadata() election.Metadata     { return m.metadata }
func (m *brokenMember) Requests() election.Requests     { return m.requests }
func (m *brokenMember) Stop(ctx context.Context) error {
	if m.stop != nil {
		m.stop()
	}
	return m.memoryMember.Stop(ctx)
}

// The broken parts. Each embeds what it breaks.
type (
	// anyEpoch takes writes of controllers that are over.
	anyEpoch struct{ memoryMetadata }
	// lastWriterWins ignores partition epochs.
	lastWriterWins struct{ memoryMetadata }
	// configLeftovers keeps a topic's configuration when it is removed.
	configLeftovers struct {
		memoryMetadata
		kept map[string]map[string]string
	}
	// sharing returns what it keeps.
	sharing struct{ memoryMetadata }
	// sameBlocks gives each member the same producer ids.
	sameBlocks struct{ memoryMetadata }
	// unmarked removes topics that aren't marked.
	unmarked struct{ memoryMetadata }
	// blindWatch misses changes of topics.
	blindWatch struct{ memoryMetadata }
	// versionless replaces configurations whatever their version is.
	versionless struct{ memoryMetadata }
	// shrinking lets partitions go away.
	shrinking struct{ memoryMetadata }

	// stubborn keeps requests that were done.
	stubborn struct{ memoryRequests }

	// everybody elects whoever asks.
	everybody struct{ *memoryMember }
	// deaf campaigns on when its context has ended.
	deaf struct{ *memoryMember }
	// twins lets two brokers have one address.
	twins struct{ memoryMembership }
	// proposer takes every cluster id that is proposed.
	proposer struct{ memoryMembership }
)

func (b anyEpoch) MarkDeleted(ctx context.Context, _ int32, topics []string) ([]error, error) {
	b.c.m.mu.Lock()
	epoch := int32(0)
	if b.c.m.term != nil {
		epoch = b.c.m.term.epoch
	}
	b.c.m.mu.Unlock()
	return b.memoryMetadata.MarkDeleted(ctx, epoch, topics)
}

func (b lastWriterWins) UpdatePartitions(ctx context.Context, epoch int32, updates []election.PartitionUpdate) ([]election.PartitionResult, error) {
	updates = slices.Clone(updates)
	for i := range updates {
		u := &updates[i]
		topics, err := b.Topics(ctx, u.Topic)
		if err == nil && len(topics) == 1 && u.Partition >= 0 && int(u.Partition) < len(topics[0].Partitions) {
			if u.State.PartitionEpoch = -1; topics[0].Partitions[u.Partition].State != nil {
				u.State.PartitionEpoch = topics[0].Partitions[u.Partition].State.PartitionEpoch
			}
		}
	}
	return b.memoryMetadata.UpdatePartitions(ctx, epoch, updates)
}

func (b configLeftovers) RemoveTopics(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	for _, name := range topics {
		if c, err := b.Configs(ctx, election.Entity{Kind: election.TopicEntity, Name: name}); err == nil {
			b.kept[name] = c[0].Values
		}
	}
	return b.memoryMetadata.RemoveTopics(ctx, epoch, topics)
}

func (b configLeftovers) CreateTopics(ctx context.Context, epoch int32, topics []election.NewTopic) ([]error, error) {
	topics = slices.Clone(topics)
	for i := range topics {
		if old := b.kept[topics[i].Name]; len(old) > 0 && topics[i].Config == nil {
			topics[i].Config = old
		}
	}
	return b.memoryMetadata.CreateTopics(ctx, epoch, topics)
}

func (b sharing) Topics(ctx context.Context, names ...string) (all []election.Topic, err error) {
	all, err = b.memoryMetadata.Topics(ctx, names...)
	b.c.m.mu.Lock()
	defer b.c.m.mu.Unlock()
	for i := range all {
		all[i].Partitions = b.c.m.topics[all[i].Name].Partitions
	}
	return all, err
}

func (b sameBlocks) ProducerIDs(context.Context, int32, int64) (election.ProducerIDBlock, error) {
	return election.ProducerIDBlock{First: 0, Count: 1000}, nil
}

func (b unmarked) RemoveTopics(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	b.memoryMetadata.MarkDeleted(ctx, epoch, topics)
	return b.memoryMetadata.RemoveTopics(ctx, epoch, topics)
}

func (b blindWatch) Watch(ctx context.Context, _ ...election.ChangeKind) (election.Watch, error) {
	return b.c.watch(ctx, func(k election.ChangeKind) bool { return k == election.ConfigChanged })
}

func (b versionless) SetConfigs(ctx context.Context, epoch int32, configs []election.Config) ([]error, error) {
	configs = slices.Clone(configs)
	for i := range configs {
		if now, err := b.Configs(ctx, configs[i].Entity); err == nil {
			configs[i].Version = now[0].Version
		}
	}
	return b.memoryMetadata.SetConfigs(ctx, epoch, configs)
}

func (b shrinking) SetAssignments(ctx context.Context, epoch int32, as []election.TopicAssignment) ([]error, error) {
	b.c.m.mu.Lock()
	for _, a := range as {
		if t, ok := b.c.m.topics[a.Topic]; ok && t.ID == a.ID && len(a.Partitions) < len(t.Partitions) {
			t.Partitions = slices.Clone(t.Partitions[:len(a.Partitions)])
			b.c.m.topics[a.Topic] = t
		}
	}
	b.c.m.mu.Unlock()
	return b.memoryMetadata.SetAssignments(ctx, epoch, as)
}

func (b stubborn) Done(_ context.Context, _ int32, done []election.Request) ([]error, error) {
	return make([]error, len(done)), nil
}

func (b everybody) Campaign(ctx context.Context, id int32) (election.Term, error) {
	b.m.mu.Lock()
	if b.m.term != nil {
		b.m.term.lost, b.m.term = make(chan struct{}), nil // nobody tells the one before
	}
	b.m.mu.Unlock()
	return b.memoryMember.Campaign(ctx, id)
}

func (b deaf) Campaign(ctx context.Context, id int32) (election.Term, error) {
	hearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return b.memoryMember.Campaign(hearing, id)
}

func (b twins) Register(ctx context.Context, br election.Broker) (election.Registration, error) {
	b.c.m.mu.Lock()
	for id, r := range b.c.m.alive {
		if id != br.ID {
			r.broker.Endpoints = nil
		}
	}
	b.c.m.mu.Unlock()
	return b.memoryMembership.Register(ctx, br)
}

func (b proposer) ClusterID(ctx context.Context, proposed string) (string, error) {
	if proposed != "" {
		return proposed, nil
	}
	return b.memoryMembership.ClusterID(ctx, proposed)
}

func TestBrokenAreRejected(t *testing.T) {
	md := func(make func(memoryMetadata) election.Metadata) func(*brokenMember) {
		return func(m *brokenMember) { m.metadata = make(memoryMetadata{m.memoryMember}) }
	}
	kept := map[string]map[string]string{}
	for _, tc := range []struct {
		name, clause string
		change       func(m *brokenMember)
	}{
		{"takes writes of controllers that are over", "0.6 stale", func(m *brokenMember) { m.metadata = anyEpoch{memoryMetadata{m.memoryMember}} }},
		{"ignores partition epochs", "7 updating", md(func(m memoryMetadata) election.Metadata { return lastWriterWins{m} })},
		{"ignores partition epochs", "7.1 one of many", md(func(m memoryMetadata) election.Metadata { return lastWriterWins{m} })},
		{"keeps the configuration of removed topics", "5 creating", md(func(m memoryMetadata) election.Metadata { return configLeftovers{m, kept} })},
		{"returns what it keeps", "0.2", md(func(m memoryMetadata) election.Metadata { return sharing{m} })},
		{"gives producer ids twice", "10.1", md(func(m memoryMetadata) election.Metadata { return sameBlocks{m} })},
		{"removes topics without a mark", "8 deleting", md(func(m memoryMetadata) election.Metadata { return unmarked{m} })},
		{"misses changes", "3.1 no change is", md(func(m memoryMetadata) election.Metadata { return blindWatch{m} })},
		{"replaces configurations of any version", "9 config", md(func(m memoryMetadata) election.Metadata { return versionless{m} })},
		{"lets partitions go away", "6 setting", md(func(m memoryMetadata) election.Metadata { return shrinking{m} })},
		{"elects whoever asks", "1.2 one controller at", func(m *brokenMember) { m.election = everybody{m.memoryMember} }},
		{"does not listen to contexts", "0.3 waits end with their", func(m *brokenMember) { m.election = deaf{m.memoryMember} }},
		{"lets two brokers have one address", "2.4", func(m *brokenMember) { m.membership = twins{memoryMembership{m.memoryMember}} }},
		{"takes any cluster id", "2.1", func(m *brokenMember) { m.membership = proposer{memoryMembership{m.memoryMember}} }},
		{"keeps requests that were done", "11 requests", func(m *brokenMember) { m.requests = stubborn{memoryRequests{m.memoryMember}} }},
		{"forgets epochs", "1.1", func(m *brokenMember) { m.stop = func() { m.m.mu.Lock(); m.m.epoch = 0; m.m.mu.Unlock() } }},
		{"forgets epochs of brokers", "2.3", func(m *brokenMember) { m.stop = func() { m.m.mu.Lock(); m.m.brokerEpoch = 0; m.m.mu.Unlock() } }},
		{"forgets topics", "0.4 what was", func(m *brokenMember) { m.stop = func() { m.m.mu.Lock(); clear(m.m.topics); m.m.mu.Unlock() } }},
		{"forgets topics", "random", func(m *brokenMember) { m.stop = func() { m.m.mu.Lock(); clear(m.m.topics); m.m.mu.Unlock() } }},
	} {
		t.Run(tc.name+": "+tc.clause, func(t *testing.T) {
			at := slices.IndexFunc(Clauses(), func(c Clause) bool { return strings.HasPrefix(c.Name, tc.clause) })
			require.GreaterOrEqual(t, at, 0)
			require.True(t, rejected(Clauses()[at], broken{NewMemory(), tc.change}))
			require.False(t, rejected(Clauses()[at], broken{NewMemory(), func(*brokenMember) {}}), "the clause rejects everything")
		})
	}
}
