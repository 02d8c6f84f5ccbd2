package broker_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

// patience is how long a test waits for what is to happen on its own.
const patience = time.Minute

// startCluster runs brokers 1 to n.
func startCluster(t *testing.T, n int, options ...brokertest.Option) *brokertest.Cluster {
	return testbroker.StartCluster(t, n, append([]brokertest.Option{brokertest.Storage(storagesendfile.NewFactory()),
		brokertest.Property("controlled.shutdown.retry.backoff.ms", "100")}, options...)...)
}

// adminAt is an admin client of one broker; it may talk to others that this one tells it of.
func adminAt(t *testing.T, addrs string) *kadm.Client {
	return kadm.NewClient(client(t, "", kgo.SeedBrokers(strings.Split(addrs, ",")...), kgo.MetadataMinAge(10*time.Millisecond)))
}

// leaders gives the leader of each partition of a topic, as one broker knows it.
func leaders(t *testing.T, b *brokertest.Broker, topic string) []int32 {
	m, err := adminAt(t, b.Addr()).Metadata(t.Context(), topic)
	require.NoError(t, err)
	out := make([]int32, len(m.Topics[topic].Partitions))
	for _, p := range m.Topics[topic].Partitions {
		out[p.Partition] = p.Leader
	}
	return out
}

// TestCluster has three brokers that know one another: one controller, topics on all, wherever they are asked for.
func TestCluster(t *testing.T) {
	c := startCluster(t, 3)
	controller, err := c.Controller(t.Context())
	require.NoError(t, err)
	for _, b := range c.Brokers {
		m, err := adminAt(t, b.Addr()).BrokerMetadata(t.Context())
		require.NoError(t, err)
		require.Len(t, m.Brokers, 3)
		require.Equal(t, controller, m.Controller)
	}
	_, err = adminAt(t, c.Addrs()).CreateTopic(t.Context(), 6, 2, nil, "made")
	require.NoError(t, err)
	for _, b := range c.Brokers {
		require.Eventually(t, func() bool {
			found := leaders(t, b, "made")
			slices.Sort(found)
			return slices.Equal(found, []int32{1, 1, 2, 2, 3, 3})
		}, patience, 10*time.Millisecond, "each broker knows that each leads two")
		// A topic that a client is interested in, at a broker that isn't controller in two of three cases.
		name := fmt.Sprint("auto-", b.Addr()[strings.LastIndexByte(b.Addr(), ':')+1:])
		producer := client(t, b.Addr(), kgo.AllowAutoTopicCreation(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.MetadataMinAge(10*time.Millisecond))
		require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: name, Value: []byte("x")}).FirstErr())
	}
	// Groups are coordinated where the offsets topic says, found through any broker.
	consumer := client(t, c.Brokers[2].Addr(), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("made"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	producer := client(t, c.Brokers[1].Addr(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for p := range int32(6) {
		require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: "made", Partition: p, Value: []byte("x")}).FirstErr())
	}
	for n := 0; n < 6; {
		fetches := consumer.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		n += fetches.NumRecords()
	}
}

// TestControlledShutdown stops brokers in turn: leaderships are handed over first, the controller's among them.
func TestControlledShutdown(t *testing.T) {
	c := startCluster(t, 3)
	_, err := adminAt(t, c.Addrs()).CreateTopic(t.Context(), 6, 3, nil, "t")
	require.NoError(t, err)
	for _, stopped := range []int32{1, 2} {
		c.Broker(stopped).Stop()
		// At once: its leaderships are gone before it goes.
		for _, b := range c.Brokers[stopped:] {
			require.NotContains(t, leaders(t, b, "t"), stopped)
		}
	}
	id, err := c.Controller(t.Context())
	require.NoError(t, err)
	require.Equal(t, int32(3), id)
	for _, b := range c.Brokers[:2] {
		b.Restart()
	}
	require.Eventually(t, func() bool {
		m, err := adminAt(t, c.Broker(1).Addr()).BrokerMetadata(t.Context())
		return err == nil && len(m.Brokers) == 3
	}, patience, 10*time.Millisecond)
}

// TestRegistersAnew lets sessions expire, the controller's too: the brokers register under new epochs and go on.
func TestRegistersAnew(t *testing.T) {
	c := startCluster(t, 2)
	_, err := adminAt(t, c.Addrs()).CreateTopic(t.Context(), 4, 1, nil, "t")
	require.NoError(t, err)
	epochs := func() map[int32]int64 {
		reader := c.Memory.Member()
		require.NoError(t, reader.Start(t.Context()))
		defer reader.Stop(t.Context())
		alive, err := reader.Membership().Brokers(t.Context())
		require.NoError(t, err)
		found := map[int32]int64{}
		for _, b := range alive {
			found[b.ID] = b.Epoch
		}
		return found
	}
	for _, id := range []int32{2, 1} {
		before := epochs()
		c.Expire(id)
		require.Eventually(t, func() bool { return epochs()[id] > before[id] }, patience, 10*time.Millisecond)
		for _, b := range c.Brokers {
			require.Eventually(t, func() bool {
				found := leaders(t, b, "t")
				slices.Sort(found)
				return slices.Equal(found, []int32{1, 1, 2, 2})
			}, patience, 10*time.Millisecond, "leaders return")
		}
		producer := client(t, c.Broker(3-id).Addr(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.MetadataMinAge(10*time.Millisecond))
		for p := range int32(4) {
			require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: p, Value: []byte("x")}).FirstErr())
		}
	}
}

// TestInterBrokerListener has brokers use another listener than clients: what they say to one another is refused from clients.
func TestInterBrokerListener(t *testing.T) {
	c := startCluster(t, 2, brokertest.Property("listeners", "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0"),
		brokertest.Property("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT"), brokertest.Property("inter.broker.listener.name", "INTERNAL"))
	_, err := adminAt(t, c.Addrs()).CreateTopic(t.Context(), 4, 2, nil, "t")
	require.NoError(t, err)
	reader := c.Memory.Member()
	require.NoError(t, reader.Start(t.Context()))
	defer reader.Stop(t.Context())
	alive, err := reader.Membership().Brokers(t.Context())
	require.NoError(t, err)
	for _, b := range alive {
		require.Len(t, b.Endpoints, 2)
		require.Equal(t, c.Broker(b.ID).Addr(), net.JoinHostPort(b.Endpoints[0].Host, fmt.Sprint(b.Endpoints[0].Port)))
		require.NotEqual(t, b.Endpoints[0].Port, b.Endpoints[1].Port)
		for i, e := range b.Endpoints {
			// ControlledShutdown 0, whose header has no client id, of a broker that isn't there.
			conn, err := net.Dial("tcp", net.JoinHostPort(e.Host, fmt.Sprint(e.Port)))
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			_, err = conn.Write([]byte{0, 0, 0, 12, 0, 7, 0, 0, 0, 0, 0, 9, 0, 0, 0, 77})
			require.NoError(t, err)
			answer, err := io.ReadAll(io.LimitReader(conn, 14))
			require.NoError(t, err)
			if i == 0 {
				require.Empty(t, answer, "the connection is closed")
				continue
			}
			want := kerr.NotController.Code
			if id, err := c.Controller(t.Context()); err == nil && id == b.ID {
				want = kerr.BrokerNotAvailable.Code
			}
			require.Equal(t, []byte{0, 0, 0, 10, 0, 0, 0, 9, 0, byte(want), 0, 0, 0, 0}, answer)
		}
	}
}

// TestOlderProtocols has brokers speak to one another as older releases of Apache Kafka do.
func TestOlderProtocols(t *testing.T) {
	for _, version := range []string{"2.8", "3.3", "3.6"} {
		t.Run(version, func(t *testing.T) {
			c := startCluster(t, 3, brokertest.Property("inter.broker.protocol.version", version), brokertest.Property("min.insync.replicas", "2"))
			_, err := adminAt(t, c.Addrs()).CreateTopic(t.Context(), 3, 3, nil, "t")
			require.NoError(t, err)
			c.Broker(2).Stop()
			producer := client(t, c.Broker(1).Addr(), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(10*time.Millisecond))
			for i := range 30 {
				require.NoError(t, producer.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint(i))).FirstErr())
			}
			c.Broker(2).Restart()
			inSync(t, c, "t", 3)
			session, err := kgo.NewClient(kgo.SeedBrokers(c.Broker(2).Addr()), kgo.TransactionalID("id"), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(10*time.Millisecond))
			require.NoError(t, err)
			defer session.Close()
			require.NoError(t, session.BeginTransaction())
			for i := range 10 {
				require.NoError(t, session.ProduceSync(t.Context(), &kgo.Record{Key: fmt.Append(nil, i), Value: []byte("x")}).FirstErr())
			}
			require.NoError(t, session.EndTransaction(t.Context(), kgo.TryCommit))
			reader := client(t, c.Broker(3).Addr(), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
			for n := 0; n < 40; {
				fetches := reader.PollFetches(t.Context())
				require.NoError(t, fetches.Err())
				n += fetches.NumRecords()
			}
		})
	}
}
