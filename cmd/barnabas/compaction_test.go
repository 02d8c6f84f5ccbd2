package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// seen is what a consumer finds in a topic from its start to its end: all records of each key.
func seen(t *testing.T, hostPort, topic string) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(hostPort), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	require.NoError(t, err)
	end, _ := ends.Lookup(topic, 0)
	out := map[string][]string{}
	// The last record of a test's topic is in the active segment, so that it is never compacted away.
	for at := int64(0); at < end.Offset; {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			value := string(r.Value)
			if r.Value == nil {
				value = "tombstone"
			}
			out[string(r.Key)] = append(out[string(r.Key)], value)
			at = r.Offset + 1
		})
	}
	return out
}

func alterTopic(t *testing.T, admin *kadm.Client, topic, name, value string) {
	t.Helper()
	results, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	require.NoError(t, err)
	for _, r := range results {
		require.NoError(t, r.Err)
	}
}

// TestCompactedTopic follows a compacted topic: old values go, the last one of each key stays under its offset, tombstones go
// after delete.retention.ms, a record without a key is refused, and all of it is so after a restart.
func TestCompactedTopic(t *testing.T) {
	from := elsewhere(t, "")
	from.sets = append(from.sets, "broker.broker.id=3", "broker.log.cleaner.backoff.ms=3600000", "broker.log.initial.task.delay.ms=0")
	configs := map[string]*string{"cleanup.policy": kadm.StringPtr("compact"), "segment.bytes": kadm.StringPtr("400"),
		"min.cleanable.dirty.ratio": kadm.StringPtr("0.01"), "delete.retention.ms": kadm.StringPtr("3600000")}
	wanted := map[string][]string{}
	t.Run("while it runs", func(t *testing.T) {
		hostPort := start(t, from)
		client, err := kgo.NewClient(kgo.SeedBrokers(hostPort), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(t, err)
		defer client.Close()
		admin := kadm.NewClient(client)
		_, err = admin.CreateTopics(t.Context(), 1, 1, configs, "t")
		require.NoError(t, err)
		put := func(key, value string) {
			r := &kgo.Record{Key: []byte(key), Value: []byte(value)}
			if value == "" {
				r.Value = nil
			}
			require.NoError(t, client.ProduceSync(t.Context(), r).FirstErr())
		}
		for i := range 60 {
			put(fmt.Sprint("k", i%6), strconv.Itoa(i))
		}
		put("k3", "")
		rolled := 0
		roll := func() { // closes the segment that what was put last is in
			for range 8 {
				put("last", strconv.Itoa(rolled))
				rolled++
			}
		}
		roll()
		// A cleaner that waits for an hour doesn't any more.
		results, err := admin.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.cleaner.backoff.ms", Value: kadm.StringPtr("5")}}, 3)
		require.NoError(t, err)
		for _, r := range results {
			require.NoError(t, r.Err)
		}
		for i := range 6 {
			wanted[fmt.Sprint("k", i)] = []string{strconv.Itoa(54 + i)}
		}
		wanted["k3"] = []string{"tombstone"}
		compacted := func() bool {
			got := seen(t, hostPort, "t")
			delete(got, "last")
			return assert.ObjectsAreEqual(wanted, got)
		}
		require.Eventually(t, compacted, time.Minute, 20*time.Millisecond)

		alterTopic(t, admin, "t", "delete.retention.ms", "0")
		// The time is counted from when the tombstone was first compacted; of a new one that is now.
		put("k4", "")
		roll()
		delete(wanted, "k4")
		require.Eventually(t, func() bool {
			roll() // a log without anything new isn't compacted
			return compacted()
		}, time.Minute, 20*time.Millisecond)

		err = client.ProduceSync(t.Context(), &kgo.Record{Value: []byte("without a key")}).FirstErr()
		require.ErrorIs(t, err, kerr.InvalidRecord)
		put("", "an empty key is one")
		wanted[""] = []string{"an empty key is one"}
	})
	t.Run("after a restart", func(t *testing.T) {
		got := seen(t, start(t, from), "t")
		delete(got, "last")
		require.Equal(t, wanted, got)
	})
}

// TestCommittedOffsetsAreCompacted commits offsets again and again: what is kept of them doesn't grow, and is read right after
// a restart.
func TestCommittedOffsetsAreCompacted(t *testing.T) {
	from := elsewhere(t, "")
	from.sets = append(from.sets, "broker.log.cleaner.backoff.ms=5", "broker.log.cleaner.min.cleanable.ratio=0.01",
		"broker.offsets.topic.segment.bytes=2000", "broker.offsets.topic.num.partitions=1", "broker.log.segment.delete.delay.ms=0")
	const commits = 300
	committed := func(t *testing.T, admin *kadm.Client) map[string]int64 {
		out := map[string]int64{}
		for _, group := range []string{"a", "b"} {
			offsets, err := admin.FetchOffsets(t.Context(), group)
			require.NoError(t, err)
			offsets.Each(func(o kadm.OffsetResponse) {
				require.NoError(t, o.Err)
				out[fmt.Sprintf("%s %s %d", group, o.Topic, o.Partition)] = o.At
			})
		}
		return out
	}
	wanted := map[string]int64{}
	connect := func(t *testing.T, hostPort string) *kadm.Client {
		client, err := kgo.NewClient(kgo.SeedBrokers(hostPort))
		require.NoError(t, err)
		t.Cleanup(client.Close)
		return kadm.NewClient(client)
	}
	t.Run("while it runs", func(t *testing.T) {
		admin := connect(t, start(t, from))
		_, err := admin.CreateTopics(t.Context(), 3, 1, nil, "t")
		require.NoError(t, err)
		for i := range int64(commits) {
			group, p := []string{"a", "b"}[i%2], int32(i%3)
			offsets := kadm.Offsets{}
			offsets.AddOffset("t", p, i, -1)
			require.NoError(t, admin.CommitAllOffsets(t.Context(), group, offsets))
			wanted[fmt.Sprintf("%s t %d", group, p)] = i
		}
		size := func() (n int64) {
			dirs, err := admin.DescribeAllLogDirs(t.Context(), nil)
			require.NoError(t, err)
			dirs.Each(func(d kadm.DescribedLogDir) {
				d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
					if p.Topic == "__consumer_offsets" {
						n += p.Size
					}
				})
			})
			return n
		}
		require.Eventually(t, func() bool { return size() < 6000 }, time.Minute, 10*time.Millisecond, "%d commits have more than 100 bytes each", commits)
		require.Equal(t, wanted, committed(t, admin))
	})
	t.Run("after a restart", func(t *testing.T) {
		require.Equal(t, wanted, maps.Clone(committed(t, connect(t, start(t, from)))))
	})
}
