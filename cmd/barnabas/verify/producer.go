package verify

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// producer writes until it is told to stop. It holds out: when its client gives up it begins a new session, which is a new
// producer to the history, because nothing binds the two.
type producer struct {
	run    *Run
	number int // among the run's producers
}

// codecs are taken in turn by producers.
func codecs() []kgo.CompressionCodec {
	return []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.SnappyCompression(), kgo.GzipCompression(), kgo.ZstdCompression()}
}

// work runs sessions until the run's producers are to stop.
func (p *producer) work(ctx context.Context) {
	for {
		err := p.session(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		p.run.book.complain(fmt.Sprintf("a producer had to begin anew: %v", err))
		if !p.run.pause(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// session is one client's life. It ends without error when the run's producers are to stop and everything is answered, or
// nothing more will be.
func (p *producer) session(ctx context.Context) error {
	o := p.run.options
	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.StopProducerOnDataLossDetected(),
		kgo.ProducerLinger(2 * time.Millisecond), kgo.ProducerBatchMaxBytes(int32(max(16<<10, 2*o.RecordSize))), kgo.MaxBufferedRecords(2000),
		kgo.ProduceRequestTimeout(5 * time.Second), kgo.ProducerBatchCompression(codecs()[p.number%len(codecs())]),
	}
	if o.Transactions {
		options = append(options, kgo.TransactionalID(fmt.Sprintf("barnabas-verify-%s-%d", p.run.name, p.number)), kgo.TransactionTimeout(30*time.Second))
	}
	client, err := o.client(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	s := &session{producer: p, client: client, id: p.run.book.producer()}
	if o.Transactions {
		return s.transactions(ctx)
	}
	return s.records(ctx)
}

// session is a client and the number that the history knows it by.
type session struct {
	*producer
	client *kgo.Client
	id     int32
	failed atomic.Pointer[error] // the first error of a record
	next   int                   // counts records, and so chooses partitions
}

// send sends a record to the next partition. It blocks while too many are under way.
func (s *session) send(ctx context.Context, transaction int32) {
	b := s.run.book
	partition := int32((s.next + s.number) % len(b.pages))
	s.next++
	sequence := b.send(partition, s.id, transaction)
	r := &kgo.Record{Topic: s.run.topic, Partition: partition}
	r.Key, r.Value = value(s.run.name, partition, s.id, sequence, s.run.options.RecordSize)
	s.client.Produce(ctx, r, func(r *kgo.Record, err error) {
		if err != nil {
			s.failed.CompareAndSwap(nil, &err)
			return
		}
		b.told(partition, s.id, sequence, r.Offset)
	})
}

func (s *session) err() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// records writes record after record.
func (s *session) records(ctx context.Context) error {
	for s.run.turn(ctx) {
		s.send(ctx, -1)
		if err := s.err(); err != nil {
			return err
		}
	}
	return errors.Join(s.client.Flush(ctx), s.err())
}

// How many records a transaction has, and which ones are aborted.
const (
	mostRecords = 20
	abortEvery  = 5
)

// transactions writes transaction after transaction. One that fails is given up with its session: the next one's fences it.
func (s *session) transactions(ctx context.Context) error {
	for count := 0; ; count++ {
		if !s.run.turn(ctx) {
			return nil
		}
		if err := s.transaction(ctx, 1+count*7%mostRecords, count%abortEvery == abortEvery-1); err != nil {
			return err
		}
	}
}

// transaction writes one, of so many records unless the run's producers are to stop.
func (s *session) transaction(ctx context.Context, records int, abort bool) error {
	if err := s.client.BeginTransaction(); err != nil {
		return err
	}
	b := s.run.book
	number := b.begin(s.id)
	s.send(ctx, number)
	for i := 1; i < records && s.run.turn(ctx); i++ {
		s.send(ctx, number)
	}
	if err := errors.Join(s.client.Flush(ctx), s.err()); err != nil {
		return err
	}
	try := kgo.TryCommit
	if abort {
		try = kgo.TryAbort
	}
	b.ending(number, abort)
	if err := s.client.EndTransaction(ctx, try); err != nil {
		return err
	}
	b.ended(number)
	return nil
}
