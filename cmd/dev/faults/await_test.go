package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/cmd/dev/faults/network"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAgreed asks brokers that agree, and with one more that knows nothing of the others: as one that was cut off may.
func TestAgreed(t *testing.T) {
	net := network.New(nil)
	defer net.Close()
	c := &Cluster{Network: net}
	defer c.Close()
	add := func(id int, addr string) {
		b := &Broker{ID: id}
		var err error
		b.gates.clients, err = net.Gate("test", b.name(), addr)
		require.NoError(t, err)
		c.add(b)
	}
	cluster := testbroker.StartCluster(t, 2)
	for id := 1; id <= 2; id++ {
		add(id, cluster.Broker(int32(id)).Addr())
	}
	ctx := context.Background()
	client, err := newClient(c.Bootstrap()...)
	require.NoError(t, err)
	c.client, c.admin = client, kadm.NewClient(client)
	two := func(m kadm.Metadata) bool { return len(m.Brokers) == 2 && m.Controller > 0 }
	require.NoError(t, c.agreed(ctx, time.Minute, "there are two", two))
	_, err = c.admin.CreateTopic(ctx, 3, 2, nil, "t")
	require.NoError(t, err)
	require.NoError(t, c.InSync(ctx, "t", time.Minute))
	m, err := c.Brokers[1].metadata(ctx, "t", "unknown")
	require.NoError(t, err)
	require.Len(t, m.Topics["t"].Partitions, 3)
	for _, p := range m.Topics["t"].Partitions {
		require.NoError(t, p.Err)
		require.ElementsMatch(t, []int32{1, 2}, p.Replicas)
		require.ElementsMatch(t, []int32{1, 2}, p.ISR)
		require.Contains(t, p.Replicas, p.Leader)
	}
	require.Error(t, m.Topics["unknown"].Err)

	add(3, testbroker.Start(t).Addr())
	require.NoError(t, c.await(ctx, time.Minute, "there are two", two), "whom it asks says so")
	err = c.agreed(ctx, time.Second, "there are two", two)
	require.ErrorContains(t, err, "after 1s it still isn't so that there are two, as each broker says: broker 3 says: controller ")
	require.ErrorContains(t, err, ", brokers [")
}
