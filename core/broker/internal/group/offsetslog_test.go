package group_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/topic"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

const (
	self   = 1
	shards = 5
)

// broker is the part of a broker that a store stands on: replicas over real logs, and what is known of the cluster.
type broker struct {
	t      testing.TB
	dir    string
	config log.Config
	minISR int
	epoch  int32 // the next leader epoch
	// replicas, when set, are those of each shard; else those in sync.
	replicas []int32

	mu    sync.Mutex
	logs  []*log.Log
	parts *partition.Manager
	cache *metadata.Cache
	group.Log
	hooks *group.Manager
}

func newBroker(t testing.TB) *broker {
	b := &broker{t: t, dir: t.TempDir(), config: log.DefaultConfig(), minISR: 1}
	b.cache = metadata.NewCache(func() int64 { return 1 })
	b.parts = partition.NewManager(partition.Options{
		BrokerID: self, BrokerEpoch: func() int64 { return 1 }, Logs: b, MinISR: func(string) int { return b.minISR },
		ReplicaLagTimeMax: time.Minute, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		OnLeader: func(id partition.ID, epoch int32) {
			if b.hooks != nil {
				b.hooks.Lead(id.Partition, epoch)
			}
		},
		OnFollower: func(id partition.ID, _ int32) {
			if b.hooks != nil {
				b.hooks.Resign(id.Partition)
			}
		},
	})
	b.Log = group.Log{Partitions: b.parts, Snapshot: b.cache.Snapshot, EnsureTopic: func(context.Context, string) error {
		b.lead(self, self)
		return nil
	}}
	t.Cleanup(func() {
		for _, l := range b.logs {
			require.NoError(t, l.Close(context.Background()))
		}
	})
	return b
}

// Open opens the log of a partition.
func (b *broker) Open(name string, n int32, _ bool) (*log.Log, error) {
	codecs, err := compression.NewSet()
	require.NoError(b.t, err)
	engine, err := storagesendfile.New(storagesendfile.DefaultOptions())
	require.NoError(b.t, err)
	require.NoError(b.t, engine.Start(context.Background()))
	l, err := log.Open(context.Background(), log.Options{Dir: filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, n)), Topic: name, Partition: n,
		Storage: engine, Codecs: codecs, Config: b.config, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.logs = append(b.logs, l)
	}
	return l, err
}

// Delete is not needed here.
func (*broker) Delete(string, int32) error { return errors.ErrUnsupported }

// lead makes a broker leader of all shards, under the next leader epoch, with these in-sync replicas.
func (b *broker) lead(leader int32, isr ...int32) {
	update := kmsg.NewPtrUpdateMetadataRequest()
	update.Version, update.ControllerEpoch, update.ControllerID = 8, 1, self
	change := kmsg.NewPtrLeaderAndISRRequest()
	change.Version, change.ControllerEpoch = 7, 1
	id := [16]byte{7}
	replicas := b.replicas
	if replicas == nil {
		replicas = isr
	}
	ut := kmsg.UpdateMetadataRequestTopicState{Topic: topic.Name, TopicID: id}
	ct := kmsg.LeaderAndISRRequestTopicState{Topic: topic.Name, TopicID: id}
	for n := range int32(shards) {
		ut.PartitionStates = append(ut.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{Partition: n, Leader: leader, LeaderEpoch: b.epoch, Replicas: replicas, ISR: isr})
		ct.PartitionStates = append(ct.PartitionStates, kmsg.LeaderAndISRRequestTopicPartition{Partition: n, Leader: leader, LeaderEpoch: b.epoch,
			ControllerEpoch: 1, ZKVersion: b.epoch, Replicas: replicas, ISR: isr, IsNew: b.epoch == 0})
	}
	update.TopicStates, change.TopicStates = []kmsg.UpdateMetadataRequestTopicState{ut}, []kmsg.LeaderAndISRRequestTopicState{ct}
	require.Zero(b.t, b.cache.Update(update).ErrorCode)
	require.Zero(b.t, b.parts.ApplyLeaderAndISR(change).ErrorCode)
	b.epoch++
}

// TestStoreOnRealLogs runs the stores' suite over a broker's own logs.
func TestStoreOnRealLogs(t *testing.T) {
	for _, c := range offsetstest.Clauses() {
		t.Run(c.Name, func(t *testing.T) {
			b := newBroker(t)
			// The suite makes epochs up; each is reached when it is first asked for.
			log := &followingLog{broker: b}
			c.Check(t, offsetstest.World{Keeps: true, Store: func() offsets.Store {
				s, err := topic.New(offsets.Settings{Log: log})
				require.NoError(t, err)
				return s
			}})
		})
	}
}

// followingLog makes the broker leader under whatever newer epoch a load asks for.
type followingLog struct {
	*broker
	mu sync.Mutex
}

func (l *followingLog) Read(ctx context.Context, name string, shard, epoch int32, visit func([]byte) error) error {
	l.mu.Lock()
	if p, err := l.parts.Get(partition.ID{Topic: name, Partition: shard}); err == nil {
		if _, current := p.Leader(); current < epoch {
			l.epoch = epoch
			l.lead(self, self)
		}
	}
	l.mu.Unlock()
	return l.broker.Read(ctx, name, shard, epoch, visit)
}

func one(t testing.TB, size int) []byte {
	b := record.NewBuilder(record.Options{})
	require.NoError(t, b.Append(record.Record{Key: []byte("k"), Value: make([]byte, size)}))
	batch, err := b.Build(nil, nil)
	require.NoError(t, err)
	return batch
}

func TestLog(t *testing.T) {
	b := newBroker(t)
	ctx := t.Context()
	_, err := b.Shards(topic.Name)
	require.ErrorIs(t, err, offsets.ErrUnavailable)
	require.ErrorIs(t, b.Append(ctx, topic.Name, 0, 0, one(t, 1)), offsets.ErrUnavailable, "no such partition")
	require.NoError(t, b.Ensure(ctx, topic.Name))
	require.NoError(t, b.Ensure(ctx, topic.Name))
	n, err := b.Shards(topic.Name)
	require.NoError(t, err)
	require.EqualValues(t, shards, n)

	for i := range 50 {
		require.NoError(t, b.Append(ctx, topic.Name, 0, 0, one(t, 100_000)), "batch %d", i)
	}
	var read, chunks int
	require.NoError(t, b.Read(ctx, topic.Name, 0, 0, func(chunk []byte) error {
		chunks++
		for _, err := range record.All(chunk) {
			require.NoError(t, err)
			read++
		}
		return nil
	}))
	require.Equal(t, 50, read)
	require.Greater(t, chunks, 1, "not all at once")
	boom := errors.New("boom")
	require.ErrorIs(t, b.Read(ctx, topic.Name, 0, 0, func([]byte) error { return boom }), boom)

	require.ErrorIs(t, b.Append(ctx, topic.Name, 0, 1, one(t, 1)), offsets.ErrNotOwner, "an epoch to come")
	p, err := b.parts.Get(partition.ID{Topic: topic.Name, Partition: 0})
	require.NoError(t, err)
	require.EqualValues(t, 50, p.Log().EndOffset(), "and nothing was written")
	require.ErrorIs(t, b.Append(ctx, topic.Name, 0, 0, one(t, 2<<20)), offsets.ErrTooLarge)
	b.lead(2, self, 2)
	require.ErrorIs(t, b.Append(ctx, topic.Name, 0, 0, one(t, 1)), offsets.ErrNotOwner, "another leads")
	require.ErrorIs(t, b.Read(ctx, topic.Name, 0, 0, func([]byte) error { return nil }), offsets.ErrNotOwner)
}

// TestLogWaitsForReplicas: an append that the others don't have is not acknowledged.
func TestLogWaitsForReplicas(t *testing.T) {
	b := newBroker(t)
	b.lead(self, self, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.Append(ctx, topic.Name, 0, 0, one(t, 1)), offsets.ErrTimedOut)
	done := make(chan error)
	go func() { done <- b.Append(t.Context(), topic.Name, 0, 0, one(t, 1)) }()
	p, err := b.parts.Get(partition.ID{Topic: topic.Name, Partition: 0})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.Log().EndOffset() == 2 }, time.Minute, time.Millisecond)
	b.lead(2, self, 2)
	require.ErrorIs(t, <-done, offsets.ErrNotOwner)

}

// TestLogRefusesTooFewReplicas: with two replicas asked for and one of two in sync, nothing is written.
func TestLogRefusesTooFewReplicas(t *testing.T) {
	b := newBroker(t)
	b.minISR = 2
	b.replicas = []int32{self, 2}
	b.lead(self, self)
	require.ErrorIs(t, b.Append(t.Context(), topic.Name, 0, 0, one(t, 1)), offsets.ErrUnavailable)
	p, err := b.parts.Get(partition.ID{Topic: topic.Name, Partition: 0})
	require.NoError(t, err)
	require.Zero(t, p.Log().EndOffset())
}

// TestGroupsOnRealLogs: what was committed is there after a fail-over.
func TestGroupsOnRealLogs(t *testing.T) {
	b := newBroker(t)
	s, err := topic.New(offsets.Settings{Log: b})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	m := group.New(group.Options{Store: s, Config: group.Config{MaxMetadata: 4096, CommitTimeout: 5 * time.Second, Retention: time.Hour}})
	b.hooks = m
	m.Start()
	defer func() {
		require.NoError(t, m.Stop(context.Background()))
		require.NoError(t, s.Stop(context.Background()))
	}()
	_, err = m.ShardOf("g")
	require.ErrorIs(t, err, group.ErrUnavailable)
	require.NoError(t, m.Prepare(t.Context()))
	loaded := func() bool { list, err := m.List(); return err == nil && list == nil }
	require.Eventually(t, loaded, time.Minute, time.Millisecond)
	for i := range 20 {
		_, err := m.Commit(t.Context(), fmt.Sprintf("g%d", i), group.Commit{Member: group.Member{Generation: -1},
			Offsets: map[group.TopicPartition]offsets.Offset{{Topic: "t", Partition: 3}: {Offset: int64(i), ExpireTimestamp: offsets.None}}})
		require.NoError(t, err)
	}
	b.lead(2, self, 2)
	_, err = m.Fetch("g1", nil, false)
	require.ErrorIs(t, err, group.ErrNotCoordinator)
	b.lead(self, self)
	require.Eventually(t, func() bool { list, err := m.List(); return err == nil && len(list) == 20 }, time.Minute, time.Millisecond)
	for i := range int64(20) {
		list, err := m.Fetch(fmt.Sprintf("g%d", i), nil, false)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, i, list[0].Offset.Offset)
	}
}
