package partition_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const self = 1

// rig is a manager over real logs in a temporary directory.
type rig struct {
	t      *testing.T
	dir    string
	config log.Config
	minISR int

	open    func() (*log.Log, error) // instead of a new one, when it isn't nil
	viewing func()                   // called, when it isn't nil, before anything is read

	mu     sync.Mutex
	events []string
	logs   map[string]*log.Log
	*partition.Manager
}

func newRig(t *testing.T, change ...func(*rig)) *rig {
	r := &rig{t: t, dir: t.TempDir(), config: log.DefaultConfig(), minISR: 1, logs: map[string]*log.Log{}}
	for _, c := range change {
		c(r)
	}
	note := func(what string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, what)
	}
	r.Manager = partition.NewManager(partition.Options{
		BrokerID:          self,
		BrokerEpoch:       func() int64 { return 10 },
		Logs:              r,
		MinISR:            func(string) int { return r.minISR },
		ReplicaLagTimeMax: 30 * time.Second,
		OnLeader:          func(id partition.ID, e int32) { note(fmt.Sprintf("%s leads %d", id, e)) },
		OnFollower:        func(id partition.ID, e int32) { note(fmt.Sprintf("%s follows %d", id, e)) },
		OnRemoved:         func(id partition.ID) { note(id.String() + " removed") },
		Now:               time.Now,
		Logger:            slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		for _, l := range r.logs {
			require.NoError(t, l.Close(context.Background()))
		}
	})
	return r
}

func (r *rig) Open(topic string, n int32, _ bool) (*log.Log, error) {
	if r.open != nil {
		return r.open()
	}
	codecs, err := compression.NewSet()
	require.NoError(r.t, err)
	engine, err := storagesendfile.New(storagesendfile.DefaultOptions())
	require.NoError(r.t, err)
	require.NoError(r.t, engine.Start(context.Background()))
	name := partition.ID{Topic: topic, Partition: n}.String()
	l, err := log.Open(context.Background(), log.Options{
		Dir: filepath.Join(r.dir, name), Topic: topic, Partition: n, Storage: watched{engine, r}, Codecs: codecs, Config: r.config,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		r.mu.Lock()
		r.logs[name] = l
		r.mu.Unlock()
	}
	return l, err
}

// watched is a storage that tells the rig before it gives a view.
type watched struct {
	storage.Storage
	r *rig
}

func (s watched) Create(path string, o storage.Options) (storage.Segment, error) {
	g, err := s.Storage.Create(path, o)
	return watchedSegment{g, s.r}, err
}

type watchedSegment struct {
	storage.Segment
	r *rig
}

func (s watchedSegment) View(pos, n int64) (storage.View, error) {
	if s.r.viewing != nil {
		s.r.viewing()
	}
	return s.Segment.View(pos, n)
}

func (r *rig) Delete(topic string, n int32) error {
	name := partition.ID{Topic: topic, Partition: n}.String()
	r.mu.Lock()
	l := r.logs[name]
	delete(r.logs, name)
	r.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Delete()
}

var topicID = [16]byte{1, 2, 3}

func push(leader, leaderEpoch int32, replicas ...int32) *kmsg.LeaderAndISRRequest {
	req := kmsg.NewPtrLeaderAndISRRequest()
	req.Version, req.ControllerEpoch, req.BrokerEpoch = 7, 1, 10
	req.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: topicID, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{
		{Partition: 0, ControllerEpoch: 1, Leader: leader, LeaderEpoch: leaderEpoch, ISR: replicas, Replicas: replicas, IsNew: leaderEpoch == 0},
	}}}
	return req
}

func (r *rig) lead() *partition.Partition {
	resp := r.ApplyLeaderAndISR(push(self, 0, self))
	require.Zero(r.t, resp.ErrorCode)
	require.Zero(r.t, resp.Topics[0].Partitions[0].ErrorCode)
	p, err := r.Get(partition.ID{Topic: "t"})
	require.NoError(r.t, err)
	return p
}

func batch(t *testing.T, values ...string) []byte {
	b := record.NewBuilder(record.Options{})
	for i, v := range values {
		require.NoError(t, b.Append(record.Record{Offset: int64(i), Timestamp: time.Now().UnixMilli(), Value: []byte(v)}))
	}
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

func consume(offset int64) partition.Read {
	return partition.Read{Offset: offset, MaxBytes: 1 << 20, MinOneBatch: true, ReplicaID: partition.Consumer, LeaderEpoch: -1, LastFetchedEpoch: -1}
}

func TestAppendIsCommittedAndReadBack(t *testing.T) {
	r := newRig(t)
	p := r.lead()
	require.True(t, p.IsLeader())
	sent := batch(t, "one", "two")
	got, err := p.Append(partition.Append{Batches: sent, Acks: -1})
	require.NoError(t, err)
	require.EqualValues(t, 0, got.BaseOffset)
	done, err, _ := p.Committed(got, -1, nil)
	require.True(t, done)
	require.NoError(t, err)

	res, err := p.Read(consume(1))
	require.NoError(t, err)
	require.EqualValues(t, 2, res.HighWatermark)
	var out bytes.Buffer
	_, err = res.View.WriteTo(&out)
	require.NoError(t, err)
	res.View.Release()
	require.Equal(t, sent, out.Bytes())

	res, err = p.Read(consume(2))
	require.NoError(t, err)
	require.Nil(t, res.View)
	_, err = p.Read(consume(3))
	require.ErrorIs(t, err, log.ErrOffsetOutOfRange)
	q, err := r.ByTopicID(topicID, 0)
	require.NoError(t, err)
	require.Same(t, p, q)
	_, err = r.ByTopicID([16]byte{9}, 0)
	require.ErrorIs(t, err, partition.ErrUnknownTopicID)
}

func TestEpochsFence(t *testing.T) {
	r := newRig(t)
	p := r.lead()
	require.Zero(t, r.ApplyLeaderAndISR(push(self, 4, self)).Topics[0].Partitions[0].ErrorCode)
	q := consume(0)
	q.LeaderEpoch = 3
	_, err := p.Read(q)
	require.ErrorIs(t, err, partition.ErrFencedLeaderEpoch)
	q.LeaderEpoch = 5
	_, err = p.Read(q)
	require.ErrorIs(t, err, partition.ErrUnknownLeaderEpoch)

	stale := r.ApplyLeaderAndISR(push(self, 4, self)).Topics[0].Partitions[0].ErrorCode
	require.Equal(t, kerr.StaleControllerEpoch.Code, stale)
	other := push(self, 9, self)
	other.TopicStates[0].TopicID = [16]byte{7}
	require.Equal(t, kerr.InconsistentTopicID.Code, r.ApplyLeaderAndISR(other).Topics[0].Partitions[0].ErrorCode)
	old := push(self, 9, self)
	old.ControllerEpoch = 0
	require.Equal(t, kerr.StaleControllerEpoch.Code, r.ApplyLeaderAndISR(old).ErrorCode)
	old = push(self, 9, self)
	old.BrokerEpoch = 9
	require.Equal(t, kerr.StaleBrokerEpoch.Code, r.ApplyLeaderAndISR(old).ErrorCode)
	require.Equal(t, kerr.UnknownTopicOrPartition.Code, r.ApplyLeaderAndISR(push(2, 9, 2)).Topics[0].Partitions[0].ErrorCode)
}

func TestWhoWaitsForReplicasLearnsOfTheLossOfLeadership(t *testing.T) {
	r := newRig(t)
	resp := r.ApplyLeaderAndISR(push(self, 0, self, 2))
	require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
	p, err := r.Get(partition.ID{Topic: "t"})
	require.NoError(t, err)
	a, err := p.Append(partition.Append{Batches: batch(t, "x"), Acks: -1})
	require.NoError(t, err)
	answers := make(chan error, 2)
	done, _, cancel := p.Committed(a, -1, func(err error) { answers <- err })
	require.False(t, done)
	done, _, _ = p.Committed(a, -1, func(err error) { answers <- err })
	require.False(t, done)
	require.True(t, cancel())
	require.False(t, cancel())

	require.Zero(t, r.ApplyLeaderAndISR(push(2, 1, self, 2)).Topics[0].Partitions[0].ErrorCode)
	require.ErrorIs(t, <-answers, partition.ErrNotLeader)
	require.Empty(t, answers, "the cancelled one is not called")
	_, err = p.Append(partition.Append{Batches: batch(t, "y")})
	require.ErrorIs(t, err, partition.ErrNotLeader)
	require.Equal(t, []string{"t-0 leads 0", "t-0 follows 1"}, r.events)
}

// TestStandsDown plays a broker that stops: nobody waits on it for followers that don't come any more.
func TestStandsDown(t *testing.T) {
	r := newRig(t)
	r.ApplyLeaderAndISR(push(self, 0, self, 2))
	p, err := r.Get(partition.ID{Topic: "t"})
	require.NoError(t, err)
	a, err := p.Append(partition.Append{Batches: batch(t, "x"), Acks: -1})
	require.NoError(t, err)
	answers := make(chan error, 1)
	done, _, _ := p.Committed(a, -1, func(err error) { answers <- err })
	require.False(t, done)
	w := partition.NewWatch()
	p.Watch(w, false)
	defer p.Unwatch(w)

	r.StandDown()
	r.StandDown()
	require.ErrorIs(t, <-answers, partition.ErrNotLeader)
	<-w.C()
	_, err = p.Append(partition.Append{Batches: batch(t, "y")})
	require.ErrorIs(t, err, partition.ErrNotLeader)
	_, err = p.Read(consume(0))
	require.ErrorIs(t, err, partition.ErrNotLeader)
	_, _, err = p.Following()
	require.ErrorIs(t, err, partition.ErrNotFollower, "there is no leader that it knows of")

	r.ApplyLeaderAndISR(push(self, 1, self))
	_, err = p.Append(partition.Append{Batches: batch(t, "z"), Acks: -1})
	require.NoError(t, err, "the controller has the last word")
}

func TestFollowerFetchCommits(t *testing.T) {
	r := newRig(t)
	r.ApplyLeaderAndISR(push(self, 0, self, 2))
	p, _ := r.Get(partition.ID{Topic: "t"})
	a, err := p.Append(partition.Append{Batches: batch(t, "x", "y"), Acks: -1})
	require.NoError(t, err)
	answers := make(chan error, 1)
	done, _, _ := p.Committed(a, -1, func(err error) { answers <- err })
	require.False(t, done)

	res, err := p.Read(consume(0))
	require.NoError(t, err)
	require.Nil(t, res.View, "nothing above the high watermark")

	w := partition.NewWatch()
	p.Watch(w, false)
	defer p.Unwatch(w)
	fetch := consume(0)
	fetch.ReplicaID = 2
	res, err = p.Read(fetch)
	require.NoError(t, err)
	require.NotNil(t, res.View, "a follower reads to the end")
	res.View.Release()
	require.Empty(t, answers)
	fetch.Offset = 2
	res, err = p.Read(fetch)
	require.NoError(t, err)
	require.EqualValues(t, 2, res.HighWatermark)
	require.NoError(t, <-answers)
	<-w.C()

	fetch.ReplicaID = 5
	_, err = p.Read(fetch)
	require.ErrorIs(t, err, partition.ErrNotLeader, "not a replica of this partition")
}

func TestNotEnoughReplicas(t *testing.T) {
	r := newRig(t, func(r *rig) { r.minISR = 2 })
	req := push(self, 0, self, 2)
	req.TopicStates[0].PartitionStates[0].ISR = []int32{self}
	r.ApplyLeaderAndISR(req)
	p, _ := r.Get(partition.ID{Topic: "t"})
	_, err := p.Append(partition.Append{Batches: batch(t, "x"), Acks: -1})
	require.ErrorIs(t, err, partition.ErrNotEnoughReplicas)
	require.Zero(t, p.Log().EndOffset())
	_, err = p.Append(partition.Append{Batches: batch(t, "x"), Acks: 1})
	require.NoError(t, err)
	require.Zero(t, p.Log().HighWatermark())

	r.Configure("t", r.config, 1)
	_, err = p.Append(partition.Append{Batches: batch(t, "y"), Acks: -1})
	require.NoError(t, err)
	require.EqualValues(t, 2, p.Log().HighWatermark())
}

// TestFlushedBeforeAcknowledged: with flush.messages=1 an append is neither acknowledged nor shown before it is on the device,
// also with acks=1, and many writers make progress together.
func TestFlushedBeforeAcknowledged(t *testing.T) {
	r := newRig(t, func(r *rig) { r.config.FlushMessages = 1 })
	p := r.lead()
	var wg sync.WaitGroup
	for _, acks := range []int16{-1, 1, -1, 1, -1, 1} {
		wg.Go(func() {
			for range 20 {
				a, err := p.Append(partition.Append{Batches: batch(t, "x"), Acks: acks})
				if err != nil {
					t.Error(err)
					return
				}
				answer := make(chan error, 1)
				done, err, _ := p.Committed(a, acks, func(err error) { answer <- err })
				if !done {
					err = <-answer
				}
				if err != nil || p.Log().RecoveryPoint() <= a.LastOffset {
					t.Errorf("acks %d: acknowledged offset %d with %v, durable up to %d", acks, a.LastOffset, err, p.Log().RecoveryPoint())
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 120, p.Log().HighWatermark())
}

// TestFlushedBeforeANewLeaderShowsIt: with flush.messages=1 what a crash left in the log without a flush is not shown before it is
// on the device.
func TestFlushedBeforeANewLeaderShowsIt(t *testing.T) {
	r := newRig(t, func(r *rig) { r.config.FlushMessages = 1 })
	l, err := r.Open("t", 0, true)
	require.NoError(t, err)
	_, err = l.AppendLeader(log.LeaderAppend{Batches: batch(t, "a", "b")})
	require.NoError(t, err)
	require.Zero(t, l.RecoveryPoint())
	r.open = func() (*log.Log, error) { return l, nil }
	p := r.lead()
	require.EqualValues(t, 2, l.HighWatermark())
	require.EqualValues(t, 2, l.RecoveryPoint())
	got, err := p.Read(consume(0))
	require.NoError(t, err)
	require.NotNil(t, got.View)
	got.View.Release()
}

// TestNobodyFetchesAsTheLeader: a client that gives the leader's own id for its replica's sees nothing above the high watermark.
// A follower's fetch counts under the leader epoch that it was checked against, and not under the next: what the follower has may not be
// this leader's any more.
func TestFetchDoesNotCountUnderTheNextEpoch(t *testing.T) {
	r := newRig(t)
	require.Zero(t, r.ApplyLeaderAndISR(push(self, 0, self, 2)).ErrorCode)
	p, err := r.Get(partition.ID{Topic: "t"})
	require.NoError(t, err)
	for range 2 {
		_, err = p.Append(partition.Append{Batches: batch(t, "x"), Acks: 1})
		require.NoError(t, err)
	}
	r.viewing = func() {
		r.viewing = nil
		require.Zero(t, r.ApplyLeaderAndISR(push(self, 1, self, 2)).Topics[0].Partitions[0].ErrorCode)
	}
	fetch := consume(1)
	fetch.ReplicaID, fetch.LeaderEpoch = 2, 0
	got, err := p.Read(fetch)
	require.ErrorIs(t, err, partition.ErrUnknownLeaderEpoch)
	require.Nil(t, got.View)
	require.EqualValues(t, -1, p.Standing().Followers[0].End)
	require.Zero(t, p.Log().HighWatermark())
}

func TestNobodyFetchesAsTheLeader(t *testing.T) {
	r := newRig(t)
	require.Zero(t, r.ApplyLeaderAndISR(push(self, 0, self, 2)).ErrorCode)
	p, err := r.Get(partition.ID{Topic: "t"})
	require.NoError(t, err)
	_, err = p.Append(partition.Append{Batches: batch(t, "not yet with the other replica"), Acks: 1})
	require.NoError(t, err)
	require.Zero(t, p.Log().HighWatermark())
	as := consume(0)
	as.ReplicaID = self
	got, err := p.Read(as)
	require.Nil(t, got.View)
	require.ErrorIs(t, err, partition.ErrNotLeader)
	as.LeaderEpoch = 0
	_, err = p.Read(as)
	require.ErrorIs(t, err, partition.ErrUnknownLeaderEpoch)
}

// TestUnacknowledgedIsFlushedAndShown: acks=0 asks for no answer, but readers see what was appended once it is flushed.
func TestUnacknowledgedIsFlushedAndShown(t *testing.T) {
	r := newRig(t, func(r *rig) { r.config.FlushMessages = 1 })
	p := r.lead()
	w := partition.NewWatch()
	p.Watch(w, false)
	defer p.Unwatch(w)
	_, err := p.Append(partition.Append{Batches: batch(t, "x"), Acks: 0})
	require.NoError(t, err)
	<-w.C()
	require.EqualValues(t, 1, p.Log().HighWatermark())
	require.EqualValues(t, 1, p.Log().RecoveryPoint())
}

func TestListOffsets(t *testing.T) {
	r := newRig(t)
	p := r.lead()
	for i := range 4 {
		b := record.NewBuilder(record.Options{})
		require.NoError(t, b.Append(record.Record{Timestamp: int64(2 * (i + 1)), Value: []byte("v")}))
		out, err := b.Build(nil, nil)
		require.NoError(t, err)
		_, err = p.Append(partition.Append{Batches: out})
		require.NoError(t, err)
	}
	for _, tt := range []struct{ ask, offset, timestamp int64 }{
		{0, 0, 2}, {2, 0, 2}, {3, 1, 4}, {5, 2, 6}, {7, 3, 8}, {8, 3, 8}, {9, -1, -1},
		{partition.Latest, 4, -1}, {partition.Earliest, 0, -1}, {partition.MaxTimestamp, 3, 8}, {partition.EarliestLocal, 0, -1}, {partition.LatestTiered, -1, -1},
	} {
		offset, timestamp, _, err := p.ListOffset(partition.ListOffset{Timestamp: tt.ask, ReplicaID: partition.Consumer, LeaderEpoch: -1})
		require.NoError(t, err)
		require.Equal(t, [2]int64{tt.offset, tt.timestamp}, [2]int64{offset, timestamp}, "asked for %d", tt.ask)
	}
	_, _, _, err := p.ListOffset(partition.ListOffset{Timestamp: -6, ReplicaID: partition.Consumer, LeaderEpoch: -1})
	require.ErrorIs(t, err, partition.ErrUnsupportedTimestamp)
}

func TestDeleteRecords(t *testing.T) {
	r := newRig(t)
	p := r.lead()
	_, err := p.Append(partition.Append{Batches: batch(t, "a", "b", "c")})
	require.NoError(t, err)
	low, err := p.DeleteRecords(2)
	require.NoError(t, err)
	require.EqualValues(t, 2, low)
	_, err = p.Read(consume(1))
	require.ErrorIs(t, err, log.ErrOffsetOutOfRange)
	_, err = p.DeleteRecords(4)
	require.ErrorIs(t, err, partition.ErrOffsetOutOfRange)
	_, err = p.DeleteRecords(-2)
	require.ErrorIs(t, err, partition.ErrOffsetOutOfRange)
	low, err = p.DeleteRecords(-1)
	require.NoError(t, err)
	require.EqualValues(t, 3, low)

	compacted := r.config
	compacted.Compact, compacted.Delete = true, false
	r.Configure("t", compacted, 1)
	_, err = p.DeleteRecords(-1)
	require.ErrorIs(t, err, partition.ErrPolicy)
}

func TestStopReplica(t *testing.T) {
	r := newRig(t)
	p := r.lead()
	require.Zero(t, r.ApplyLeaderAndISR(push(self, 5, self)).ErrorCode)
	req := kmsg.NewPtrStopReplicaRequest()
	req.Version, req.ControllerEpoch, req.BrokerEpoch = 4, 1, 10
	req.Topics = []kmsg.StopReplicaRequestTopic{{Topic: "t", PartitionStates: []kmsg.StopReplicaRequestTopicPartitionState{{Partition: 0, LeaderEpoch: 4, Delete: true}}}}
	require.Equal(t, kerr.FencedLeaderEpoch.Code, r.StopReplicas(req).Partitions[0].ErrorCode)
	require.True(t, p.IsLeader())

	w := partition.NewWatch()
	p.Watch(w, false)
	req.Topics[0].PartitionStates[0].LeaderEpoch = -2
	require.Zero(t, r.StopReplicas(req).Partitions[0].ErrorCode)
	<-w.C()
	_, err := r.Get(partition.ID{Topic: "t"})
	require.ErrorIs(t, err, partition.ErrUnknownPartition)
	_, err = p.Append(partition.Append{Batches: batch(t, "x")})
	require.ErrorIs(t, err, partition.ErrUnknownPartition)
	require.Equal(t, "t-0 removed", r.events[len(r.events)-1])
	_, err = os.Stat(filepath.Join(r.dir, "t-0"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func BenchmarkAppend(b *testing.B) {
	t := &testing.T{}
	r := &rig{t: t, dir: b.TempDir(), config: log.DefaultConfig(), minISR: 1, logs: map[string]*log.Log{}}
	r.Manager = partition.NewManager(partition.Options{BrokerID: self, BrokerEpoch: func() int64 { return 10 }, Logs: r,
		MinISR: func(string) int { return 1 }, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	p := r.lead()
	sent := batch(t, string(make([]byte, 1000)))
	b.ReportAllocs()
	for b.Loop() {
		a, err := p.Append(partition.Append{Batches: sent, Acks: -1})
		if err != nil {
			b.Fatal(err)
		}
		record.SetBaseOffset(sent, 0)
		if done, err, _ := p.Committed(a, -1, nil); !done || err != nil {
			b.Fatal(done, err)
		}
	}
}
