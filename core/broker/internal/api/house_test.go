package api

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/plugins/compression/gzip"
	"github.com/barnabas-mq/barnabas/plugins/compression/zstd"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

// house is a broker without coordination: partitions on real files, behind a real listener. The test is its controller.
type house struct {
	t       testing.TB
	parts   *partition.Manager
	cache   *metadata.Cache
	server  *wire.Server
	codecs  record.Codecs
	configs map[string]log.Config
	epoch   int32
	racks   bool // brokers have one of their own each
}

const (
	self  int32 = 1
	other int32 = 2 // a broker that is alive and hosts what this one doesn't
)

// testLogs opens logs in a directory of the test.
type testLogs struct {
	t      testing.TB
	dir    string
	store  storage.Storage
	codecs record.Codecs
	config func(topic string) log.Config
}

func (l *testLogs) Open(topic string, n int32, _ bool) (*log.Log, error) {
	opened, err := log.Open(context.Background(), log.Options{Dir: filepath.Join(l.dir, topic+"-"+strconv.Itoa(int(n))), Topic: topic, Partition: n,
		Storage: l.store, Codecs: l.codecs, Config: l.config(topic)})
	if err == nil {
		l.t.Cleanup(func() { opened.Close(context.Background()) })
	}
	return opened, err
}

func (l *testLogs) Delete(string, int32) error { return nil }

func newHouse(t testing.TB, change func(*Deps)) *house {
	h := &house{t: t, configs: map[string]log.Config{}}
	store, err := storagesendfile.New(storagesendfile.DefaultOptions())
	require.NoError(t, err)
	require.NoError(t, store.Start(t.Context()))
	gz, err := gzip.New(gzip.DefaultOptions())
	require.NoError(t, err)
	zs, err := zstd.New(zstd.DefaultOptions())
	require.NoError(t, err)
	for _, c := range []compression.Codec{gz, zs} {
		require.NoError(t, c.Start(t.Context()))
		t.Cleanup(func() { c.Stop(context.Background()) })
	}
	codecs, err := compression.NewSet(gz, zs)
	require.NoError(t, err)
	h.codecs = codecs
	h.cache = metadata.NewCache(func() int64 { return -1 })
	h.parts = partition.NewManager(partition.Options{BrokerID: self, BrokerEpoch: func() int64 { return -1 },
		Logs: &testLogs{t, t.TempDir(), store, codecs, h.config}, MinISR: func(string) int { return 1 },
		ReplicaLagTimeMax: 30 * time.Second, Now: time.Now})
	d := Deps{Partitions: h.parts, Codecs: codecs, Cluster: &Cluster{BrokerID: self, Metadata: h.cache}}
	if change != nil {
		change(&d)
	}
	h.server = serve(t, Handlers(d))
	t.Cleanup(func() { require.NoError(t, store.Stop(context.Background())) })
	return h
}

func (h *house) config(topic string) log.Config {
	if c, ok := h.configs[topic]; ok {
		return c
	}
	return log.DefaultConfig()
}

func topicID(name string) (id [16]byte) {
	copy(id[:], name)
	id[15] = 1
	return id
}

// topic makes this broker the leader of partitions 0 to n-1, with these replicas (itself alone when none are given).
func (h *house) topic(name string, n int32, replicas ...int32) {
	if len(replicas) == 0 {
		replicas = []int32{self}
	}
	for p := range n {
		h.assign(name, p, self, replicas...)
	}
}

// assign pushes who leads a partition, as the controller does.
func (h *house) assign(name string, p, leader int32, replicas ...int32) {
	h.epoch++
	st := kmsg.NewLeaderAndISRRequestTopicPartition()
	st.Topic, st.Partition, st.Leader, st.LeaderEpoch, st.ISR, st.Replicas, st.IsNew = name, p, leader, h.epoch, replicas, replicas, true
	push := kmsg.NewPtrLeaderAndISRRequest()
	push.Version, push.BrokerEpoch, push.ControllerID = 7, -1, self
	push.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: name, TopicID: topicID(name), PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{st}}}
	for _, r := range replicas {
		if r == self {
			require.Zero(h.t, h.parts.ApplyLeaderAndISR(push).ErrorCode)
		}
	}
	up := kmsg.NewPtrUpdateMetadataRequest()
	up.Version, up.BrokerEpoch, up.ControllerID = 8, -1, self
	us := kmsg.NewUpdateMetadataRequestTopicPartition()
	us.Partition, us.Leader, us.LeaderEpoch, us.ISR, us.Replicas = p, leader, h.epoch, replicas, replicas
	up.TopicStates = []kmsg.UpdateMetadataRequestTopicState{{Topic: name, TopicID: topicID(name), PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{us}}}
	for _, id := range []int32{self, other} {
		b := kmsg.NewUpdateMetadataRequestLiveBroker()
		b.ID = id
		if h.racks {
			b.Rack = kmsg.StringPtr(fmt.Sprint("rack-", id))
		}
		e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
		e.Host, e.Port, e.ListenerName = fmt.Sprint("host-", id), 9092, "PLAINTEXT"
		b.Endpoints = append(b.Endpoints, e)
		up.LiveBrokers = append(up.LiveBrokers, b)
	}
	require.Zero(h.t, h.cache.Update(up).ErrorCode)
}

func (h *house) partition(name string, n int32) *partition.Partition {
	p, err := h.parts.Get(partition.ID{Topic: name, Partition: n})
	require.NoError(h.t, err)
	return p
}

func (h *house) end(name string, n int32) int64 { return h.partition(name, n).Log().EndOffset() }

// batch encodes records with these values as one batch of format 2.
func batch(t testing.TB, values ...string) []byte {
	b := record.NewBuilder(record.Options{})
	for i, v := range values {
		require.NoError(t, b.Append(record.Record{Offset: int64(i), Timestamp: 1_600_000_000_000 + int64(i), Key: []byte("k"), Value: []byte(v)}))
	}
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

// produceTo is a request for one partition.
func produceTo(topic string, p int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, TopicID: topicID(topic), Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: p, Records: records}}}}
	return req
}

// put appends batches, one request each.
func (h *house) put(topic string, p int32, batches ...[]byte) {
	h.t.Helper()
	c := connect(h.t, h.server)
	defer c.Close()
	for _, b := range batches {
		resp := call[*kmsg.ProduceResponse](c, 9, produceTo(topic, p, b))
		require.Zero(h.t, resp.Topics[0].Partitions[0].ErrorCode)
	}
}

// fetchOf is a session-less request that doesn't wait.
func fetchOf(topic string, parts ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 50 << 20
	req.Topics = []kmsg.FetchRequestTopic{{Topic: topic, TopicID: topicID(topic), Partitions: parts}}
	return req
}

func from(p int32, offset int64) kmsg.FetchRequestTopicPartition {
	out := kmsg.NewFetchRequestTopicPartition()
	out.Partition, out.FetchOffset, out.PartitionMaxBytes = p, offset, 10<<20
	out.CurrentLeaderEpoch, out.LastFetchedEpoch, out.LogStartOffset = -1, -1, -1
	return out
}

// records lists "offset=value" of the whole batches in b.
func records(t testing.TB, codecs record.Codecs, b []byte) string {
	var out []string
	for batch, err := range record.All(b) {
		if err != nil {
			break // a partial one at the end
		}
		for r, err := range batch.Each(codecs, 1<<20) {
			require.NoError(t, err)
			out = append(out, fmt.Sprintf("%d=%s", r.Offset, r.Value))
		}
	}
	return strings.Join(out, " ")
}
