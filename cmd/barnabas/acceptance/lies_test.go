package acceptance

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestLyingBatches: batches whose lengths, magic, attributes or offsets aren't what they say; A10 has the counts.
func TestLyingBatches(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		c.createTopic("t", 1, forever())
		good := batch(values("a", "b")...)
		length := func(l int32) []byte {
			b := bytes.Clone(good)
			binary.BigEndian.PutUint32(b[8:], uint32(l))
			return b
		}
		changed := func(change func(b *kmsg.RecordBatch)) []byte {
			b := newBatch(values("a", "b")...)
			change(b)
			return encode(b)
		}
		sets := map[string][]byte{
			"a set of nothing": {}, "one byte": {0}, "11 bytes": good[:11], "a header without records": good[:61], "half a header": good[:40],
			"cut by one": good[:len(good)-1], "two batches": append(bytes.Clone(good), good...),
			"length 0": length(0), "length 48": length(48), "length -1": length(-1), "length minimum": length(math.MinInt32), "length maximum": length(math.MaxInt32),
			"length less by one": length(int32(len(good) - 13)), "length more by one": length(int32(len(good) - 11)),
			"codec 5": changed(func(b *kmsg.RecordBatch) { b.Attributes = 5 }), "codec 7": changed(func(b *kmsg.RecordBatch) { b.Attributes = 7 }),
			"gzip that isn't": changed(func(b *kmsg.RecordBatch) { b.Attributes = 1 }), "zstd that isn't": changed(func(b *kmsg.RecordBatch) { b.Attributes = 4 }),
			"lz4 that isn't": changed(func(b *kmsg.RecordBatch) { b.Attributes = 3 }),
			"magic 3":        changed(func(b *kmsg.RecordBatch) { b.Magic = 3 }), "magic -1": changed(func(b *kmsg.RecordBatch) { b.Magic = -1 }),
			"a control batch":                 changed(func(b *kmsg.RecordBatch) { b.Attributes = 0x20 }),
			"base offset 5":                   changed(func(b *kmsg.RecordBatch) { b.FirstOffset = 5 }),
			"base offset maximum":             changed(func(b *kmsg.RecordBatch) { b.FirstOffset = math.MaxInt64 }),
			"base offset -1":                  changed(func(b *kmsg.RecordBatch) { b.FirstOffset = -1 }),
			"a transactional control batch":   changed(func(b *kmsg.RecordBatch) { b.Attributes = 0x30 }),
			"transactional of no transaction": changed(func(b *kmsg.RecordBatch) { b.Attributes = 0x10 }),
		}
		for name, set := range sets {
			for _, version := range []int16{3, 7, 8, 9, 12} {
				before := c.end("t", 0)
				got := c.produce(version, "t", set)
				assert.NotZero(t, got.ErrorCode, "%s v%d", name, version)
				assert.Equal(t, before, c.end("t", 0), "%s v%d: something was appended", name, version)
			}
		}
		// The broker gives leader epochs, and doesn't keep what is too short for a batch.
		c.accepted("t", 0, changed(func(b *kmsg.RecordBatch) { b.PartitionLeaderEpoch = math.MaxInt32 }))
		c.accepted("t", 2, changed(func(b *kmsg.RecordBatch) { b.PartitionLeaderEpoch = -1 }))
		c.accepted("t", 4, append(bytes.Clone(good), 0, 0, 0))
		c.accepted("t", 6, good)
		assert.Equal(t, []string{"a", "b", "a", "b", "a", "b", "a", "b"}, texts(c.all("t", 0, 0)))
	})
}

// TestLyingProducers: sequences that don't follow, epochs of the past, ids that nobody was given.
func TestLyingProducers(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		c.createTopic("t", 1, forever())
		var given *kmsg.InitProducerIDResponse
		require.Eventually(t, func() bool { // the first producer after a start is told to try again
			given = ask[*kmsg.InitProducerIDResponse](c, 2, kmsg.NewPtrInitProducerIDRequest())
			return given.ErrorCode != kerr.CoordinatorLoadInProgress.Code
		}, time.Minute, 10*time.Millisecond)
		require.Zero(t, given.ErrorCode)
		send := func(id int64, epoch int16, sequence int32) kmsg.ProduceResponseTopicPartition {
			b := newBatch(values("a", "b")...)
			b.ProducerID, b.ProducerEpoch, b.FirstSequence = id, epoch, sequence
			return c.produceTo("t", 0, encode(b))
		}
		id := given.ProducerID
		for i := range int64(6) {
			got := send(id, 0, int32(2*i))
			require.Zero(t, got.ErrorCode)
			require.Equal(t, 2*i, got.BaseOffset)
		}
		check := func(when string, remembered int64) {
			for i := 6 - remembered; i < 6; i++ {
				got := send(id, 0, int32(2*i))
				assert.Zero(t, got.ErrorCode, when)
				assert.Equal(t, 2*i, got.BaseOffset, "%s: a duplicate has its first offset", when)
			}
			for _, sequence := range []int32{13, 14, 100, math.MaxInt32, 0, 11} {
				assert.Contains(t, []int16{45, 46}, send(id, 0, sequence).ErrorCode, "%s: sequence %d", when, sequence)
			}
			assert.NotZero(t, send(id, 0, -1).ErrorCode, when)
			assert.NotZero(t, send(id, 0, math.MinInt32).ErrorCode, when)
			assert.NotZero(t, send(id, 1, 5).ErrorCode, "%s: a new epoch begins with 0", when)
			assert.NotZero(t, send(id, -1, 12).ErrorCode, when)
			assert.NotZero(t, send(id, math.MinInt16, 0).ErrorCode, when)
			assert.Equal(t, int64(12), c.end("t", 0), when)
		}
		check("running", 5)
		n.kill()
		n.start()
		c = n.dial()
		check("after kill -9", 5)
		n.stop()
		n.start()
		c = n.dial()
		check("after a stop", 1) // a snapshot has each producer's last batch, in Kafka too
		assert.Zero(t, send(id, 1, 0).ErrorCode)
		assert.Equal(t, int16(47), send(id, 0, 12).ErrorCode, "an epoch of the past")
		got := send(id, 1, 2)
		assert.Zero(t, got.ErrorCode)
		assert.Equal(t, int64(14), got.BaseOffset)
	})
}

// bombs are sets of a few hundred KiB at most that hold 100 MiB and more of zeros, by the version that carries them.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	const size = 100 << 20
	sets := map[string][]byte{}
	zeros := newBatch(rec{value: make([]byte, size), timestamp: 1000}).Records
	for codec, name := range map[int16]string{1: "gzip", 3: "lz4", 4: "zstd"} { // snappy can't make so much of so little
		b := newBatch(values("a")...)
		b.Attributes, b.Records = codec, compressed(t, codec, zeros)
		sets[name+", one honest record"] = encode(b)
		b.Records = compressed(t, codec, make([]byte, size))
		sets[name+", no records"] = encode(b)
	}
	record := appendRecord(nil, 0, rec{}, 0)
	many := newBatch(values("a")...)
	count := 8_000_000
	records := bytes.Repeat(record, count)
	many.Attributes, many.NumRecords, many.LastOffsetDelta, many.Records = 1, int32(count), int32(count-1), gzipped(t, records)
	sets["gzip, millions of records that are all the first"] = encode(many)

	inner := message(1, 0, 0, 1000, nil, make([]byte, size))
	sets["a wrapper"] = message(1, 1, 0, 1000, nil, gzipped(t, inner))
	sets["a wrapper of zeros"] = message(1, 1, 0, 1000, nil, gzipped(t, make([]byte, size)))
	sets["a wrapper in a wrapper"] = message(1, 1, 0, 1000, nil, gzipped(t, message(1, 1, 0, 1000, nil, gzipped(t, inner))))
	sets["gzip in gzip"] = message(1, 1, 0, 1000, nil, gzipped(t, gzipped(t, inner)))
	return sets
}

// TestBombs: what a small batch inflates to is bounded, in one request and in many at a time, and on all its ways: into the
// log as it is or with another codec, and out of it to old clients and for timestamps.
func TestBombs(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	c.createTopic("t", 1, forever())
	c.createTopic("anew", 1, forever("compression.type", "zstd"))
	c.createTopic("keyed", 1, forever("cleanup.policy", "compact"))
	witness := n.dial()

	var slowest time.Duration
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // somebody else goes on working
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			begin := time.Now()
			if _, err := witness.Write(witness.frame(versioned(kmsg.NewPtrApiVersionsRequest(), 0))); err != nil {
				return
			}
			var size [4]byte
			if _, err := io.ReadFull(witness, size[:]); err != nil {
				return
			}
			if _, err := io.CopyN(io.Discard, witness, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
				return
			}
			slowest = max(slowest, time.Since(begin))
		}
	}()
	var all sync.WaitGroup
	for name, set := range bombs(t) {
		for _, topic := range []string{"t", "anew", "keyed"} {
			all.Go(func() {
				version := int16(7)
				if set[16] != 2 {
					version = 2
				}
				req := versioned(produceRequest(topic, set), version)
				client := &conn{t: t}
				got := n.exchangeWhole(client.frame(req))
				assert.NotEmpty(t, got, "%s into %s: no answer", name, topic)
			})
		}
	}
	all.Wait()
	for range 4 { // what was honest lies in the log now, and is read by those for whom it must be inflated
		all.Go(func() {
			client := &conn{t: t}
			b := client.frame(versioned(fetchRequest("t", 0, 0), 2))
			assert.NotEmpty(t, n.exchangeWhole(b))
		})
		all.Go(func() {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Timestamp = 1000
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic, topic.Partitions = "t", append(topic.Partitions, p)
			req := kmsg.NewPtrListOffsetsRequest()
			req.Topics = append(req.Topics, topic)
			client := &conn{t: t}
			assert.NotEmpty(t, n.exchangeWhole(client.frame(versioned(req, 2))))
		})
	}
	all.Wait()
	close(stop)
	<-done
	assert.Less(t, slowest, 30*time.Second, "another client's latency")
	assert.Less(t, n.peak(), int64(1<<30), "the largest that the process ever was")
	t.Logf("peak %d MiB, another client's slowest answer %s", n.peak()>>20, slowest)
	n.calm()
}

// exchangeWhole sends a request on a connection of its own and reads its answer to the end.
func (n *node) exchangeWhole(b []byte) []byte {
	c, err := net.Dial("tcp", n.options.Addr)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(b); err != nil {
		return nil
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil
	}
	var answer bytes.Buffer
	if _, err := io.CopyN(&answer, c, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
		return nil
	}
	return answer.Bytes()
}
