package broker_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/brokertest"
)

// TestLogDirFails takes the disk of a broker away: others lead what it led, writes go on, and it says that it can't.
func TestLogDirFails(t *testing.T) {
	c := startCluster(t, 3, brokertest.Property("replica.high.watermark.checkpoint.interval.ms", "50"))
	admin := adminAt(t, c.Addrs())
	_, err := admin.CreateTopic(t.Context(), 6, 3, nil, "t")
	require.NoError(t, err)
	producer := client(t, "", kgo.SeedBrokers(c.Broker(1).Addr(), c.Broker(3).Addr()), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(10*time.Millisecond),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	produce := func() {
		for range 12 {
			require.NoError(t, producer.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr())
		}
	}
	produce()
	controller, err := c.Controller(t.Context())
	require.NoError(t, err)
	failing := int32(2)
	if controller == failing { // its process goes on in this test, and so does its term; another is as good
		failing = 3
	}
	require.Contains(t, leaders(t, c.Broker(1), "t"), failing)
	dir := c.Broker(failing).Dir()
	require.NoError(t, os.Rename(dir, dir+"-gone"))
	require.NoError(t, os.WriteFile(dir, nil, 0o600)) // nothing can be made in it again
	t.Cleanup(func() {
		require.NoError(t, os.Remove(dir))
		require.NoError(t, os.Rename(dir+"-gone", dir))
		_ = os.Remove(filepath.Join(dir, ".kafka_cleanshutdown"))
	})
	produce() // so that there is something to write there
	select {
	case <-c.Broker(failing).Failed():
	case <-time.After(patience):
		t.Fatal("a broker without a log directory goes on")
	}
	require.Eventually(t, func() bool {
		for _, leader := range leaders(t, c.Broker(1), "t") {
			if leader == failing || leader < 0 {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond)
	produce()
}
