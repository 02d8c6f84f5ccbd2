package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Where the fields of a batch lie that are written anew for each request.
const (
	batchCRC        = 17
	batchAttributes = 21 // the checksum covers everything from here on
	batchProducerID = 43
	batchEpoch      = 51
	batchSequence   = 53
)

// castagnoli never changes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// template is a ready-made produce request of one batch for one partition. What differs from one request to the next stands
// in its head, of which senders make copies; the body is shared by all of them, unless it has stamps.
type template struct {
	head []byte // up to the end of the batch's header
	body []byte // the records, and the end of the request
	// Where things stand in the head.
	partition, batch int
	records          int64
	size             int64    // bytes of the records' values
	stamps           [][]byte // of the body, 8 bytes each: end to end only
}

const (
	// variety is how many different batches there are, so that the broker's caches see new bytes; varietyBytes bounds them.
	variety      = 24
	varietyBytes = 16 << 20
	// stampSize is the size of a stamp at the beginning of a value: nanoseconds since 1970, big endian.
	stampSize = 8
)

// templates builds the requests of all senders, or, with stamps, of one.
func (p *Produce) templates(seed uint64, stamped bool) ([]*template, error) {
	random := rand.New(rand.NewPCG(1, seed))
	var all []*template
	for total := 0; len(all) < variety && (len(all) < 2 || total < varietyBytes); {
		batch, n, err := p.batch(random)
		if err != nil {
			return nil, err
		}
		t, err := p.template(batch, n, stamped)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
		total += len(batch)
	}
	return all, nil
}

func (p *Produce) template(batch record.Batch, records int64, stamped bool) (*template, error) {
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = batch
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.Partitions = p.Topic, []kmsg.ProduceRequestTopicPartition{part}
	r := kmsg.NewPtrProduceRequest()
	r.SetVersion(produceVersion)
	r.Acks, r.TimeoutMillis, r.Topics = p.Acks, int32(patience.Milliseconds()), []kmsg.ProduceRequestTopic{topic}
	whole := frame(r)
	at := len(whole) - len(batch) - 3 // behind the batch are the empty tags of partition, topic and request
	if at < 0 || !bytes.Equal(whole[at:at+len(batch)], batch) {
		return nil, errors.New("a produce request that isn't laid out as expected")
	}
	length := binary.PutUvarint(make([]byte, binary.MaxVarintLen64), uint64(len(batch))+1)
	t := &template{head: whole[: at+record.HeaderSize : at+record.HeaderSize], body: whole[at+record.HeaderSize:],
		partition: at - length - 4, batch: at, records: records, size: records * int64(p.RecordSize)}
	if !stamped {
		return t, nil
	}
	for it := record.Iterate(batch.Header(), t.body[:len(t.body)-3]); ; {
		if !it.Next() {
			return t, it.Err()
		}
		t.stamps = append(t.stamps, it.Record.Value[:stampSize])
	}
}

// batch makes a batch of words, which compress about as well as text does.
func (p *Produce) batch(random *rand.Rand) (record.Batch, int64, error) {
	b := record.NewBuilder(record.Options{Codec: p.Codec})
	now := time.Now().UnixMilli()
	value := make([]byte, p.RecordSize)
	var key []byte
	for b.Count() == 0 || b.Size()+p.RecordSize+len(key)+16 <= p.BatchSize {
		words(random, value)
		if p.Keys > 0 {
			key = appendKey(key[:0], random.IntN(p.Keys))
		}
		if err := b.Append(record.Record{Offset: int64(b.Count()), Timestamp: now, Key: key, Value: value}); err != nil {
			return nil, 0, err
		}
	}
	n := int64(b.Count())
	batch, err := b.Build(nil, p.Codecs)
	return batch, n, err
}

// appendKey appends the key of a number.
func appendKey(b []byte, n int) []byte { return strconv.AppendInt(append(b, "key-"...), int64(n), 10) }

// words fills p with made-up words from a small vocabulary.
func words(random *rand.Rand, p []byte) {
	const letters = "etaoinshrdlucmfwypvbgkjqxz"
	for len(p) > 0 {
		word := random.Uint32N(2000)
		for n := 2 + word%7; n > 0 && len(p) > 0; n-- {
			p[0], p = letters[word%26], p[1:]
			word = word*2654435761>>3 + n
		}
		if len(p) > 0 {
			p[0], p = ' ', p[1:]
		}
	}
}

// producer is who sends, for batches of an idempotent producer; the sequence numbers are by place in share.partitions.
type producer struct {
	id        int64
	epoch     int16
	sequences []int32
}

// appendHead appends the head of a request of the template's. The producer is nil for none; at is the partition's place.
func (t *template) appendHead(dst []byte, correlation, partition int32, by *producer, at int) []byte {
	start := len(dst)
	dst = append(dst, t.head...)
	head := dst[start:]
	setCorrelation(head, correlation)
	binary.BigEndian.PutUint32(head[t.partition:], uint32(partition))
	if by == nil && t.stamps == nil {
		return dst
	}
	batch := head[t.batch:]
	if by != nil {
		binary.BigEndian.PutUint64(batch[batchProducerID:], uint64(by.id))
		binary.BigEndian.PutUint16(batch[batchEpoch:], uint16(by.epoch))
		binary.BigEndian.PutUint32(batch[batchSequence:], uint32(by.sequences[at]))
		by.sequences[at] = record.AddSequence(by.sequences[at], int32(t.records))
	}
	sum := crc32.Update(crc32.Update(0, castagnoli, batch[batchAttributes:]), castagnoli, t.body[:len(t.body)-3])
	binary.BigEndian.PutUint32(batch[batchCRC:], sum)
	return dst
}

// wire is how many bytes a request has.
func (t *template) wire() int64 { return int64(len(t.head) + len(t.body)) }

// stamp writes a moment into all records.
func (t *template) stamp(ns int64) {
	for _, s := range t.stamps {
		binary.BigEndian.PutUint64(s, uint64(ns))
	}
}
