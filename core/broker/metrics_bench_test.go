package broker_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// BenchmarkScrape asks a broker with 10,000 partitions of 100 topics, and 100 groups that are behind in one each, for its metrics.
func BenchmarkScrape(b *testing.B) {
	for _, one := range []struct {
		name    string
		options broker.MetricsOptions
	}{{"by topic", broker.MetricsOptions{}}, {"by partition under all names", everyAlias()}} {
		b.Run(one.name, func(b *testing.B) {
			const topics, each = 100, 100
			server := testbroker.Start(b, brokertest.Admin(), brokertest.Metrics(one.options))
			c, err := kgo.NewClient(kgo.SeedBrokers(server.Addr()))
			require.NoError(b, err)
			defer c.Close()
			admin := kadm.NewClient(c)
			admin.SetTimeoutMillis(300_000)
			for i := range topics {
				topic := fmt.Sprint("topic-", i)
				_, err := admin.CreateTopic(b.Context(), each, 1, nil, topic)
				require.NoError(b, err)
				require.NoError(b, c.ProduceSync(b.Context(), &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr())
				var o kadm.Offsets
				for p := range int32(each) {
					o.AddOffset(topic, p, 0, -1)
				}
				require.NoError(b, admin.CommitAllOffsets(b.Context(), fmt.Sprint("group-", i), o))
			}
			client := &http.Client{Timeout: time.Minute}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			size := int64(0)
			for b.Loop() {
				resp, err := client.Get(server.Admin() + "/metrics")
				require.NoError(b, err)
				size, err = io.Copy(io.Discard, resp.Body)
				require.NoError(b, err)
				resp.Body.Close()
			}
			b.ReportMetric(float64(size), "bytes/scrape")
		})
	}
}

// TestScrapesCostNothingPerPartition: what a scrape allocates depends on how many topics there are, not on how many partitions.
func TestScrapesCostNothingPerPartition(t *testing.T) {
	const partitions = 200
	b := testbroker.Start(t, brokertest.Admin())
	admin := kadm.NewClient(client(t, b.Addr()))
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	cost := func() float64 {
		return testing.AllocsPerRun(10, func() {
			resp, err := client.Get(b.Admin() + "/metrics")
			require.NoError(t, err)
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
		})
	}
	grown := func(n int) float64 {
		_, err := admin.UpdatePartitions(t.Context(), n, "t")
		require.NoError(t, err)
		require.EqualValues(t, n, scrapes(t, b).value("barnabas_topic_leaders", "topic", "t"))
		return cost()
	}
	_, err := admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	few := grown(2)
	require.Less(t, grown(partitions)-few, partitions/2.0)
}
