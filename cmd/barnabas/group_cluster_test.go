package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// TestGroupLagWithABrokerDown has partitions without a leader: what is known is shown, and that it isn't all is no success.
func TestGroupLagWithABrokerDown(t *testing.T) {
	c := testbroker.StartCluster(t, 3, brokertest.Property("group.initial.rebalance.delay.ms", "0"))
	b := c.Addrs()
	admin := administrator(t, c.Broker(1).Addr())
	must(t, "", "topic", "create", "t", "-p", "3", "-r", "1", "-b", b)
	for _, one := range c.Brokers { // each learns of the topic in its turn
		at := administrator(t, one.Addr())
		require.Eventually(t, func() bool {
			topics, err := at.ListTopics(t.Context(), "t")
			return err == nil && len(topics["t"].Partitions) == 3
		}, time.Minute, 20*time.Millisecond)
	}
	records(t, b, "t", 4, "0", "1", "2")
	commit(t, admin, "g", "t", map[int32]int64{0: 1, 1: 1, 2: 1})
	topics, err := admin.ListTopics(t.Context(), "t")
	require.NoError(t, err)
	gone := slices.IndexFunc(topics["t"].Partitions.Sorted(), func(p kadm.PartitionDetail) bool { return p.Leader == 3 })
	require.GreaterOrEqual(t, gone, 0, "a broker leads no partition")
	there := (gone + 1) % 3
	c.Broker(3).Stop()
	require.Eventually(t, func() bool {
		topics, err := admin.ListTopics(t.Context(), "t")
		return err == nil && topics["t"].Partitions[int32(gone)].Leader < 0
	}, time.Minute, 20*time.Millisecond)

	got := typed(t, "", "group", "lag", "g", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Regexp(t, fmt.Sprintf(`(?m)^ g +t +%d +1 +4 +3 +- +-$`, there), got.out)
	assert.Regexp(t, fmt.Sprintf(`(?m)^ g +t +%d +1 +\? +\? +- +-$`, gone), got.out)
	assert.Contains(t, got.err, fmt.Sprintf("group g: the lag in t-%d isn't known: LEADER_NOT_AVAILABLE", gone))
	assert.NotContains(t, got.err, fmt.Sprintf("t-%d ", there))

	got = typed(t, "", "group", "reset", "g", "-b", b, "--all-topics", "--to-end", "--execute")
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, fmt.Sprintf("t-%d: LEADER_NOT_AVAILABLE", gone))
	committed, err := admin.FetchOffsets(t.Context(), "g")
	require.NoError(t, err)
	committed.Each(func(o kadm.OffsetResponse) { assert.EqualValues(t, 1, o.At, "all or none") })

	must(t, "", "group", "reset", "g", "-b", b, "-t", fmt.Sprintf("t:%d", there), "--to-end", "--execute")
	must(t, "", "group", "list", "-b", b)
}
