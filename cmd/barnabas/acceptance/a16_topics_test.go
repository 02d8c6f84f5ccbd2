package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Error codes of topics.
const (
	unknownTopic       = 3
	invalidTopic       = 17
	topicExists        = 36
	invalidPartitions  = 37
	invalidReplication = 38
	invalidAssignment  = 39
	invalidRequest     = 42
)

// badNames are topic names that must not get near a path.
func badNames() []string {
	return []string{"", ".", "..", "../x", "../../../../tmp/x", "/etc", "a/b", "a\\b", "a b", "a\x00b", "a\nb", "é", "a:b", "*", "\xff\xfe", long(250), long(32000)}
}

// TestA16TopicNames: names that can't be directories are refused, the longest legal one can be deleted, and deletion
// survives kill -9.
//
// KAFKA-3219, KAFKA-4893, KAFKA-5232, confluentinc/librdkafka#529
func TestA16TopicNames(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		outer := t.TempDir()
		inner := filepath.Join(outer, "inner")
		require.NoError(t, os.Mkdir(inner, 0o755))
		n := beginIn(t, inner, storage, props{"log.segment.delete.delay.ms": "100"})
		c := n.dial()
		for _, name := range badNames() {
			assert.Equal(t, int16(invalidTopic), c.tryCreate(name, 1, nil), "%.20q", name)
		}
		longest := long(249)
		for _, name := range []string{longest, "a.b-1.c", "stays", "...", "-", "-1", "a-0", "a", "_", "x-delete", "x.0123456789abcdef0123456789abcdef-delete"} {
			assert.Zero(t, c.tryCreate(name, 2, nil), name)
		}
		require.Zero(t, c.produceTo("stays", 1, batch(rec{value: []byte("kept")})).ErrorCode)
		for range 2 {
			require.Zero(t, c.deleteTopic(longest))
			assert.Equal(t, int16(unknownTopic), c.metadata(longest).ErrorCode)
			c.createTopic(longest, 1, nil)
		}
		require.Zero(t, c.deleteTopic("a.b-1.c"))
		require.Zero(t, c.deleteTopic(longest))
		n.kill()
		n.start()
		c = n.dial()
		for _, gone := range []string{longest, "a.b-1.c"} {
			assert.Equal(t, int16(unknownTopic), c.metadata(gone).ErrorCode)
		}
		eventually(t, func() bool {
			left, err := filepath.Glob(n.data("*-delete"))
			require.NoError(t, err)
			for _, dir := range left {
				if !strings.HasPrefix(filepath.Base(dir), "x") {
					return false
				}
			}
			return true
		}, "deletion to be finished")
		assert.Equal(t, []string{"kept"}, texts(c.all("stays", 1, 0)))
		for _, name := range []string{"...", "-", "-1", "a-0", "a", "_", "x-delete"} {
			topic := c.metadata(name)
			assert.Zero(t, topic.ErrorCode, name)
			assert.Len(t, topic.Partitions, 2, name)
		}
		c.createTopic(longest, 1, nil)
		require.Zero(t, c.produceTo(longest, 0, batch(rec{value: []byte("new")})).ErrorCode)
		assert.Equal(t, []string{"new"}, texts(c.all(longest, 0, 0)), "nothing of the deleted one")

		entries, err := os.ReadDir(outer)
		require.NoError(t, err)
		assert.Len(t, entries, 1, "nothing outside of the data directory")
	})
}

// createRequest is a creation of topics by what each is given.
func createRequest(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 10_000, topics
	return req
}

func topicRequest(name string, partitions int32, replication int16, assignment ...[]int32) kmsg.CreateTopicsRequestTopic {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, replication
	for i, replicas := range assignment {
		if replicas == nil {
			continue
		}
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
	}
	return topic
}

// TestA17CreateTopicsArguments: contradictory arguments are told apart, and one bad topic doesn't fail the others.
//
// redpanda-data/redpanda#1573, redpanda#5284, tulios/kafkajs#1162, KAFKA-4591
func TestA17CreateTopicsArguments(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	c.createTopic("exists", 3, nil)
	for version := int16(4); version <= 7; version++ {
		name := func(s string) string { return fmt.Sprintf("v%d-%s", version, s) }
		cases := []struct {
			topic kmsg.CreateTopicsRequestTopic
			want  int16
		}{
			{topicRequest(name("good"), 1, 1), 0},
			{topicRequest(name("no-partitions"), 0, 1), invalidPartitions},
			{topicRequest(name("minus-two"), -2, 1), invalidPartitions},
			{topicRequest(name("default"), -1, -1), 0},
			{topicRequest(name("no-replicas"), 1, 0), invalidReplication},
			{topicRequest(name("three-replicas"), 1, 3), invalidReplication},
			{topicRequest(name("minus-two-replicas"), 1, -2), invalidReplication},
			{topicRequest(name("both"), 1, 1, []int32{1}), invalidRequest},
			{topicRequest(name("hole"), -1, -1, []int32{1}, nil, []int32{1}), invalidAssignment},
			{topicRequest(name("twice"), -1, -1, []int32{1, 1}), invalidAssignment},
			{topicRequest(name("manual"), -1, -1, []int32{1}, []int32{1}), 0},
			{topicRequest("exists", 1, 1), topicExists},
			{topicRequest("..", 1, 1), invalidTopic},
		}
		var topics []kmsg.CreateTopicsRequestTopic
		for _, k := range cases {
			topics = append(topics, k.topic)
		}
		topics = append(topics, topicRequest(name("double"), 1, 1), topicRequest(name("double"), 1, 1))
		req := createRequest(topics...)
		req.ValidateOnly = true
		for _, validateOnly := range []bool{true, false} {
			req.ValidateOnly = validateOnly
			got := map[string]int16{}
			for _, topic := range ask[*kmsg.CreateTopicsResponse](c, version, req).Topics {
				got[topic.Topic] = topic.ErrorCode
			}
			for _, k := range cases {
				assert.Equal(t, k.want, got[k.topic.Topic], "v%d: %s, validate only %v", version, k.topic.Topic, validateOnly)
				if k.topic.Topic == "exists" || k.topic.Topic == ".." {
					continue
				}
				want := int16(unknownTopic)
				if k.want == 0 && !validateOnly {
					want = 0
				}
				assert.Equal(t, want, c.metadata(k.topic.Topic).ErrorCode, "v%d: %s, validate only %v", version, k.topic.Topic, validateOnly)
			}
			assert.Equal(t, int16(invalidRequest), got[name("double")])
			assert.Equal(t, int16(unknownTopic), c.metadata(name("double")).ErrorCode)
		}
	}
	for version := range int16(4) {
		for count, want := range map[int32]int16{3: invalidPartitions, 1: invalidPartitions, 0: invalidPartitions, -1: invalidPartitions} {
			topic := kmsg.NewCreatePartitionsRequestTopic()
			topic.Topic, topic.Count = "exists", count
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, topic)
			assert.Equal(t, want, ask[*kmsg.CreatePartitionsResponse](c, version, req).Topics[0].ErrorCode, "v%d: %d partitions", version, count)
		}
	}
	assert.Len(t, c.metadata("exists").Partitions, 3)
}
