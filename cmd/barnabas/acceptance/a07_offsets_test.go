package acceptance

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestA07ListOffsets: a timestamp gives the first record at or after it, wherever segments end, and none past the last.
//
// streamnative/kop#334, redpanda-data/redpanda#4308, redpanda#4322, dpkp/kafka-python#2030, AutoMQ/automq#2039
func TestA07ListOffsets(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		topics := map[string]props{
			"one segment": nil,
			"segments":    {"segment.bytes": "80"},
			"indexed":     {"index.interval.bytes": "0"},
			"compressed":  {"compression.type": "gzip"},
		}
		for kind, more := range topics {
			configs := forever()
			for k, v := range more {
				configs[k] = v
			}
			name := "t-" + kind[:3]
			c.createTopic(name, 1, configs)
			for i := range int64(4) {
				c.accepted(name, i, batch(rec{value: []byte("v"), timestamp: 2 * (i + 1)}))
			}
		}
		c.createTopic("batched", 1, forever()) // the four in one batch
		c.accepted("batched", 0, batch(rec{timestamp: 2}, rec{timestamp: 4}, rec{timestamp: 6}, rec{timestamp: 8}))
		c.createTopic("empty", 1, forever())

		type answer struct{ offset, timestamp int64 }
		want := map[int64]answer{0: {0, 2}, 1: {0, 2}, 2: {0, 2}, 3: {1, 4}, 5: {2, 6}, 6: {2, 6}, 7: {3, 8}, 8: {3, 8}, 9: {-1, -1},
			math.MaxInt64: {-1, -1}, -1: {4, -1}, -2: {0, -1}}
		check := func(when string) {
			for _, topic := range []string{"t-one", "t-seg", "t-ind", "t-com", "batched"} {
				for version := int16(1); version <= 8; version++ {
					for timestamp, w := range want {
						got := c.listOffset(version, topic, 0, timestamp)
						assert.Zero(t, got.ErrorCode)
						assert.Equal(t, w, answer{got.Offset, got.Timestamp}, "%s: %s v%d at %d", when, topic, version, timestamp)
					}
				}
				latest := c.listOffset(7, topic, 0, -3)
				assert.Equal(t, answer{3, 8}, answer{latest.Offset, latest.Timestamp}, "%s: %s: the latest timestamp", when, topic)
				old := c.listOffset(0, topic, 0, -1)
				assert.Equal(t, []int64{4}, old.OldStyleOffsets)
			}
			for _, timestamp := range []int64{0, 1, 1000, math.MaxInt64} {
				got := c.listOffset(2, "empty", 0, timestamp)
				assert.Equal(t, answer{-1, -1}, answer{got.Offset, got.Timestamp}, "%s: an empty topic at %d", when, timestamp)
			}
		}
		check("as written")
		n.stop()
		n.start()
		c = n.dial()
		check("after a stop")
		n.kill()
		n.start()
		c = n.dial()
		check("after kill -9")

		// One partition twice can't be answered twice.
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = -1
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic, topic.Partitions = "t-one", append(topic.Partitions, p, p)
		for version := int16(1); version <= 8; version++ {
			req := kmsg.NewPtrListOffsetsRequest()
			req.Topics = append(req.Topics, topic)
			for _, got := range ask[*kmsg.ListOffsetsResponse](c, version, req).Topics[0].Partitions {
				assert.Equal(t, int16(42), got.ErrorCode, fmt.Sprint("v", version))
			}
		}
		require.Equal(t, int16(3), c.listOffset(2, "none", 0, -1).ErrorCode)
	})
}
