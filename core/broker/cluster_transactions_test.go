package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/brokertest"
)

// TestClusterTransactions has transactions whose coordinators, partitions and groups are spread over three brokers: markers go to
// the leaders, and leaders ask the coordinators before they let a transaction begin.
func TestClusterTransactions(t *testing.T) {
	c := startCluster(t, 3, brokertest.Property("transaction.state.log.replication.factor", "1"), brokertest.Property("transaction.state.log.min.isr", "1"),
		brokertest.Property("transaction.state.log.num.partitions", "6"), brokertest.Property("offsets.topic.replication.factor", "1"),
		brokertest.Property("offsets.topic.num.partitions", "6"))
	admin := adminAt(t, c.Addrs())
	_, err := admin.CreateTopic(t.Context(), 6, 1, nil, "t")
	require.NoError(t, err)
	const producers, records = 4, 12
	for n := range producers {
		session, err := kgo.NewClient(kgo.SeedBrokers(c.Broker(1).Addr(), c.Broker(2).Addr()), kgo.TransactionalID(fmt.Sprint("id-", n)), kgo.DefaultProduceTopic("t"),
			kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.MetadataMinAge(10*time.Millisecond))
		require.NoError(t, err)
		defer session.Close()
		for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
			require.NoError(t, session.BeginTransaction())
			for i := range records {
				r := kgo.StringRecord(fmt.Sprint(n, i, bool(end)))
				require.NoError(t, session.ProduceSync(t.Context(), r).FirstErr())
			}
			require.NoError(t, session.EndTransaction(t.Context(), end))
		}
	}
	reader := client(t, c.Broker(3).Addr(), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	seen := map[string]bool{}
	for len(seen) < producers*records {
		fetches := reader.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			require.False(t, seen[string(r.Value)])
			require.Contains(t, string(r.Value), "true", "what was aborted stays hidden")
			seen[string(r.Value)] = true
		})
	}
	// Offsets of groups count with the transaction.
	for n := range 4 {
		group := fmt.Sprint("g-", n)
		session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(c.Broker(3).Addr()), kgo.TransactionalID(fmt.Sprint("copy-", n)), kgo.ConsumerGroup(group),
			kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
		require.NoError(t, err)
		defer session.Close()
		for done := 0; done < producers*records; {
			fetches := session.PollFetches(t.Context())
			require.NoError(t, fetches.Err())
			require.NoError(t, session.Begin())
			fetches.EachRecord(func(r *kgo.Record) {
				done++
				require.NoError(t, session.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("true copy")}).FirstErr())
			})
			committed, err := session.End(t.Context(), kgo.TryCommit)
			require.NoError(t, err)
			require.True(t, committed)
		}
		require.Eventually(t, func() bool { // when the marker is written, soon after the transaction was decided
			fetched, err := admin.FetchOffsets(t.Context(), group)
			require.NoError(t, err)
			return len(fetched) > 0
		}, patience, 10*time.Millisecond)
	}
}
