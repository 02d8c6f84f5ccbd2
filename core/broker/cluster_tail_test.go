package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/brokertest"
)

// TestFollowersLearnTheTail has every follower know that the last thing in the log, a marker, is committed, though nothing comes behind it.
func TestFollowersLearnTheTail(t *testing.T) {
	c := startCluster(t, 3, brokertest.Property("transaction.state.log.num.partitions", "1"))
	_, err := adminAt(t, c.Addrs()).CreateTopic(t.Context(), 1, 3, nil, "t")
	require.NoError(t, err)
	session, err := kgo.NewClient(kgo.SeedBrokers(c.Broker(1).Addr()), kgo.TransactionalID("id"), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(10*time.Millisecond))
	require.NoError(t, err)
	defer session.Close()
	require.NoError(t, session.BeginTransaction())
	require.NoError(t, session.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr())
	require.NoError(t, session.EndTransaction(t.Context(), kgo.TryCommit))
	reader := client(t, c.Broker(1).Addr())
	for id := range int32(3) {
		require.Eventually(t, func() bool {
			req := kmsg.NewPtrFetchRequest()
			req.Version, req.MaxBytes = 12, 1<<20
			p := kmsg.NewFetchRequestTopicPartition()
			p.FetchOffset, p.PartitionMaxBytes = 0, 1<<20
			req.Topics = []kmsg.FetchRequestTopic{{Topic: "t", TopicID: topicIDOf(t, c, "t"), Partitions: []kmsg.FetchRequestTopicPartition{p}}}
			resp, err := reader.Broker(int(id+1)).Request(t.Context(), req)
			require.NoError(t, err)
			got := resp.(*kmsg.FetchResponse).Topics
			return len(got) == 1 && got[0].Partitions[0].HighWatermark == 2
		}, patience, 10*time.Millisecond, "broker %d", id+1)
	}
}

func topicIDOf(t *testing.T, c *brokertest.Cluster, topic string) [16]byte {
	m, err := adminAt(t, c.Addrs()).Metadata(t.Context(), topic)
	require.NoError(t, err)
	return [16]byte(m.Topics[topic].ID)
}
