package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/brokertest"
)

// TestReplicationSurvivesEachBroker stops and kills no process, but stops each broker of three in turn while a producer writes with acks=all
// and idempotence: nothing acknowledged is lost, and nothing comes twice.
func TestReplicationSurvivesEachBroker(t *testing.T) {
	c := startCluster(t, 3, brokertest.Property("replica.lag.time.max.ms", "2000"), brokertest.Property("min.insync.replicas", "2"))
	_, err := adminAt(t, c.Addrs()).CreateTopic(t.Context(), 3, 3, nil, "t")
	require.NoError(t, err)
	producer := client(t, "", kgo.SeedBrokers(seeds(c)...), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(10*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	sent := 0
	write := func() {
		for range 30 {
			require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Partition: int32(sent % 3), Value: fmt.Append(nil, sent)}).FirstErr())
			sent++
		}
	}
	write()
	for _, b := range c.Brokers {
		b.Stop()
		write()
		b.Restart()
		inSync(t, c, "t", 3)
		write()
	}
	consumer := client(t, "", kgo.SeedBrokers(seeds(c)...), kgo.ConsumeTopics("t"))
	seen := map[string]int{}
	for len(seen) < sent {
		for _, r := range consumer.PollFetches(t.Context()).Records() {
			seen[string(r.Value)]++
		}
	}
	for value, n := range seen {
		require.Equal(t, 1, n, value)
	}
}

func seeds(c *brokertest.Cluster) (addrs []string) {
	for _, b := range c.Brokers {
		addrs = append(addrs, b.Addr())
	}
	return addrs
}

// inSync waits until all partitions of a topic have so many replicas in sync.
func inSync(t *testing.T, c *brokertest.Cluster, topic string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		m, err := adminAt(t, c.Addrs()).Metadata(t.Context(), topic)
		if err != nil {
			return false
		}
		for _, p := range m.Topics[topic].Partitions {
			if len(p.ISR) != n {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond)
}

// TestReadingFromARack has a consumer read from the follower in its rack, though the leader is alive (KIP-392).
func TestReadingFromARack(t *testing.T) {
	c := startCluster(t, 2, brokertest.Property("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector"))
	_, err := adminAt(t, c.Addrs()).CreateTopic(t.Context(), 1, 2, nil, "t")
	require.NoError(t, err)
	producer := client(t, "", kgo.SeedBrokers(seeds(c)...), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(10*time.Millisecond))
	for i := range 10 {
		require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Append(nil, i)}).FirstErr())
	}
	leader := leaders(t, c.Brokers[0], "t")[0]
	asked := make(chan int32, 1000)
	hook := onRead(func(broker int32, key int16) {
		if key == 1 {
			select {
			case asked <- broker:
			default:
			}
		}
	})
	consumer := client(t, "", kgo.SeedBrokers(seeds(c)...), kgo.ConsumeTopics("t"), kgo.Rack(fmt.Sprint("rack-", 3-leader)), kgo.WithHooks(hook))
	for seen := 0; seen < 10; {
		seen += consumer.PollFetches(t.Context()).NumRecords()
	}
	for {
		select {
		case broker := <-asked:
			if broker == 3-leader {
				return
			}
		case <-time.After(patience):
			t.Fatal("the follower is never asked")
		}
	}
}

// onRead is told of each answer that a client reads.
type onRead func(broker int32, key int16)

func (f onRead) OnBrokerRead(meta kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	f(meta.NodeID, key)
}
