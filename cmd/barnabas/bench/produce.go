package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Produce is load by producers.
type Produce struct {
	Load
	InFlight   int   // requests that each connection sends before it waits for an answer
	RecordSize int   // bytes of each record's value
	BatchSize  int   // bytes of a batch before compression: as many records as fit, at least one
	Acks       int16 // 0, 1 or -1 for all
	Codec      record.Codec
	Codecs     record.Codecs // compresses; not needed for record.None
}

// produceVersion is spoken by every broker from Kafka 2.4 on and, unlike the versions from 13 on, has topics by name.
const produceVersion = 9

// variety is how many different batches a connection has at least, so that the broker's caches see new bytes.
const variety = 24

func (p *Produce) check() error {
	switch {
	case p.InFlight < 1:
		return fmt.Errorf("%d requests in flight: at least 1 is needed", p.InFlight)
	case p.RecordSize < 0 || p.RecordSize > 64<<20:
		return fmt.Errorf("a record size of %d bytes: it must be from 0 to 64 MiB", p.RecordSize)
	case p.Acks < -1 || p.Acks > 1:
		return fmt.Errorf("acks %d: it must be 0, 1 or -1 for all", p.Acks)
	case len(p.Topic) > 126:
		return fmt.Errorf("the topic's name is longer than 126 bytes")
	case p.Acks == 0 && p.InFlight > 1:
		return errors.New("with acks 0 there are no answers to wait for: in-flight must be 1")
	}
	return p.Load.check()
}

// Run puts the load on the broker.
func (p *Produce) Run(ctx context.Context) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	all, err := shares(ctx, p.Addr, p.Topic, p.Connections)
	if err != nil {
		return nil, err
	}
	work := make([]func(context.Context, *worker) error, len(all))
	var ready, wire int64 // frames, and their bytes
	for i, s := range all {
		frames, records, err := p.frames(s.partitions, uint64(i))
		if err != nil {
			return nil, err
		}
		for _, f := range frames {
			ready, wire = ready+1, wire+int64(len(f))
		}
		work[i] = func(ctx context.Context, w *worker) error { return p.work(ctx, w, s.addr, frames, records) }
	}
	r, err := p.drive(ctx, work)
	if err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	r.Name, r.InFlight = "produce", p.InFlight
	r.WireBytes = r.Requests * wire / ready
	return r, nil
}

// frames are ready-made requests for the partitions, in turn, and the number of records in each.
func (p *Produce) frames(partitions []int32, seed uint64) (frames [][]byte, records int64, err error) {
	random := rand.New(rand.NewPCG(1, seed))
	for range max(1, variety/len(partitions)) {
		for _, partition := range partitions {
			batch, n, err := p.batch(random)
			if err != nil {
				return nil, 0, err
			}
			records = n
			part := kmsg.NewProduceRequestTopicPartition()
			part.Partition, part.Records = partition, batch
			topic := kmsg.NewProduceRequestTopic()
			topic.Topic, topic.Partitions = p.Topic, []kmsg.ProduceRequestTopicPartition{part}
			r := kmsg.NewPtrProduceRequest()
			r.SetVersion(produceVersion)
			r.Acks, r.TimeoutMillis, r.Topics = p.Acks, int32(patience.Milliseconds()), []kmsg.ProduceRequestTopic{topic}
			frames = append(frames, frame(r))
		}
	}
	return frames, records, nil
}

// batch makes a batch of words, which compress about as well as text does.
func (p *Produce) batch(random *rand.Rand) ([]byte, int64, error) {
	b := record.NewBuilder(record.Options{Codec: p.Codec})
	now := time.Now().UnixMilli()
	value := make([]byte, p.RecordSize)
	for b.Count() == 0 || b.Size()+p.RecordSize+16 <= p.BatchSize {
		words(random, value)
		if err := b.Append(record.Record{Offset: int64(b.Count()), Timestamp: now, Value: value}); err != nil {
			return nil, 0, err
		}
	}
	n := int64(b.Count())
	batch, err := b.Build(nil, p.Codecs)
	return batch, n, err
}

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

func (p *Produce) work(ctx context.Context, w *worker, addr string, frames [][]byte, records int64) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	bytes := records * int64(p.RecordSize)
	codeAt := 4 + 1 + 1 + 1 + len(p.Topic) + 1 + 4 // correlation id, tags, topics, name, partitions, index
	answer := func(start time.Time) error {
		response, err := c.read()
		if err != nil {
			return err
		}
		if len(response) < codeAt+2 {
			return fmt.Errorf("the answer to Produce has %d bytes only", len(response))
		}
		if code := int16(binary.BigEndian.Uint16(response[codeAt:])); code != 0 {
			return fmt.Errorf("the broker refuses: %w", kerr.ErrorForCode(code))
		}
		w.done(start, records, bytes)
		return nil
	}
	if p.InFlight == 1 {
		for i := 0; w.more(); i++ {
			start := time.Now()
			f := frames[i%len(frames)]
			setCorrelation(f, int32(i))
			if err := c.write(f); err != nil {
				return err
			}
			if p.Acks == 0 {
				w.done(start, records, bytes)
			} else if err := answer(start); err != nil {
				return err
			}
		}
		return nil
	}
	return p.pipeline(w, c, frames, answer)
}

// pipeline keeps up to InFlight requests under way: this goroutine writes, another reads.
func (p *Produce) pipeline(w *worker, c *conn, frames [][]byte, answer func(time.Time) error) error {
	starts := make(chan time.Time, p.InFlight-1) // and one that the reader holds
	failed := make(chan struct{})
	ended := make(chan error, 1)
	go func() { // ends when starts is closed, or at the first error
		for start := range starts {
			if err := answer(start); err != nil {
				close(failed)
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	var err error
	for i := 0; err == nil && w.more(); i++ {
		select {
		case starts <- time.Now():
		case <-failed:
			return <-ended
		}
		f := frames[i%len(frames)]
		setCorrelation(f, int32(i))
		err = c.write(f)
	}
	if err != nil {
		c.close() // the reader may wait for an answer that doesn't come
	}
	close(starts)
	if readErr := <-ended; err == nil {
		err = readErr
	}
	return err
}
