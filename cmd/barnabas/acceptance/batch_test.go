package acceptance

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The vectors of the reports, stamped 1970; spaces are for the eye.
const (
	// va1 is a good batch of one record: null key, value hello, timestamp 1000.
	va1 = "0000000000000000 0000003d 00000000 02 5d035a13 0000 00000000 00000000000003e8 00000000000003e8 ffffffffffffffff ffff ffffffff 00000001 16000000010a68656c6c6f00"
	// va2 is va1 with a bit of the value flipped.
	va2 = "0000000000000000 0000003d 00000000 02 5d035a13 0000 00000000 00000000000003e8 00000000000003e8 ffffffffffffffff ffff ffffffff 00000001 16000000010a68656c6c6e00"
	// va3 has two records but says that its last offset is its first.
	va3 = "0000000000000000 00000041 00000000 02 977d33e6 0000 00000000 00000000000003e8 00000000000003e8 ffffffffffffffff ffff ffffffff 00000002 0e00000001026100 0e00000201026200"
	// va4 is a set of two messages a and b of magic 0, va5 of magic 1.
	va4 = "0000000000000000 0000000f 51df3a32 00 00 ffffffff 00000001 61 0000000000000001 0000000f c8d66b88 00 00 ffffffff 00000001 62"
	va5 = "0000000000000000 00000017 8a65e96d 01 00 00000000000003e8 ffffffff 00000001 61 0000000000000001 00000017 136cb8d7 01 00 00000000000003e8 ffffffff 00000001 62"
	// va6 is a magic 1 wrapper with snappy in xerial's frame of two blocks.
	va6 = "000000000000000000000059 eeed38de 01 02 00000000000003e8 ffffffff 00000043 82534e41505059000000000100000001 00000016 144c00000000000000000000001b942da34101000000 00000015 13480000000003e8ffffffff0000000568656c6c6f"
	// va7 is magic 0 with lz4 and the header checksum that Kafka's first writers made, va8 with the right one; va9 and va10
	// are the same with magic 1.
	va7  = "0000000000000000 0000003c b9cedf46 00 03 ffffffff 0000002e 04224d186040 1a 1f000080 0000000000000000 00000013 87a77ab2 00 00 ffffffff 00000005 68656c6c6f 00000000"
	va8  = "0000000000000000 0000003c fda65bb3 00 03 ffffffff 0000002e 04224d186040 82 1f000080 0000000000000000 00000013 87a77ab2 00 00 ffffffff 00000005 68656c6c6f 00000000"
	va9  = "0000000000000000 0000004c 3484d1d8 01 03 00000000000003e8 ffffffff 00000036 04224d186040 1a 27000080 0000000000000000 0000001b 942da341 01 00 00000000000003e8 ffffffff 00000005 68656c6c6f 00000000"
	va10 = "0000000000000000 0000004c b68276a9 01 03 00000000000003e8 ffffffff 00000036 04224d186040 82 27000080 0000000000000000 0000001b 942da341 01 00 00000000000003e8 ffffffff 00000005 68656c6c6f 00000000"
)

// forever is the configuration of a topic that keeps what is stamped 1970.
func forever(more ...string) props {
	p := props{"retention.ms": "-1"}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// unhex reads a vector.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// rec is a record to send.
type rec struct {
	key, value []byte
	timestamp  int64
}

// values are records without keys, stamped 1000.
func values(vs ...string) (recs []rec) {
	for _, v := range vs {
		recs = append(recs, rec{value: []byte(v), timestamp: 1000})
	}
	return recs
}

// newBatch is a batch of no producer whose header says the truth; a test changes what it likes before it calls encode.
func newBatch(recs ...rec) *kmsg.RecordBatch {
	b := &kmsg.RecordBatch{Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		NumRecords: int32(len(recs)), LastOffsetDelta: int32(len(recs)) - 1}
	if len(recs) > 0 {
		b.FirstTimestamp = recs[0].timestamp
	}
	for i, r := range recs {
		b.MaxTimestamp = max(b.MaxTimestamp, r.timestamp)
		b.Records = appendRecord(b.Records, i, r, r.timestamp-b.FirstTimestamp)
	}
	return b
}

func appendRecord(dst []byte, delta int, r rec, timestampDelta int64) []byte {
	body := []byte{0}
	body = binary.AppendVarint(body, timestampDelta)
	body = binary.AppendVarint(body, int64(delta))
	body = appendNullable(body, r.key)
	body = appendNullable(body, r.value)
	body = binary.AppendVarint(body, 0)
	dst = binary.AppendVarint(dst, int64(len(body)))
	return append(dst, body...)
}

func appendNullable(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// encode fills in length and checksum.
func encode(b *kmsg.RecordBatch) []byte {
	b.Length = int32(49 + len(b.Records))
	b.CRC = 0
	return seal(b.AppendTo(nil))
}

// seal corrects a batch's checksum after its bytes were changed.
func seal(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// batch is an encoded batch of records.
func batch(recs ...rec) []byte { return encode(newBatch(recs...)) }

// message is an old message with a right checksum; timestamp is for magic 1.
func message(magic, attributes byte, offset, timestamp int64, key, value []byte) []byte {
	body := []byte{magic, attributes}
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, uint64(timestamp))
	}
	for _, b := range [][]byte{key, value} {
		if b == nil {
			body = append(body, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(b))), b...)
	}
	m := binary.BigEndian.AppendUint64(nil, uint64(offset))
	m = binary.BigEndian.AppendUint32(m, uint32(4+len(body)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(body))
	return append(m, body...)
}

// decode reads what a fetch brought, old formats and codecs too, from an offset on, with franz-go's decoder.
func decode(t *testing.T, p kmsg.FetchResponseTopicPartition, from int64) []*kgo.Record {
	t.Helper()
	require.Zero(t, p.ErrorCode)
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: from, Topic: "t"}, &p, kgo.DefaultDecompressor(), nil)
	require.NoError(t, got.Err)
	return got.Records
}

// all reads a partition from an offset to its end. As a consumer does, it goes on behind batches that compaction has emptied.
func (c *conn) all(topic string, partition int32, from int64) (records []*kgo.Record) {
	c.t.Helper()
	end := c.end(topic, partition)
	for from < end {
		got := c.fetch(11, topic, partition, from)
		records = append(records, decode(c.t, got, from)...)
		next := from
		for b := got.RecordBatches; len(b) >= 61; {
			size := 12 + int(binary.BigEndian.Uint32(b[8:]))
			if size > len(b) {
				break // cut off
			}
			next = int64(binary.BigEndian.Uint64(b)) + int64(binary.BigEndian.Uint32(b[23:])) + 1
			b = b[size:]
		}
		require.Greater(c.t, next, from, "%s-%d is empty at %d, before its end %d", topic, partition, from, end)
		from = next
	}
	return records
}

// texts are the values of records.
func texts(records []*kgo.Record) (vs []string) {
	for _, r := range records {
		vs = append(vs, string(r.Value))
	}
	return vs
}
