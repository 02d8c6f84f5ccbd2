package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/brokertest"
)

// TestFollowerThatLagsThoughItLives has a follower come back that must fetch a long way and may only do so slowly. Both sides tell how far
// behind it is, and the leader tells why.
func TestFollowerThatLagsThoughItLives(t *testing.T) {
	const records = 50
	c := startCluster(t, 2, brokertest.Admin(), brokertest.Metrics(everyAlias()), brokertest.Property("replica.lag.time.max.ms", "1000"),
		brokertest.Property("replica.fetch.wait.max.ms", "100"), brokertest.Property("replica.fetch.max.bytes", "1024"), brokertest.Property("auto.leader.rebalance.enable", "false"))
	admin := adminAt(t, c.Addrs())
	controller, err := c.Controller(t.Context())
	require.NoError(t, err)
	leader, follower := c.Broker(controller), c.Broker(3-controller)
	place(t, c, "t", controller, 3-controller)
	inSync(t, c, "t", 2)
	is := func(b *brokertest.Broker, name string, want float64, labels ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			s := scrapes(t, b)
			return len(s.series(name, labels...)) == 1 && s.value(name, labels...) == want
		}, patience, 20*time.Millisecond, "%s %v", name, labels)
	}
	id := map[bool]string{true: "2", false: "1"}[controller == 1]
	one := []string{"topic", "t", "partition", "0"}
	is(leader, "barnabas_partition_follower_lag_records", 0, append(one, "follower", id)...)
	is(follower, "barnabas_partition_behind_leader_records", 0, one...)
	assert.Empty(t, scrapes(t, leader).series("barnabas_partition_behind_leader_records", one...), "it follows nobody")
	assert.Empty(t, scrapes(t, follower).series("barnabas_partition_follower_lag_records", one...), "nobody follows it")

	follower.Stop()
	_, err = admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "follower.replication.throttled.replicas", Value: kadm.StringPtr("*")}}, "t")
	require.NoError(t, err)
	_, err = admin.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "follower.replication.throttled.rate", Value: kadm.StringPtr("1")}})
	require.NoError(t, err)
	producer := client(t, leader.Addr(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range records { // a batch each, of which a fetch brings but one
		require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: make([]byte, 2048)}).FirstErr())
	}
	follower.Restart()

	// Each batch is worth more than half an hour of the quota, of which no more than 10 seconds are waited for.
	require.Eventually(t, func() bool {
		s := scrapes(t, follower)
		if len(s.series("barnabas_partition_behind_leader_records", one...)) == 0 {
			return false
		}
		behind := s.value("barnabas_partition_behind_leader_records", one...)
		assert.Equal(t, behind, s.value("barnabas_topic_behind_leader_records", "topic", "t"))
		assert.Equal(t, behind, s.value("kafka_server_replicafetchermanager_maxlag", "clientid", "Replica"))
		return behind > 0 && behind < records
	}, patience, 20*time.Millisecond)
	w := explained(t, leader, "partition", "t-0", func(w why) bool {
		return strings.Contains(w.says("not-in-sync"), "throttled (follower.replication.throttled.rate of broker "+id+")")
	})
	assert.Contains(t, w.says("not-in-sync"), "it is alive, and has not fetched for ")
	assert.Contains(t, w.Summary, "under-replicated: 1 of 2 replicas in sync")
	assert.Contains(t, w.says("preferred-leads"), "it is the preferred replica")
}
