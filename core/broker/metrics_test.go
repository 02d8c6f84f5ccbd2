package broker_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// scrape is what /metrics showed once.
type scrape struct {
	t        *testing.T
	families map[string]*dto.MetricFamily
}

// scrapes asks a broker for its metrics.
func scrapes(t *testing.T, b *brokertest.Broker) scrape {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := client.Get(b.Admin() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	return scrape{t, families}
}

// series are those of a metric that have all of the labels, given as name, value, name, value.
func (s scrape) series(name string, labels ...string) (found []*dto.Metric) {
	for _, m := range s.families[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			found = append(found, m)
		}
	}
	return found
}

// value is the value of the one series that there is.
func (s scrape) value(name string, labels ...string) float64 {
	s.t.Helper()
	found := s.series(name, labels...)
	require.Len(s.t, found, 1, "%s %v", name, labels)
	m := found[0]
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	case m.Summary != nil:
		return float64(m.Summary.GetSampleCount())
	}
	return m.Gauge.GetValue()
}

// once asks for metrics when at least n requests of a kind are counted: that is done when the response is out, so the client may have it
// a moment before.
func once(t *testing.T, b *brokertest.Broker, api string, n float64) (s scrape) {
	t.Helper()
	require.Eventually(t, func() bool {
		s = scrapes(t, b)
		return len(s.series("barnabas_request_duration_seconds", "api", api)) > 0 && s.value("barnabas_request_duration_seconds", "api", api) >= n
	}, patience, 10*time.Millisecond)
	return s
}

// produce writes n records into partition 0 of a topic, one batch each.
func produce(t *testing.T, b *brokertest.Broker, topic string, n int, at time.Time) {
	t.Helper()
	c := client(t, b.Addr(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.SoftwareNameAndVersion("metered", "v1.2"))
	for range n {
		require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: make([]byte, 100), Timestamp: at}).FirstErr())
	}
}

func everyAlias() broker.MetricsOptions {
	return broker.MetricsOptions{PerPartition: true, Aliases: []string{"jmx", "kafka_exporter"}}
}

func TestMetricsTellOfTraffic(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin(), brokertest.Metrics(everyAlias()), brokertest.Property("log.flush.interval.messages", "1"))
	admin := kadm.NewClient(client(t, b.Addr()))
	_, err := admin.CreateTopic(t.Context(), 2, 1, nil, "t")
	require.NoError(t, err)
	produce(t, b, "t", 10, time.Now())
	consumer := client(t, b.Addr(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(4)}}))
	for got := 0; got < 6; {
		fetches := consumer.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		got += fetches.NumRecords()
	}
	once(t, b, "Produce", 10)
	s := once(t, b, "Fetch", 1)
	assert.EqualValues(t, 1, s.value("barnabas_serving"))
	assert.EqualValues(t, 10, s.value("barnabas_topic_records_in_total", "topic", "t"))
	assert.EqualValues(t, 6, s.value("barnabas_topic_records_out_total", "topic", "t"))
	in := s.value("barnabas_topic_bytes_in_total", "topic", "t")
	assert.Greater(t, in, 1000.0)
	assert.Equal(t, in*6/10, s.value("barnabas_topic_bytes_out_total", "topic", "t"))
	assert.Equal(t, in, s.value("barnabas_topic_log_size_bytes", "topic", "t"))
	assert.EqualValues(t, 2, s.value("barnabas_topic_log_segments", "topic", "t"))
	assert.EqualValues(t, 2, s.value("barnabas_topic_leaders", "topic", "t"))
	assert.EqualValues(t, 10, s.value("barnabas_topic_produce_batches_total", "topic", "t"))
	assert.EqualValues(t, 10, s.value("barnabas_request_duration_seconds", "api", "Produce"))
	assert.GreaterOrEqual(t, s.value("barnabas_log_flush_duration_seconds"), 10.0)
	assert.EqualValues(t, 1, s.value("barnabas_controller_active"))
	assert.Positive(t, s.value("barnabas_connections", "software", "metered", "version", "v1.2"))
	assert.EqualValues(t, 10, s.value("barnabas_partition_log_end_offset", "topic", "t", "partition", "0"))
	assert.EqualValues(t, 0, s.value("barnabas_partition_log_end_offset", "topic", "t", "partition", "1"))
	// The same under the names of others.
	assert.EqualValues(t, 10, s.value("kafka_server_brokertopicmetrics_messagesin_total", "topic", "t"))
	assert.EqualValues(t, 10, s.value("kafka_server_brokertopicmetrics_messagesin_total", "topic", ""))
	assert.EqualValues(t, 10, s.value("kafka_network_requestmetrics_totaltimems", "request", "Produce"))
	assert.Positive(t, s.value("kafka_network_requestmetrics_totaltimems", "request", "FetchConsumer"))
	assert.EqualValues(t, 10, s.value("kafka_topic_partition_current_offset", "topic", "t", "partition", "0"))
	assert.EqualValues(t, 1, s.value("kafka_brokers"))
}

// TestMetricsAreClean runs the linter of Prometheus over all there is, under all names.
func TestMetricsAreClean(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin(), brokertest.Metrics(everyAlias()))
	admin := kadm.NewClient(client(t, b.Addr()))
	_, err := admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	produce(t, b, "t", 1, time.Now())
	commit(t, admin, "g", "t", 0)
	resp, err := http.Get(b.Admin() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	problems, err := promlint.New(resp.Body).Lint()
	require.NoError(t, err)
	// Two of kafka_exporter's names break a rule, and are what its users' alerts have in them.
	problems = slices.DeleteFunc(problems, func(p promlint.Problem) bool {
		return slices.Contains([]string{"kafka_consumergroup_lag_sum", "kafka_consumergroup_current_offset_sum"}, p.Metric)
	})
	assert.Empty(t, problems)
}

// commit commits an offset for partition 0 as a group without members does.
func commit(t *testing.T, admin *kadm.Client, group, topic string, offset int64) {
	t.Helper()
	var o kadm.Offsets
	o.AddOffset(topic, 0, offset, -1)
	require.NoError(t, admin.CommitAllOffsets(t.Context(), group, o))
}

// TestGroupLag: lag is what is left to consume, in offsets and in seconds; never negative, and not more than there is to read.
func TestGroupLag(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin(), brokertest.Metrics(everyAlias()), brokertest.Property("log.message.timestamp.before.max.ms", "9223372036854775807"))
	admin := kadm.NewClient(client(t, b.Addr()))
	_, err := admin.CreateTopics(t.Context(), 1, 1, nil, "t", "idle")
	require.NoError(t, err)
	hour := time.Now().Add(-time.Hour)
	produce(t, b, "t", 5, hour)
	produce(t, b, "t", 5, time.Now())
	produce(t, b, "idle", 5, hour)
	lag := func(group, topic string) (records, seconds float64) {
		t.Helper()
		s := scrapes(t, b)
		records = s.value("barnabas_group_lag_records", "group", group, "topic", topic)
		assert.Equal(t, records, s.value("kafka_consumergroup_lag_sum", "consumergroup", group, "topic", topic))
		assert.Equal(t, records, s.value("kafka_consumergroup_lag", "consumergroup", group, "topic", topic, "partition", "0"))
		return records, s.value("barnabas_group_lag_seconds", "group", group, "topic", topic)
	}
	commit(t, admin, "g", "t", 2)
	records, seconds := lag("g", "t")
	assert.EqualValues(t, 8, records)
	assert.InDelta(t, 3600, seconds, 300)

	commit(t, admin, "g", "t", 7)
	records, seconds = lag("g", "t")
	assert.EqualValues(t, 3, records)
	assert.Less(t, seconds, 300.0)

	commit(t, admin, "g", "t", 10)
	commit(t, admin, "g", "idle", 5)
	for _, topic := range []string{"t", "idle"} { // the latter had its last record an hour ago
		records, seconds = lag("g", topic)
		assert.Zero(t, records)
		assert.Zero(t, seconds)
	}

	commit(t, admin, "g", "t", 1000) // nobody keeps a group from that
	records, _ = lag("g", "t")
	assert.Zero(t, records)

	// Retention passes a group that commits nothing more: what is gone is not to be consumed any more.
	commit(t, admin, "g", "t", 1)
	_, err = admin.DeleteRecords(t.Context(), offsetsOf("t", 6))
	require.NoError(t, err)
	records, seconds = lag("g", "t")
	assert.EqualValues(t, 4, records)
	assert.Less(t, seconds, 300.0)
	_, err = admin.DeleteRecords(t.Context(), offsetsOf("t", 10))
	require.NoError(t, err)
	records, seconds = lag("g", "t")
	assert.Zero(t, records)
	assert.Zero(t, seconds)

	_, err = admin.DeleteTopics(t.Context(), "t")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return len(scrapes(t, b).series("barnabas_group_lag_records", "group", "g", "topic", "t")) == 0
	}, time.Minute, 10*time.Millisecond, "there is no lag in a topic that is gone")
}

func offsetsOf(topic string, offset int64) kadm.Offsets {
	var o kadm.Offsets
	o.AddOffset(topic, 0, offset, -1)
	return o
}

// TestFailuresAreCounted by their codes and, where a version isn't served, by why.
func TestFailuresAreCounted(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin())
	c := client(t, b.Addr())
	admin := kadm.NewClient(c)
	_, err := admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	_, err = admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.Error(t, err)
	_, err = admin.CreateTopic(t.Context(), 1, 9, nil, "u")
	require.Error(t, err)
	tiny := "100"
	_, err = admin.CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &tiny}, "tiny")
	require.NoError(t, err)
	require.Error(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "tiny", Value: []byte(strings.Repeat("x", 1000))}).FirstErr())
	old := client(t, b.Addr(), kgo.MaxVersions(kversion.V0_10_0()))
	require.NoError(t, old.Ping(t.Context()))

	s := scrapes(t, b)
	assert.EqualValues(t, 1, s.value("barnabas_request_errors_total", "api", "CreateTopics", "error", "TOPIC_ALREADY_EXISTS"))
	assert.EqualValues(t, 1, s.value("barnabas_request_errors_total", "api", "CreateTopics", "error", "INVALID_REPLICATION_FACTOR"))
	assert.Positive(t, s.value("barnabas_request_errors_total", "api", "Produce", "error", "MESSAGE_TOO_LARGE"))
	assert.Positive(t, s.value("barnabas_topic_produce_batches_failed_total", "topic", "tiny"))
	assert.Empty(t, s.series("barnabas_request_errors_total", "error", "NONE"))
	assert.Empty(t, s.series("kafka_brokers"), "aliases are for who asks for them")
	assert.Empty(t, s.series("barnabas_partition_leader"), "and so are partitions")
}

// TestCountersNeverFall: what went through a topic that is gone is still in the sum of all.
func TestCountersNeverFall(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin(), brokertest.Metrics(everyAlias()))
	admin := kadm.NewClient(client(t, b.Addr()))
	_, err := admin.CreateTopics(t.Context(), 1, 1, nil, "stays", "goes")
	require.NoError(t, err)
	produce(t, b, "stays", 2, time.Now())
	produce(t, b, "goes", 3, time.Now())
	const in = "kafka_server_brokertopicmetrics_messagesin_total"
	require.EqualValues(t, 5, scrapes(t, b).value(in, "topic", ""))
	_, err = admin.DeleteTopics(t.Context(), "goes")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(scrapes(t, b).series(in, "topic", "goes")) == 0 }, patience, 10*time.Millisecond)
	s := scrapes(t, b)
	assert.EqualValues(t, 5, s.value(in, "topic", ""))
	assert.EqualValues(t, 2, s.value(in, "topic", "stays"))
}

// TestGroupLagAcrossBrokers: the coordinator of a group asks the leaders of its partitions, and what it says agrees with what is there.
func TestGroupLagAcrossBrokers(t *testing.T) {
	c := startCluster(t, 3, brokertest.Admin(), brokertest.Metrics(everyAlias()))
	admin := adminAt(t, c.Addrs())
	const partitions = 6
	_, err := admin.CreateTopic(t.Context(), partitions, 1, nil, "t")
	require.NoError(t, err)
	producer := client(t, c.Broker(1).Addr(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	var committed kadm.Offsets
	for p := range int32(partitions) {
		for range p + 1 { // 1 to 6 records
			require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: p, Value: []byte("v"), Timestamp: time.Now().Add(-time.Hour)}).FirstErr())
		}
		committed.AddOffset("t", p, 1, -1)
	}
	require.NoError(t, admin.CommitAllOffsets(t.Context(), "g", committed))
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(leaders(t, c.Broker(1), "t")))), 3, "all brokers lead")
	coordinator := func() scrape {
		for _, b := range c.Brokers {
			if s := scrapes(t, b); len(s.series("barnabas_group_members", "group", "g")) > 0 {
				return s
			}
		}
		return scrape{}
	}
	var s scrape
	require.Eventually(t, func() bool { // a connection may take longer than a scrape waits
		s = coordinator()
		return s.t != nil && s.value("barnabas_group_lag_unknown_partitions") == 0 && len(s.series("barnabas_group_lag_seconds", "group", "g")) == 1
	}, patience, 10*time.Millisecond)
	assert.EqualValues(t, 0+1+2+3+4+5, s.value("barnabas_group_lag_records", "group", "g", "topic", "t"))
	assert.InDelta(t, 3600, s.value("barnabas_group_lag_seconds", "group", "g", "topic", "t"), 600)
	for p := range partitions {
		number := string(rune('0' + p))
		assert.EqualValues(t, p, s.value("kafka_consumergroup_lag", "consumergroup", "g", "topic", "t", "partition", number))
		behind := s.value("barnabas_group_partition_lag_seconds", "group", "g", "topic", "t", "partition", number)
		if p == 0 {
			assert.Zero(t, behind)
		} else {
			assert.InDelta(t, 3600, behind, 600)
		}
	}
}
