package kafka_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// lines reads a file of tab-separated values.
func lines(t *testing.T, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var rows [][]string
	for s := bufio.NewScanner(f); s.Scan(); {
		if !strings.HasPrefix(s.Text(), "#") {
			rows = append(rows, strings.Split(s.Text(), "\t"))
		}
	}
	require.NotEmpty(t, rows)
	return rows
}

// recorded are the properties that the recorded Kafka had in its file.
func recorded() kafka.Layers {
	return kafka.Layers{Static: kafka.Values{
		"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0", "num.partitions": "1",
		"num.io.threads": "8", "num.network.threads": "3", "num.recovery.threads.per.data.dir": "1",
		"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr": "1", "socket.receive.buffer.bytes": "102400", "socket.send.buffer.bytes": "102400",
		"socket.request.max.bytes": "104857600", "broker.id": "1", "node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092",
		"advertised.listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/data", "zookeeper.connect": "127.0.0.1:2181",
		"zookeeper.connection.timeout.ms": "18000",
	}}
}

func show(v *string) string {
	if v == nil {
		return `\N`
	}
	return *v
}

// TestDescribeAsKafkaDoes compares every field of every property with what Kafka 3.9 was recorded to answer.
func TestDescribeAsKafkaDoes(t *testing.T) {
	base := recorded()
	backoff, everyone := base, base
	backoff.Dynamic = kafka.Values{"log.cleaner.backoff.ms": "14000"}
	everyone.DynamicDefault = kafka.Values{"log.retention.ms": "600000000"}
	got := map[string][]kafka.Entry{
		"topic":           base.DescribeTopic(kafka.Values{"cleanup.policy": "compact", "max.message.bytes": "2000", "retention.ms": "-1"}),
		"broker":          base.DescribeBroker(),
		"dynamic broker":  backoff.DescribeBroker(),
		"dynamic default": everyone.DescribeBroker(),
	}
	seen := map[string]int{}
	for _, row := range lines(t, "testdata/describe39.tsv") {
		label, name := row[0], row[1]
		seen[label]++
		entry, found := find(got[label], name)
		if !assert.True(t, found, "%s: %s is missing", label, name) {
			continue
		}
		var synonyms []string
		for _, s := range entry.Synonyms {
			synonyms = append(synonyms, fmt.Sprintf("%s@%d=%s", s.Name, s.Source, show(s.Value)))
		}
		ours := []string{label, name, show(entry.Value), fmt.Sprint(entry.Source), fmt.Sprint(int8(entry.Type)),
			fmt.Sprint(entry.ReadOnly), fmt.Sprint(entry.Sensitive), strings.Join(synonyms, " ")}
		if row[2] == "<place>" {
			continue
		}
		if row[4] == "0" { // recorded at a version that has no types
			ours[4] = "0"
		}
		// The table's own defaults, which TestOwnDefaults names.
		if name == "log.dir" {
			continue
		}
		assert.Equal(t, row, ours, "%s: %s", label, name)
	}
	assert.Equal(t, len(got["topic"]), seen["topic"])
	assert.Equal(t, len(got["broker"]), seen["broker"])
}

func find(entries []kafka.Entry, name string) (kafka.Entry, bool) {
	for _, e := range entries {
		if e.Name == name {
			return e, true
		}
	}
	return kafka.Entry{}, false
}

func TestDescribeDefault(t *testing.T) {
	l := recorded()
	assert.Empty(t, l.DescribeDefault())
	l.DynamicDefault = kafka.Values{"log.retention.ms": "1000", "my.own": "x"}
	l.Dynamic = kafka.Values{"log.retention.ms": "2000"}
	entries := l.DescribeDefault()
	require.Len(t, entries, 2)
	assert.Equal(t, "1000", *entries[0].Value)
	assert.Equal(t, kafka.FromDynamicDefault, entries[0].Source)
	assert.Len(t, entries[0].Synonyms, 1)
	assert.Equal(t, "my.own", entries[1].Name)
	assert.Nil(t, entries[1].Value, "what isn't known may be a secret")

	mine, ok := find(l.DescribeBroker(), "log.retention.ms")
	require.True(t, ok)
	assert.Equal(t, "2000", *mine.Value)
	assert.Equal(t, kafka.FromDynamicBroker, mine.Source)
	_, ok = find(l.DescribeBroker(), "my.own")
	assert.True(t, ok)
}

func TestSecretsAreHidden(t *testing.T) {
	l := kafka.Layers{Dynamic: kafka.Values{"ssl.key.password": "hunter2"}}
	entry, _ := find(l.DescribeBroker(), "ssl.key.password")
	assert.True(t, entry.Sensitive)
	assert.Nil(t, entry.Value)
	require.Len(t, entry.Synonyms, 1)
	assert.Nil(t, entry.Synonyms[0].Value)
}

func TestInternalPropertiesShowOnlyWhenSet(t *testing.T) {
	_, shown := find(kafka.Layers{}.DescribeBroker(), "log.initial.task.delay.ms")
	assert.False(t, shown)
	_, shown = find(kafka.Layers{Static: kafka.Values{"log.initial.task.delay.ms": "1"}}.DescribeBroker(), "log.initial.task.delay.ms")
	assert.True(t, shown)
}

// TestTopicDefaultsFollowTheBroker tries each unit of time and each layer.
func TestTopicDefaultsFollowTheBroker(t *testing.T) {
	tests := []struct {
		name   string
		layers kafka.Layers
		key    string
		want   string
		source kafka.Source
	}{
		{"default", kafka.Layers{}, "retention.ms", "604800000", kafka.FromDefault},
		{"hours", kafka.Layers{Static: kafka.Values{"log.retention.hours": "1"}}, "retention.ms", "3600000", kafka.FromDefault},
		{"minutes before hours", kafka.Layers{Static: kafka.Values{"log.retention.hours": "1", "log.retention.minutes": "5"}}, "retention.ms", "300000", kafka.FromDefault},
		{"ms before minutes", kafka.Layers{Static: kafka.Values{"log.retention.ms": "7", "log.retention.minutes": "5"}}, "retention.ms", "7", kafka.FromStatic},
		{"hours for ever", kafka.Layers{Static: kafka.Values{"log.retention.hours": "-1"}}, "retention.ms", "-1", kafka.FromDefault},
		{"minutes for ever", kafka.Layers{Static: kafka.Values{"log.retention.minutes": "-5"}}, "retention.ms", "-1", kafka.FromDefault},
		{"dynamic ms", kafka.Layers{Static: kafka.Values{"log.retention.ms": "7"}, DynamicDefault: kafka.Values{"log.retention.ms": "8"}, Dynamic: kafka.Values{"log.retention.ms": "9"}}, "retention.ms", "9", kafka.FromDynamicBroker},
		{"roll hours", kafka.Layers{Static: kafka.Values{"log.roll.hours": "2"}}, "segment.ms", "7200000", kafka.FromDefault},
		{"jitter hours", kafka.Layers{Static: kafka.Values{"log.roll.jitter.hours": "2"}}, "segment.jitter.ms", "7200000", kafka.FromDefault},
		{"flush by the scheduler", kafka.Layers{Static: kafka.Values{"log.flush.scheduler.interval.ms": "50"}}, "flush.ms", "50", kafka.FromDefault},
		{"flush of its own", kafka.Layers{Static: kafka.Values{"log.flush.scheduler.interval.ms": "50", "log.flush.interval.ms": "60"}}, "flush.ms", "60", kafka.FromStatic},
		{"largest hours", kafka.Layers{Static: kafka.Values{"log.retention.hours": "2147483647"}}, "retention.ms", "7730941129200000", kafka.FromDefault},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entry, ok := find(tt.layers.DescribeTopic(nil), tt.key)
			require.True(t, ok)
			assert.Equal(t, tt.want, *entry.Value)
			assert.Equal(t, tt.source, entry.Source)
		})
	}
}
