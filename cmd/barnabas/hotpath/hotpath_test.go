package hotpath_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
	storagemmap "github.com/barnabas-mq/barnabas/storage-mmap"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

// hotPath is a kind of request that brokers get all day, through the whole of the broker: a connection on the loopback, frames,
// decoding, the log, the storage, and back.
type hotPath struct {
	name  string
	bytes int64 // of record batches in each
	// allocations are how many a request may make, in the broker and in the client here, which makes none.
	allocations float64
	// open prepares the topic, and gives the function that makes one request and takes its answer.
	open func(t testing.TB, b *brokertest.Broker) func()
}

// hotPaths lists them all. What the broker allocates for a request doesn't depend on how many records it is about.
func hotPaths() []hotPath {
	kib := batchOf(1, 1000)
	many := batchOf(600, 100)
	return []hotPath{
		{name: "produce 1x1000", bytes: int64(len(kib)), open: produces(1, kib)},
		{name: "produce 600x100", bytes: int64(len(many)), open: produces(1, many)},
		{name: "produce 4 partitions", bytes: 4 * int64(len(kib)), open: produces(4, kib)},
		{name: "produce idempotent", bytes: int64(len(kib)), open: producesInSequence},
		{name: "produce and flush", bytes: int64(len(kib)), allocations: 14, open: producesFlushed},
		{name: "fetch 1x1000", bytes: int64(len(kib)), open: fetches(kib, 1)},
		{name: "fetch 16x600x100", bytes: 16 * int64(len(many)), open: fetches(many, 16)},
		{name: "fetch in a session", open: fetchesNothing},
		{name: "fetch that waits", bytes: int64(len(kib)), open: fetchesAtTheEnd},
	}
}

// onBothStorages runs f for each path on a broker of each storage.
func onBothStorages[T interface {
	testing.TB
	Run(string, func(T)) bool
}](t T, f func(T, hotPath, func())) {
	for _, s := range []storage.Factory{storagemmap.NewFactory(), storagesendfile.NewFactory()} {
		t.Run(s.Name(), func(t T) {
			b := testbroker.Start(t, brokertest.Storage(s))
			for _, p := range hotPaths() {
				t.Run(p.name, func(t T) { f(t, p, p.open(t, b)) })
			}
		})
	}
}

// BenchmarkHotPaths measures requests one after another, client and broker in one process.
func BenchmarkHotPaths(b *testing.B) {
	onBothStorages(b, func(b *testing.B, p hotPath, request func()) {
		if p.bytes > 0 {
			b.SetBytes(p.bytes)
		}
		b.ReportAllocs()
		for b.Loop() {
			request()
		}
	})
}

// wire is a connection that allocates nothing.
type wire struct {
	t    testing.TB
	conn net.Conn
	size [4]byte
	buf  []byte
}

func dial(t testing.TB, b *brokertest.Broker) *wire {
	conn, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(5*time.Minute)))
	return &wire{t: t, conn: conn, buf: make([]byte, 4<<20)}
}

func (w *wire) write(frame []byte) {
	if _, err := w.conn.Write(frame); err != nil {
		w.t.Fatal(err)
	}
}

// read takes one answer, without its size, which is the caller's until the next one.
func (w *wire) read() []byte {
	if _, err := io.ReadFull(w.conn, w.size[:]); err != nil {
		w.t.Fatal(err)
	}
	answer := w.buf[:binary.BigEndian.Uint32(w.size[:])]
	if _, err := io.ReadFull(w.conn, answer); err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// frameOf encodes a request with its frame and header.
func frameOf(r kmsg.Request, version int16) []byte {
	r.SetVersion(version)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("hot")).AppendRequest(nil, r, 0)
}

// batchOf makes a batch of n records with values of that size.
func batchOf(n, size int) []byte {
	b := record.NewBuilder(record.Options{})
	for i := range n {
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: time.Now().UnixMilli(), Value: make([]byte, size)}); err != nil {
			panic(err)
		}
	}
	batch, err := b.Build(nil, nil)
	if err != nil {
		panic(err)
	}
	return batch
}

// topicFor creates the test's topic. Segments are small, and little is kept: benchmarks may take long.
func topicFor(t testing.TB, b *brokertest.Broker, partitions int32, configs map[string]string) string {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	require.NoError(t, err)
	defer client.Close()
	all := map[string]*string{"segment.bytes": kadm.StringPtr("67108864"), "retention.bytes": kadm.StringPtr("134217728")}
	for name, value := range configs {
		all[name] = &value
	}
	topic := strings.Map(func(r rune) rune {
		if r == '/' || r == '#' {
			return '.'
		}
		return r
	}, t.Name())
	_, _ = kadm.NewClient(client).DeleteTopic(t.Context(), topic) // a benchmark's function is called more than once
	_, err = kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, all, topic)
	require.NoError(t, err)
	return topic
}

// produceFrame is a Produce request with a batch for each of a topic's partitions.
func produceFrame(topic string, partitions int32, batch []byte) []byte {
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for i := range partitions {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = i, batch
		t.Partitions = append(t.Partitions, p)
	}
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis, r.Topics = -1, 60_000, []kmsg.ProduceRequestTopic{t}
	return frameOf(r, 9)
}

// produced checks that the answer to a Produce request for a topic has no error for its first partition.
func (w *wire) produced(topic string) {
	answer := w.read()
	at := 4 + 1 + 1 + 1 + len(topic) + 1 + 4 // correlation id, tags, topics, name, partitions, index
	if code := int16(binary.BigEndian.Uint16(answer[at:])); code != 0 {
		w.t.Fatalf("produce: error code %d", code)
	}
}

// produces makes requests that all are the same.
func produces(partitions int32, batch []byte) func(testing.TB, *brokertest.Broker) func() {
	return func(t testing.TB, b *brokertest.Broker) func() {
		topic := topicFor(t, b, partitions, nil)
		w, frame := dial(t, b), produceFrame(topic, partitions, batch)
		return func() {
			w.write(frame)
			w.produced(topic)
		}
	}
}

// producesFlushed makes requests that are answered when their records are on the device.
func producesFlushed(t testing.TB, b *brokertest.Broker) func() {
	topic := topicFor(t, b, 1, map[string]string{"flush.messages": "1"})
	w, frame := dial(t, b), produceFrame(topic, 1, batchOf(1, 1000))
	return func() {
		w.write(frame)
		w.produced(topic)
	}
}

// producesInSequence makes requests of an idempotent producer, whose sequence numbers are checked.
func producesInSequence(t testing.TB, b *brokertest.Broker) func() {
	topic := topicFor(t, b, 1, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	require.NoError(t, err)
	defer client.Close()
	id, epoch, err := client.ProducerID(t.Context())
	require.NoError(t, err)
	batch := batchOf(1, 1000)
	binary.BigEndian.PutUint64(batch[43:], uint64(id))
	binary.BigEndian.PutUint16(batch[51:], uint16(epoch))
	w, frame := dial(t, b), produceFrame(topic, 1, batch)
	at := strings.Index(string(frame), string(batch))
	next := uint32(0)
	return func() {
		sent := record.Batch(frame[at : at+len(batch)])
		binary.BigEndian.PutUint32(sent[53:], next)
		record.SetCRC(sent)
		next++
		w.write(frame)
		w.produced(topic)
	}
}

// fetchRequest asks for all of a topic's only partition from an offset on.
func fetchRequest(topic string, offset int64) *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 8<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.FetchRequestTopicPartition{p}
	r := kmsg.NewPtrFetchRequest()
	r.MinBytes, r.MaxBytes, r.SessionEpoch, r.Topics = 1, 8<<20, -1, []kmsg.FetchRequestTopic{t}
	return r
}

// fetches makes requests for n batches.
func fetches(batch []byte, n int) func(testing.TB, *brokertest.Broker) func() {
	return func(t testing.TB, b *brokertest.Broker) func() {
		topic := topicFor(t, b, 1, nil)
		w, frame := dial(t, b), produceFrame(topic, 1, batch)
		for range n {
			w.write(frame)
			w.produced(topic)
		}
		ask := frameOf(fetchRequest(topic, 0), 12)
		return func() {
			w.write(ask)
			if answer := w.read(); len(answer) < n*len(batch) {
				t.Fatalf("fetch: %d bytes, where there are %d batches of %d", len(answer), n, len(batch))
			}
		}
	}
}

// fetchesNothing makes requests within a fetch session, to which there is nothing to say.
func fetchesNothing(t testing.TB, b *brokertest.Broker) func() {
	topic := topicFor(t, b, 1, nil)
	w := dial(t, b)
	r := fetchRequest(topic, 0)
	r.SessionEpoch = 0
	w.write(frameOf(r, 12))
	first := kmsg.NewPtrFetchResponse()
	first.SetVersion(12)
	require.NoError(t, first.ReadFrom(w.read()[5:]))
	require.NotZero(t, first.SessionID)
	r.SessionID, r.Topics, r.MinBytes = first.SessionID, nil, 0
	r.SessionEpoch = 0x7a7a7a7a // found again below
	frame := frameOf(r, 12)
	at := strings.Index(string(frame), "zzzz")
	epoch := uint32(0)
	return func() {
		epoch++
		binary.BigEndian.PutUint32(frame[at:], epoch)
		w.write(frame)
		if answer := w.read(); binary.BigEndian.Uint16(answer[9:]) != 0 {
			t.Fatalf("fetch: error code %d", binary.BigEndian.Uint16(answer[9:]))
		}
	}
}

// fetchesAtTheEnd makes pairs of requests: a fetch waits at the end of the log, and gets what is produced meanwhile.
func fetchesAtTheEnd(t testing.TB, b *brokertest.Broker) func() {
	topic := topicFor(t, b, 1, nil)
	batch := batchOf(1, 1000)
	producer, consumer := dial(t, b), dial(t, b)
	frame := produceFrame(topic, 1, batch)
	r := fetchRequest(topic, 0x7a7a7a7a7a7a7a7a)
	r.MaxWaitMillis = 60_000
	ask := frameOf(r, 12)
	at := strings.Index(string(ask), "zzzzzzzz")
	next := uint64(0)
	return func() {
		binary.BigEndian.PutUint64(ask[at:], next)
		next++
		consumer.write(ask)
		producer.write(frame)
		producer.produced(topic)
		if answer := consumer.read(); len(answer) < len(batch) {
			t.Fatalf("fetch: %d bytes, where there is a batch of %d", len(answer), len(batch))
		}
	}
}
