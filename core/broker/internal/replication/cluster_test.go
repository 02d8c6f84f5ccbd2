package replication_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/broker/internal/api"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/replication"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
	storagemmap "github.com/barnabas-mq/barnabas/storage-mmap"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to come.
const patience = 60 * time.Second

// cluster is some brokers' replicas, their logs and what goes between them, with the test in the place of the controller.
type cluster struct {
	t      testing.TB
	dir    string
	config log.Config
	mapped bool // storage-mmap instead of storage-sendfile
	minISR int
	lag    time.Duration
	ibp    replication.Versions
	topic  [16]byte // its id

	mu      sync.Mutex
	nodes   map[int32]*node
	cut     map[int32]bool // nobody reaches these, and they reach nobody
	parts   map[int32]*word
	kept    map[string]checkpoint
	sent    *partition.Quota // of all brokers, and which partitions count for them
	fetched *partition.Quota
	slow    func(partition.ID) (leader, follower bool)
	refused int // AlterPartition requests to refuse
}

// word is the controller's last word on a partition.
type word struct {
	leader, epoch, partitionEpoch int32
	replicas, isr                 []int32
}

// checkpoint is what a log dir's files say of a log after a stop.
type checkpoint struct{ recovery, start, hw int64 }

// node is one broker.
type node struct {
	c      *cluster
	id     int32
	parts  *partition.Manager
	server *wire.Server
	fetch  *replication.Manager
	isr    *replication.ISR

	mu    sync.Mutex
	logs  map[string]*log.Log
	conns map[*wire.Client][2]int32
}

var latest = replication.Versions{Fetch: 17, ListOffsets: 9, OffsetForLeaderEpoch: 4}

func newCluster(t testing.TB, change ...func(*cluster)) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), config: log.DefaultConfig(), minISR: 1, lag: time.Hour, ibp: latest, topic: [16]byte{1, 2, 3},
		nodes: map[int32]*node{}, cut: map[int32]bool{}, parts: map[int32]*word{}, kept: map[string]checkpoint{}}
	c.config.RetentionMs = -1
	for _, f := range change {
		f(c)
	}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.stop(id, true)
		}
	})
	return c
}

func (c *cluster) start(ids ...int32) {
	for _, id := range ids {
		n := &node{c: c, id: id, logs: map[string]*log.Log{}, conns: map[*wire.Client][2]int32{}}
		logger := slog.New(slog.DiscardHandler)
		if testing.Verbose() {
			logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("broker", id)
		}
		n.parts = partition.NewManager(partition.Options{
			BrokerID: id, BrokerEpoch: func() int64 { return 10 }, Logs: n, MinISR: func(string) int { return c.minISR },
			ReplicaLagTimeMax: c.lag, Throttled: c.slow, Sent: c.sent,
			ProposeISR: func(id partition.ID, p partition.ISRProposal) { n.isr.Propose(id, p) },
			OnLeader:   func(id partition.ID, _ int32) { n.fetch.Unfollow(id) },
			OnFollower: func(id partition.ID, _ int32) { n.fetch.Follow(id) },
			OnRemoved:  func(id partition.ID) { n.fetch.Unfollow(id) },
			Now:        time.Now, Logger: logger,
		})
		n.isr = replication.NewISR(replication.ISROptions{BrokerID: id, BrokerEpoch: func() int64 { return 10 }, Partitions: n.parts,
			Do: func(_ context.Context, req kmsg.Request) (kmsg.Response, error) {
				return c.alter(req.(*kmsg.AlterPartitionRequest)), nil
			}, LagTimeMax: c.lag, Logger: logger})
		n.fetch = replication.New(replication.Options{
			BrokerID: id, BrokerEpoch: func() int64 { return 10 }, Partitions: n.parts, Dial: n.dial, Versions: c.ibp,
			Fetchers: 1, MaxWait: 100 * time.Millisecond, MinBytes: 1, MaxBytes: 10 << 20, PartitionMaxBytes: 1 << 20,
			Quota: c.fetched, Backoff: 200 * time.Millisecond, Timeout: 30 * time.Second, Now: time.Now, Logger: logger,
		})
		var err error
		n.server, err = wire.New(wire.Options{Handler: api.Handlers(api.Deps{Partitions: n.parts, Logger: logger}),
			Listeners: []wire.Listener{{Name: "PLAINTEXT", Address: "127.0.0.1:0"}}})
		require.NoError(c.t, err)
		require.NoError(c.t, n.server.Listen(context.Background()))
		require.NoError(c.t, n.server.Start())
		n.isr.Start()
		c.mu.Lock()
		c.nodes[id] = n
		c.mu.Unlock()
	}
}

// stop ends a broker. Without clean, its logs are left as a crash leaves them.
func (c *cluster) stop(id int32, clean bool) {
	c.mu.Lock()
	n := c.nodes[id]
	delete(c.nodes, id)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(c.t, n.server.Stop(ctx))
	require.NoError(c.t, n.fetch.Stop(ctx))
	require.NoError(c.t, n.isr.Stop(ctx))
	for name, l := range n.logs {
		at := checkpoint{l.RecoveryPoint(), l.StartOffset(), l.HighWatermark()}
		require.NoError(c.t, l.Close(ctx))
		if clean {
			at.recovery = l.EndOffset()
		}
		c.kept[fmt.Sprint(id, name)] = at
	}
}

// Open gives the log of a replica: node is a partition.Logs.
func (n *node) Open(topic string, number int32, _ bool) (*log.Log, error) {
	codecs, err := compression.NewSet()
	require.NoError(n.c.t, err)
	var engine storage.Storage
	if n.c.mapped {
		engine, err = storagemmap.New(storagemmap.DefaultOptions())
	} else {
		engine, err = storagesendfile.New(storagesendfile.DefaultOptions())
	}
	require.NoError(n.c.t, err)
	require.NoError(n.c.t, engine.Start(context.Background()))
	name := partition.ID{Topic: topic, Partition: number}.String()
	at := n.c.kept[fmt.Sprint(n.id, name)]
	l, err := log.Open(context.Background(), log.Options{
		Dir: filepath.Join(n.c.dir, fmt.Sprint(n.id), name), Topic: topic, Partition: number, Storage: engine, Codecs: codecs, Config: n.c.config,
		Logger: slog.New(slog.DiscardHandler), RecoveryPoint: at.recovery, StartOffset: at.start, HighWatermark: at.hw,
	})
	if err == nil {
		n.mu.Lock()
		n.logs[name] = l
		n.mu.Unlock()
	}
	return l, err
}

func (n *node) Delete(string, int32) error { return nil }

func (n *node) dial(ctx context.Context, to int32) (*wire.Client, error) {
	n.c.mu.Lock()
	peer, cut := n.c.nodes[to], n.c.cut[to] || n.c.cut[n.id]
	n.c.mu.Unlock()
	if peer == nil || cut {
		return nil, fmt.Errorf("broker %d can't be reached", to)
	}
	client, err := wire.Dial(ctx, peer.server.Addr("PLAINTEXT").String(), wire.ClientOptions{ClientID: "test"})
	if err == nil {
		n.mu.Lock()
		n.conns[client] = [2]int32{n.id, to}
		n.mu.Unlock()
	}
	return client, err
}

// reconnect ends the connections from and to a broker.
func (c *cluster) reconnect(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		n.mu.Lock()
		for client, ends := range n.conns {
			if ends[0] == id || ends[1] == id {
				client.Close()
				delete(n.conns, client)
			}
		}
		n.mu.Unlock()
	}
}

// alter answers an AlterPartition request as a controller does.
func (c *cluster) alter(req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
	if c.refused > 0 || c.cut[req.BrokerID] {
		c.refused = max(c.refused-1, 0)
		resp.ErrorCode = kerr.NotController.Code
		return resp
	}
	for _, t := range req.Topics {
		out := kmsg.AlterPartitionResponseTopic{TopidID: t.TopicID, Topic: t.Topic}
		for _, p := range t.Partitions {
			w := c.parts[p.Partition]
			r := kmsg.AlterPartitionResponseTopicPartition{Partition: p.Partition}
			switch {
			case p.LeaderEpoch != w.epoch || req.BrokerID != w.leader:
				r.ErrorCode = kerr.FencedLeaderEpoch.Code
			case p.PartitionEpoch != w.partitionEpoch:
				r.ErrorCode = kerr.InvalidUpdateVersion.Code
			default:
				w.partitionEpoch++
				w.isr = slices.Clone(p.NewISR)
				r.LeaderID, r.LeaderEpoch, r.ISR, r.PartitionEpoch = w.leader, w.epoch, w.isr, w.partitionEpoch
			}
			out.Partitions = append(out.Partitions, r)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// assign makes a partition with replicas, all in sync, led by the first.
func (c *cluster) assign(number int32, replicas ...int32) {
	c.mu.Lock()
	c.parts[number] = &word{leader: -1, epoch: -1, replicas: replicas}
	c.mu.Unlock()
	c.elect(number, replicas[0], replicas...)
}

// elect makes a broker leader under a new epoch, and tells the brokers that live.
func (c *cluster) elect(number, leader int32, isr ...int32) {
	c.mu.Lock()
	w := c.parts[number]
	w.leader, w.isr = leader, slices.Clone(isr)
	w.epoch++
	w.partitionEpoch++
	c.mu.Unlock()
	c.tell(number, w.replicas...)
}

// tell has brokers hear the last word on a partition.
func (c *cluster) tell(number int32, brokers ...int32) {
	for _, id := range brokers {
		c.mu.Lock()
		w := *c.parts[number]
		n := c.nodes[id]
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.Version, req.ControllerEpoch, req.BrokerEpoch = 7, 1, 10
		req.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: c.topic, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{
			{Partition: number, ControllerEpoch: 1, Leader: w.leader, LeaderEpoch: w.epoch, ZKVersion: w.partitionEpoch, ISR: slices.Clone(w.isr), Replicas: w.replicas},
		}}}
		c.mu.Unlock()
		if n != nil {
			require.Zero(c.t, n.parts.ApplyLeaderAndISR(req).ErrorCode)
		}
	}
}

func (c *cluster) replica(broker, number int32) *partition.Partition {
	c.mu.Lock()
	n := c.nodes[broker]
	c.mu.Unlock()
	p, err := n.parts.Get(partition.ID{Topic: "t", Partition: number})
	require.NoError(c.t, err)
	return p
}

// produce appends a batch of values at a leader and returns the offset behind it.
func (c *cluster) produce(broker, number int32, values ...string) partition.Appended {
	p := c.replica(broker, number)
	got, err := p.Append(partition.Append{Batches: batch(c.t, values...), Acks: 1})
	require.NoError(c.t, err)
	flushed := make(chan error, 1)
	if done, err, _ := p.Committed(got, 1, func(err error) { flushed <- err }); !done {
		require.NoError(c.t, <-flushed)
	} else {
		require.NoError(c.t, err)
	}
	return got
}

func batch(t testing.TB, values ...string) []byte {
	b := record.NewBuilder(record.Options{})
	for i, v := range values {
		require.NoError(t, b.Append(record.Record{Offset: int64(i), Timestamp: 1_700_000_000_000, Value: []byte(v)}))
	}
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

// committed waits until a broker's high watermark is there.
func (c *cluster) committed(broker, number int32, hw int64) {
	c.eventually(func() bool { return c.replica(broker, number).Log().HighWatermark() == hw }, func() string {
		out := fmt.Sprintf("broker %d: want high watermark %d of %+v", broker, hw, c.parts[number])
		for id := range c.nodes {
			p := c.replica(id, number)
			leader, epoch := p.Leader()
			out += fmt.Sprintf("\nbroker %d: leader %d epoch %d start %d high watermark %d end %d %v", id, leader, epoch, p.Log().StartOffset(), p.Log().HighWatermark(), p.Log().EndOffset(), p.Assignment())
		}
		return out
	})
}

func (c *cluster) eventually(ok func() bool, what func() string) {
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatal(what())
		}
	}
}

// isrIs waits until the controller knows of an in-sync set.
func (c *cluster) isrIs(number int32, isr ...int32) {
	c.eventually(func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := slices.Clone(c.parts[number].isr)
		slices.Sort(now)
		return slices.Equal(now, isr)
	}, func() string { return fmt.Sprint("no in-sync set ", isr) })
}

// bytesOf are the batches of a replica between two offsets.
func (c *cluster) bytesOf(broker, number int32, from, upTo int64) []byte {
	l := c.replica(broker, number).Log()
	var out bytes.Buffer
	for at := from; at < upTo; {
		res, err := l.Read(log.ReadRequest{Offset: at, MaxBytes: 1 << 20, MinOneBatch: true, UpTo: upTo})
		require.NoError(c.t, err)
		require.NotNil(c.t, res.View, "a hole at %d", at)
		b, err := res.View.Bytes(nil)
		require.NoError(c.t, err)
		res.View.Release()
		out.Write(b)
		for one := range record.All(b) {
			at = one.Header().LastOffset() + 1
		}
	}
	return out.Bytes()
}

// values are the records of a replica, as text.
func (c *cluster) values(broker, number int32) string {
	codecs, err := compression.NewSet()
	require.NoError(c.t, err)
	var out []string
	l := c.replica(broker, number).Log()
	for b := range record.All(c.bytesOf(broker, number, l.StartOffset(), l.EndOffset())) {
		for r, err := range b.Each(codecs, 1<<20) {
			require.NoError(c.t, err)
			out = append(out, fmt.Sprintf("%d:%s", r.Offset, r.Value))
		}
	}
	return strings.Join(out, " ")
}

// same waits until replicas have all that the leader has, committed, and compares them byte for byte.
func (c *cluster) same(number, leader int32, others ...int32) {
	c.t.Helper()
	end := c.replica(leader, number).Log().EndOffset()
	c.committed(leader, number, end)
	for _, id := range others {
		c.committed(id, number, end)
		require.Equal(c.t, end, c.replica(id, number).Log().EndOffset(), "broker %d", id)
		// An unclean leader may begin before a follower.
		start := max(c.replica(id, number).Log().StartOffset(), c.replica(leader, number).Log().StartOffset())
		require.True(c.t, bytes.Equal(c.bytesOf(leader, number, start, end), c.bytesOf(id, number, start, end)),
			"broker %d has %s\nbroker %d, its leader, has %s", id, c.values(id, number), leader, c.values(leader, number))
		for offset := start; offset < end; offset++ {
			require.Equal(c.t, c.replica(leader, number).Log().EpochAt(offset), c.replica(id, number).Log().EpochAt(offset), "epoch of %d on broker %d", offset, id)
		}
	}
}
