package acceptance

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// swift are properties under which retention acts within the test.
func swift() props {
	return props{"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100", "log.segment.delete.delay.ms": "100"}
}

// start is the first offset of a partition.
func (c *conn) start(topic string, partition int32) int64 {
	c.t.Helper()
	got := c.listOffset(2, topic, partition, -2)
	require.Zero(c.t, got.ErrorCode)
	return got.Offset
}

// TestA21WrongClocks: records from the future, from 1970, and from before do no harm but to themselves.
//
// redpanda-data/redpanda#9820, redpanda#10028, redpanda#11922, KAFKA-14991, KAFKA-20609
func TestA21WrongClocks(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, swift())
		c := n.dial()
		now := time.Now().UnixMilli()
		year := now + 365*24*3600*1000
		nanoseconds := int64(1.6e18)

		// What is stamped in the future is kept by time, and deleted by size.
		for topic, stamp := range map[string]int64{"year": year, "nano": nanoseconds} {
			c.createTopic(topic, 1, props{"retention.ms": "300", "segment.bytes": "500"})
			for i := range int64(30) {
				c.accepted(topic, i, batch(rec{value: []byte("v"), timestamp: stamp}))
			}
		}
		// What is stamped 0 is old at once; a stamp of -1 says nothing, and the segment's age is its file's.
		for topic, stamp := range map[string]int64{"zero": 0, "none": -1} {
			c.createTopic(topic, 1, props{"retention.ms": "300", "segment.bytes": "500"})
			for range 30 {
				b := newBatch(rec{value: []byte("v"), timestamp: stamp})
				b.MaxTimestamp = stamp
				require.Zero(t, c.produceTo(topic, 0, encode(b)).ErrorCode)
			}
			eventually(t, func() bool { return c.start(topic, 0) == 30 }, "%s: to be deleted", topic)
			c.accepted(topic, 30, batch(rec{value: []byte("v"), timestamp: year}))
		}
		// LogAppendTime replaces every stamp.
		c.createTopic("append", 1, props{"retention.ms": "300", "segment.bytes": "500", "message.timestamp.type": "LogAppendTime"})
		for i := range int64(30) {
			got := c.produceTo("append", 0, batch(rec{value: []byte("v"), timestamp: []int64{year, nanoseconds, 0}[i%3]}))
			require.Zero(t, got.ErrorCode)
			require.InDelta(t, now, got.LogAppendTime, 60_000)
		}
		eventually(t, func() bool { return c.start("append", 0) == 30 }, "LogAppendTime: to be deleted")
		for _, topic := range []string{"year", "nano"} {
			assert.Zero(t, c.start(topic, 0), "%s: kept by time", topic)
			logs, err := filepath.Glob(n.data(topic+"-0", "*.log"))
			require.NoError(t, err)
			assert.LessOrEqual(t, len(logs), 6, "%s: wild stamps don't make segments", topic)
			c.set(topic, "retention.bytes", "1000")
			eventually(t, func() bool { return c.start(topic, 0) > 0 }, "%s: to be deleted by size", topic)
			assert.Less(t, c.start(topic, 0), int64(30), "what fits is kept")
		}
	})
}

// TestA21Bounds: a topic may bound how far from the broker's clock a stamp may be, in both directions and all names of the
// bound.
func TestA21Bounds(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	now := time.Now().UnixMilli()
	const hour = 3600_000
	for topic, configs := range map[string]props{
		"after":      {"message.timestamp.after.max.ms": "3600000"},
		"before":     {"message.timestamp.before.max.ms": "3600000"},
		"difference": {"message.timestamp.difference.max.ms": "3600000"},
	} {
		c.createTopic(topic, 1, configs)
		offset := int64(0)
		for stamp, refused := range map[int64]bool{
			now + 2*hour: topic != "before", now + hour/2: false, now - hour/2: false, now - 2*hour: topic != "after",
		} {
			for _, codec := range []int16{0, 1} {
				b := newBatch(rec{value: []byte("good"), timestamp: now}, rec{value: []byte("v"), timestamp: stamp})
				b.Attributes, b.Records = codec, compressed(t, codec, b.Records)
				got := ask[*kmsg.ProduceResponse](c, 8, produceRequest(topic, encode(b))).Topics[0].Partitions[0]
				why := fmt.Sprintf("%s: %d hours", topic, (stamp-now)/hour)
				if !refused {
					assert.Zero(t, got.ErrorCode, why)
					assert.Equal(t, offset, got.BaseOffset, why)
					offset += 2
					continue
				}
				assert.Equal(t, int16(32), got.ErrorCode, why)
				if assert.Len(t, got.ErrorRecords, 1, why) {
					assert.Equal(t, int32(1), got.ErrorRecords[0].RelativeOffset, why)
				}
				assert.Equal(t, offset, c.end(topic, 0), why)
			}
		}
	}
}

// TestA22NullKeys: a compacted topic takes no record without a key, whatever else it deletes; an empty key is a key.
//
// KAFKA-4808, KAFKA-7332
func TestA22NullKeys(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		for i, policy := range []string{"compact", "compact,delete", "delete,compact"} {
			topic := fmt.Sprint("t", i)
			c.createTopic(topic, 1, forever("cleanup.policy", policy))
			keyed := rec{key: []byte("k"), value: []byte("v"), timestamp: 1000}
			bare := rec{value: []byte("v"), timestamp: 1000}
			for version := int16(3); version <= 12; version++ {
				for codec := range int16(5) {
					if codec == 4 && version < 7 {
						continue // zstd came with Produce 7
					}
					b := newBatch(keyed, bare, keyed, bare)
					b.Attributes, b.Records = codec, compressed(t, codec, b.Records)
					got := c.produce(version, topic, encode(b))
					assert.Equal(t, int16(invalidRecord), got.ErrorCode, "%s v%d codec %d", policy, version, codec)
					assert.Equal(t, int64(-1), got.BaseOffset)
					if version >= 8 {
						if assert.Len(t, got.ErrorRecords, 2) {
							assert.Equal(t, []int32{1, 3}, []int32{got.ErrorRecords[0].RelativeOffset, got.ErrorRecords[1].RelativeOffset})
						}
						assert.NotNil(t, got.ErrorMessage)
					}
				}
				assert.Equal(t, int16(invalidRecord), c.produce(version, topic, unhex(t, va1)).ErrorCode)
			}
			for version, set := range map[int16]string{0: va4, 1: va4, 2: va5} {
				assert.Equal(t, int16(invalidRecord), c.produce(version, topic, unhex(t, set)).ErrorCode, "v%d", version)
			}
			assert.Zero(t, c.end(topic, 0), "nothing was appended")
			c.accepted(topic, 0, batch(rec{key: []byte{}, value: []byte("v"), timestamp: 1000}))
			c.accepted(topic, 1, batch(keyed, rec{key: []byte("k"), timestamp: 1000}))
			require.Zero(t, c.produce(2, topic, message(1, 0, 0, 1000, []byte("k"), nil)).ErrorCode)
			// A topic that becomes compacted asks for keys from then on.
			later := fmt.Sprint("later", i)
			c.createTopic(later, 1, forever())
			c.accepted(later, 0, unhex(t, va1))
			c.set(later, "cleanup.policy", policy)
			c.refuses(8, later, unhex(t, va1), "compacted meanwhile", invalidRecord)
		}
	})
}
