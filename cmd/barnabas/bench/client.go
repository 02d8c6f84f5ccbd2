package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/record"
)

// prepareClients is prepare through franz-go.
func (p *Produce) prepareClients(ctx context.Context, m *meter, into *recorder, stamped bool) (all []work, hangUp func(), _ error) {
	if _, err := shares(ctx, p.Addr, p.Topic, 0); err != nil { // the topic is there
		return nil, nil, err
	}
	var clients []*kgo.Client
	closeAll := func() {
		for _, c := range clients {
			c.Close()
		}
	}
	values := p.values()
	for i := range p.Connections {
		w := m.worker(into)
		client, err := kgo.NewClient(p.clientOptions(w)...)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, client)
		all = append(all, func(ctx context.Context) error {
			s := newSchedule(m.started(), p.Rate, i, p.Connections)
			return p.produce(ctx, client, w, values, s, stamped)
		})
	}
	return all, closeAll, nil
}

func (p *Produce) clientOptions(w *worker) []kgo.Opt {
	codec := kgo.NoCompression()
	switch p.Codec {
	case record.Gzip:
		codec = kgo.GzipCompression()
	case record.Snappy:
		codec = kgo.SnappyCompression()
	case record.LZ4:
		codec = kgo.Lz4Compression()
	case record.Zstd:
		codec = kgo.ZstdCompression()
	}
	acks := kgo.AllISRAcks()
	switch p.Acks {
	case 0:
		acks = kgo.NoAck()
	case 1:
		acks = kgo.LeaderAck()
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(p.Addr), kgo.ClientID(clientID), kgo.DefaultProduceTopic(p.Topic),
		kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(acks), kgo.ProducerLinger(p.Linger),
		kgo.ProducerBatchMaxBytes(int32(max(p.BatchSize, p.RecordSize+1024))), kgo.RecordDeliveryTimeout(time.Minute),
		kgo.WithHooks(&batchCount{worker: w}),
		// Enough for all requests that may be under way, and as many again that are filled meanwhile.
		kgo.MaxBufferedRecords(max(64, 2*p.InFlight*max(1, p.BatchSize/(p.RecordSize+16)))),
	}
	if !p.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(p.InFlight))
	}
	return options
}

// batchCount counts the batches that a client writes as requests.
type batchCount struct{ worker *worker }

// OnProduceBatchWritten is kgo.HookProduceBatchWritten.
func (b *batchCount) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, batch kgo.ProduceBatchMetrics) {
	if b.worker.meter.within(b.worker.meter.now()) {
		b.worker.requests.Add(1)
		b.worker.wire.Add(int64(batch.CompressedBytes))
	}
}

// values are what records hold, many of them so that compression finds work.
func (p *Produce) values() [][]byte {
	random := rand.New(rand.NewPCG(1, 0))
	values := make([][]byte, min(1000, max(1, varietyBytes/max(1, p.RecordSize))))
	for i := range values {
		values[i] = make([]byte, p.RecordSize)
		words(random, values[i])
	}
	return values
}

// produce sends through a client until the run is over, and waits for all acknowledgements.
func (p *Produce) produce(ctx context.Context, client *kgo.Client, w *worker, values [][]byte, s schedule, stamped bool) error {
	m := w.meter
	var failed atomic.Pointer[error]
	for i := 0; w.more() && failed.Load() == nil; i++ {
		due := s.next
		for s.paced() && m.now() < due && !m.stop.Load() {
			m.sleepUntil(due)
		}
		if m.stop.Load() {
			break
		}
		s.step()
		now := m.now()
		if !s.paced() {
			due = now
		}
		w.sent(due, now)
		r := &kgo.Record{Value: values[i%len(values)]}
		if stamped {
			r.Value = append([]byte(nil), r.Value...)
			binary.BigEndian.PutUint64(r.Value, uint64(due))
		}
		if p.Keys > 0 {
			r.Key = appendKey(nil, rand.IntN(p.Keys))
		}
		client.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			w.doneRecord(due, m.now(), int64(len(r.Value)))
		})
	}
	err := client.Flush(ctx)
	if s.paced() {
		w.giveUp(s.next, max(1, int64(s.interval)), 1)
	}
	if other := failed.Load(); other != nil {
		err = errors.Join(err, *other)
	}
	return because(ctx, err)
}

// followClients is follow through franz-go.
func (e *EndToEnd) followClients(ctx context.Context, a *arrivals) (following []work, hangUp func(), err error) {
	all, err := exclusiveShares(ctx, e.Addr, e.Topic, e.Consumers)
	if err != nil {
		return nil, nil, err
	}
	ends, err := endOffsets(ctx, e.Addr, e.Topic)
	if err != nil {
		return nil, nil, err
	}
	clients, hangUp, err := consumingClients(e.Addr, e.Topic, all, ends, followBytes, followWait)
	if err != nil {
		return nil, nil, err
	}
	for _, client := range clients {
		w := a.meter.worker(a.meter.latency)
		following = append(following, func(ctx context.Context) error {
			for {
				if done, err := a.complete(); done || err != nil {
					return err
				}
				some, cancel := context.WithTimeout(ctx, followWait)
				fetches := client.PollFetches(some)
				cancel()
				now := a.meter.now()
				if err := fetchError(fetches); err != nil {
					return because(ctx, err)
				}
				for it := fetches.RecordIter(); !it.Done(); {
					a.arrive(w, it.Next().Value, now)
				}
			}
		})
	}
	return following, hangUp, nil
}

// runClients is Run through franz-go.
func (o *Consume) runClients(ctx context.Context) (*Result, error) {
	all, err := exclusiveShares(ctx, o.Addr, o.Topic, o.Connections)
	if err != nil {
		return nil, err
	}
	starts, err := startOffsets(ctx, o.Addr, o.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := endOffsets(ctx, o.Addr, o.Topic)
	if err != nil {
		return nil, err
	}
	clients, hangUp, err := consumingClients(o.Addr, o.Topic, all, starts, o.MaxBytes, followWait)
	if err != nil {
		return nil, err
	}
	defer hangUp()
	m := newMeter(len(clients))
	var workers []work
	for _, client := range clients {
		w := m.worker(m.latency)
		workers = append(workers, func(ctx context.Context) error { return because(ctx, o.poll(ctx, client, w, starts, ends)) })
	}
	r, err := o.drive(ctx, m, workers, nil, func() {})
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	r.Name = "consume"
	return r, nil
}

// poll reads through a client, and begins each partition anew where it ended at the beginning of the run. A request of the
// result is one poll, its delay is how long it waited.
func (o *Consume) poll(ctx context.Context, client *kgo.Client, w *worker, starts, ends map[int32]int64) error {
	for w.more() {
		begin := w.meter.now()
		some, cancel := context.WithTimeout(ctx, followWait)
		fetches := client.PollFetches(some)
		cancel()
		if err := fetchError(fetches); err != nil {
			return err
		}
		var records, bytes int64
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				records++
				bytes += int64(len(r.Value))
			}
			if n := len(p.Records); n > 0 && p.Records[n-1].Offset+1 >= ends[p.Partition] {
				client.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.Topic: {p.Partition: {Epoch: -1, Offset: starts[p.Partition]}}})
			}
		})
		if records > 0 {
			w.done(begin, w.meter.now(), records, bytes, bytes)
		}
	}
	return nil
}

// fetchError is what went wrong, except that there was nothing to fetch for a while.
func fetchError(fetches kgo.Fetches) error {
	for _, f := range fetches.Errors() {
		if !errors.Is(f.Err, context.DeadlineExceeded) {
			return f.Err
		}
	}
	return nil
}

// consumingClients makes a client for each share, from these offsets on.
func consumingClients(addr, topic string, all []share, from map[int32]int64, maxBytes int32, wait time.Duration) ([]*kgo.Client, func(), error) {
	var clients []*kgo.Client
	hangUp := func() {
		for _, c := range clients {
			c.Close()
		}
	}
	for _, s := range all {
		offsets := map[int32]kgo.Offset{}
		for _, p := range s.partitions {
			offsets[p] = kgo.NewOffset().At(from[p])
		}
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ClientID(clientID), kgo.FetchMaxBytes(maxBytes), kgo.FetchMaxPartitionBytes(maxBytes),
			kgo.FetchMaxWait(wait), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		clients = append(clients, client)
	}
	return clients, hangUp, nil
}
