package acceptance

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Error codes of produce.
const (
	corrupt       = 2
	tooLarge      = 10
	setTooLarge   = 18
	invalidRecord = 87
)

// unreadable are the codes for what can't be decompressed or read: brokers differ.
func unreadable() []int16 { return []int16{corrupt, invalidRecord, -1} }

// refuses produces what must be refused with one of the codes, and leave no trace.
func (c *conn) refuses(version int16, topic string, set []byte, why string, codes ...int16) {
	c.t.Helper()
	before := c.end(topic, 0)
	got := c.produce(version, topic, set)
	assert.Contains(c.t, codes, got.ErrorCode, why)
	assert.Equal(c.t, int64(-1), got.BaseOffset, why)
	assert.Equal(c.t, before, c.end(topic, 0), "%s: something was appended", why)
}

// TestA08Checksums: bad checksums are found and good ones aren't refused, in all three formats.
//
// twmb/franz-go#716, redpanda-data/redpanda#5685, redpanda#5912
func TestA08Checksums(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		c.createTopic("t", 1, forever())
		for version := int16(3); version <= 12; version++ {
			end := c.end("t", 0)
			got := c.produce(version, "t", unhex(t, va1))
			assert.Zero(t, got.ErrorCode)
			assert.Equal(t, end, got.BaseOffset)
			c.refuses(version, "t", unhex(t, va2), "VA2", corrupt)
			got = c.produce(version, "t", unhex(t, va1))
			assert.Zero(t, got.ErrorCode)
			assert.Equal(t, end+1, got.BaseOffset)
		}
		// Every bit that the checksum covers, and the checksum's own.
		for bit := 17 * 8; bit < 73*8; bit += 3 {
			set := unhex(t, va1)
			set[bit/8] ^= 1 << (bit % 8)
			c.refuses(7, "t", set, fmt.Sprintf("bit %d", bit), corrupt)
		}

		c.createTopic("old", 1, forever())
		for version := range int16(3) {
			for _, set := range []string{va4, va5} {
				if version < 2 && set == va5 {
					continue // Produce 0 and 1 carry magic 0
				}
				end := c.end("old", 0)
				assert.Zero(t, c.produce(version, "old", unhex(t, set)).ErrorCode)
				for _, fetch := range []int16{0, 2, 3, 4, 11} {
					records := decode(t, c.fetch(fetch, "old", 0, end), end)
					assert.Equal(t, []string{"a", "b"}, texts(records), "fetch v%d", fetch)
					assert.Equal(t, end+1, records[1].Offset)
				}
				flipped := unhex(t, set)
				flipped[len(flipped)-1] ^= 1
				c.refuses(version, "old", flipped, "the second message flipped", corrupt)
				flipped = unhex(t, set)
				flipped[len(flipped)/2-1] ^= 1
				c.refuses(version, "old", flipped, "the first message flipped", corrupt)
			}
		}
		// The stored checksum is right whatever the broker has stamped.
		assert.Len(t, c.all("t", 0, 0), 20)
	})
}

// TestA09OversizedBatch: the limit is on bytes as they are sent, and again on bytes as they are kept.
//
// confluentinc/librdkafka#488, librdkafka#1716, redpanda-data/redpanda#31362
func TestA09OversizedBatch(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		sized := func(size int) []byte {
			set := batch(rec{value: make([]byte, size-73), timestamp: 1000})
			set = batch(rec{value: make([]byte, 2*(size-73)-(len(set)-73)), timestamp: 1000})
			require.Len(t, set, size)
			return set
		}
		c.createTopic("t", 2, forever("max.message.bytes", "1000"))
		c.accepted("t", 0, sized(1000))
		for version := int16(3); version <= 12; version++ {
			c.refuses(version, "t", sized(1001), "1001 bytes", tooLarge)
		}
		c.accepted("t", 1, batch(values("small")...))
		zeros := newBatch(rec{value: make([]byte, 50_000), timestamp: 1000})
		zeros.Records, zeros.Attributes = gzipped(t, zeros.Records), 1
		c.accepted("t", 2, encode(zeros))

		both := ask[*kmsg.ProduceResponse](c, 8, produceRequest("t", sized(1001), sized(1000))).Topics[0].Partitions
		assert.Equal(t, []int16{tooLarge, 0}, []int16{both[0].ErrorCode, both[1].ErrorCode}, "one partition doesn't fail the other")

		c.createTopic("plain", 1, forever("max.message.bytes", "1000", "compression.type", "uncompressed"))
		c.refuses(8, "plain", encode(zeros), "too large as it would be kept", tooLarge)
		c.accepted("plain", 0, batch(values("small")...))

		c.createTopic("segment", 1, forever("segment.bytes", "2000"))
		c.refuses(8, "segment", sized(2001), "larger than a segment", setTooLarge)
		c.accepted("segment", 0, sized(2000))

		c.set("t", "max.message.bytes", "2000") // in force at once
		c.accepted("t", 3, sized(2000))
		c.refuses(8, "t", sized(2001), "2001 bytes", tooLarge)
	})
}

// TestA10LyingCounts: a header that says another number of records than there are is refused.
//
// KAFKA-6554 (apache/kafka#4585), KAFKA-5031, IBM/sarama#1026
func TestA10LyingCounts(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		c.createTopic("t", 1, forever())
		c.createTopic("again", 1, forever("compression.type", "lz4")) // the broker reads and writes it anew
		c.accepted("t", 0, batch(values("a", "b")...))
		type lie func(b *kmsg.RecordBatch)
		lies := map[string]lie{
			"last offset delta 0 of two": func(b *kmsg.RecordBatch) { b.LastOffsetDelta = 0 },
			"last offset delta 5 of two": func(b *kmsg.RecordBatch) { b.LastOffsetDelta = 5 },
			"last offset delta -1":       func(b *kmsg.RecordBatch) { b.LastOffsetDelta = -1 },
			"last offset delta minimum":  func(b *kmsg.RecordBatch) { b.LastOffsetDelta = math.MinInt32 },
			"last offset delta maximum":  func(b *kmsg.RecordBatch) { b.LastOffsetDelta = math.MaxInt32 },
			"count 0":                    func(b *kmsg.RecordBatch) { b.NumRecords = 0 },
			"count 0, delta -1":          func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 0, -1 },
			"count 0, delta 0":           func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 0, 0 },
			"count 1 of two":             func(b *kmsg.RecordBatch) { b.NumRecords = 1 },
			"count 1 of two, delta 0":    func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 1, 0 },
			"count 3 of two":             func(b *kmsg.RecordBatch) { b.NumRecords = 3 },
			"count 3 of two, delta 2":    func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 3, 2 },
			"count minimum":              func(b *kmsg.RecordBatch) { b.NumRecords = math.MinInt32 },
			"count -1, delta -2":         func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = -1, -2 },
			"count maximum":              func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = math.MaxInt32, math.MaxInt32-1 },
			"no records at all":          func(b *kmsg.RecordBatch) { b.Records = nil },
			"records cut":                func(b *kmsg.RecordBatch) { b.Records = b.Records[:len(b.Records)-1] },
			"a byte behind the records":  func(b *kmsg.RecordBatch) { b.Records = append(b.Records, 0) },
			"records are noise": func(b *kmsg.RecordBatch) {
				for i := range b.Records {
					b.Records[i] = byte(rand.Uint32())
				}
			},
		}
		for name, tell := range lies {
			for codec := range int16(5) {
				b := newBatch(values("a", "b")...)
				tell(b)
				b.Attributes, b.Records = codec, compressed(t, codec, b.Records)
				for _, topic := range []string{"t", "again"} {
					c.refuses(8, topic, encode(b), fmt.Sprintf("%s, codec %d, %s", name, codec, topic), unreadable()...)
				}
			}
		}
		c.refuses(8, "t", unhex(t, va3), "VA3", invalidRecord)
		assert.Equal(t, []string{"a", "b"}, texts(c.all("t", 0, 0)))
	})
}

// TestA11XerialSnappy: snappy comes in xerial's frame of any number of blocks, or raw, and broken in many ways.
//
// dpkp/kafka-python#127, tychedelia/kafka-protocol-rs#79, eapache/go-xerial-snappy#2, kafkaex/kafka_ex#38
func TestA11XerialSnappy(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	c.createTopic("t", 1, forever())
	c.createTopic("again", 1, forever("compression.type", "zstd"))
	const snappyCodec = 2
	require.Zero(t, c.produce(2, "t", unhex(t, va6)).ErrorCode)
	assert.Equal(t, []string{"hello"}, texts(c.all("t", 0, 0)))

	var noise []byte // half of it compressible
	for range 100_000 {
		noise = append(noise, byte(rand.Uint32()&0x33))
	}
	plain := newBatch(rec{value: noise, timestamp: 1000})
	for name, records := range map[string][]byte{
		"framed in 32 KiB": xerial(plain.Records, 32<<10), "framed in 1000": xerial(plain.Records, 1000),
		"framed whole": xerial(plain.Records, 1<<20), "raw": rawSnappy(plain.Records),
	} {
		for _, topic := range []string{"t", "again"} {
			b := *plain
			b.Attributes, b.Records = snappyCodec, records
			end := c.end(topic, 0)
			require.Zero(t, c.produceTo(topic, 0, encode(&b)).ErrorCode, name)
			got := c.all(topic, 0, end)
			require.Len(t, got, 1, name)
			require.True(t, bytes.Equal(noise, got[0].Value), name)
		}
	}
	framed := xerial(newBatch(values("hello")...).Records, 1000)
	broken := map[string][]byte{
		"block of 2 GiB": replaced(framed, 16, 0x7f, 0xff, 0xff, 0xff), "block of -1": replaced(framed, 16, 0xff, 0xff, 0xff, 0xff),
		"block of 0": replaced(framed, 16, 0, 0, 0, 0), "block too long by one": replaced(framed, 19, framed[19]+1),
		"block promises 4 GiB": replaced(framed, 20, 0xff, 0xff, 0xff, 0xff, 0x0f), "half a second block": append(bytes.Clone(framed), 0, 0),
		"raw promises 4 GiB": {0xff, 0xff, 0xff, 0xff, 0x0f, 0}, "raw promises more than comes": {0x7f, 0, 'a'},
	}
	for _, size := range []int{0, 1, 7, 8, 15, 16, 19, 20, len(framed) - 1} {
		broken[fmt.Sprintf("cut to %d", size)] = framed[:size]
	}
	for name, records := range broken {
		b := newBatch(values("hello")...)
		b.Attributes, b.Records = snappyCodec, records
		c.refuses(8, "t", encode(b), name, unreadable()...)
		c.refuses(2, "t", message(1, snappyCodec, 0, 1000, nil, records), "in a wrapper: "+name, unreadable()...)
	}
	c.alive()
}

// TestA12LZ4HeaderChecksum: the checksum that Kafka's first writers got wrong is taken in magic 0, where it was always wrong,
// and nowhere else; and old clients get it back as they expect it.
//
// KAFKA-3160, IBM/sarama#1205, sarama#875, dpkp/kafka-python#522, kafka-python#695
func TestA12LZ4HeaderChecksum(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	c.createTopic("t", 1, forever())
	for i, v := range []struct {
		version int16
		vector  string
	}{{0, va7}, {1, va7}, {0, va8}, {1, va8}, {2, va10}} {
		got := c.produce(v.version, "t", unhex(t, v.vector))
		assert.Zero(t, got.ErrorCode, "v%d: %s", v.version, v.vector)
		assert.Equal(t, int64(i), got.BaseOffset)
	}
	c.refuses(2, "t", unhex(t, va9), "VA9", unreadable()...)
	for _, at := range []int{0, 3, 4, 5} { // the frame's magic, version and sizes
		wrong := unhex(t, va10)
		wrong[len(wrong)-0x36+at] ^= 0x40
		set := message(1, 3, 0, 1000, nil, wrong[len(wrong)-0x36:])
		c.refuses(2, "t", set, fmt.Sprintf("byte %d of the frame", at), unreadable()...)
	}
	for _, version := range []int16{4, 11} {
		assert.Equal(t, []string{"hello", "hello", "hello", "hello", "hello"}, texts(decode(t, c.fetch(version, "t", 0, 0), 0)))
	}
	down := c.fetch(0, "t", 0, 0).RecordBatches
	require.NotEmpty(t, down)
	frame := bytes.Index(down, []byte{4, 0x22, 0x4d, 0x18})
	require.Positive(t, frame, "the codec stays")
	require.Equal(t, []byte{0x60, 0x40}, down[frame+4:frame+6], "the header that the vectors have the checksums of")
	assert.Equal(t, byte(0x1a), down[frame+6], "magic 0 has the old checksum")
}
