package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/record"
)

// EndToEnd is load by producers whose records consumers wait for. Each record begins with the nanosecond at which it was due.
// All of them have to arrive.
type EndToEnd struct {
	Produce
	Consumers int // connections that fetch, each some partitions; 0 is one for each leader
}

// Check finds what is wrong with the load.
func (e *EndToEnd) Check() error {
	switch {
	case e.RecordSize < stampSize:
		return fmt.Errorf("a record size of %d bytes: end to end at least %d are needed, for the time", e.RecordSize, stampSize)
	case e.Codec != record.None && !e.Client:
		return errors.New("end to end, batches are compressed only through a client: ready-made ones couldn't have the time in them")
	case e.Acks == 0:
		return errors.New("end to end needs acks 1 or all: else nobody knows what has to arrive")
	case e.Consumers < 0:
		return fmt.Errorf("%d consumers: it can't be negative", e.Consumers)
	}
	return e.Produce.Check()
}

// Run puts the load on the broker.
func (e *EndToEnd) Run(ctx context.Context) (*Result, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	m := newMeter(e.Connections)
	m.acks = newRecorder(e.Connections)
	if e.Rate > 0 {
		m.late = newRecorder(e.Connections)
	}
	a := &arrivals{meter: m}
	following, hangUpConsumers, err := e.follow(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	defer hangUpConsumers()
	before := len(m.workers)
	senders, hangUp, err := e.prepare(ctx, m, m.acks, true)
	if err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	defer hangUp()
	a.producers = m.workers[before:]
	r, err := e.drive(ctx, m, senders, &followers{work: following, sendersEnded: a.sendersEnded},
		func() { hangUp(); hangUpConsumers() })
	if err != nil {
		return nil, fmt.Errorf("end to end: %w", err)
	}
	r.Name, r.InFlight, r.Rate = "end-to-end", e.InFlight, e.Rate
	return r, nil
}

// arrivals know what is under way between producers and consumers.
type arrivals struct {
	meter     *meter
	producers []*worker
	arrived   atomic.Int64 // records
	deadline  atomic.Int64 // of what is still to arrive, once the producers have ended; else 0
}

func (a *arrivals) sendersEnded() { a.deadline.Store(a.meter.now() + int64(patience)) }

// complete reports whether all that was sent has arrived, and no more is going to be sent.
func (a *arrivals) complete() (bool, error) {
	deadline := a.deadline.Load()
	if deadline == 0 {
		return false, nil
	}
	sent := int64(0)
	for _, w := range a.producers {
		sent += w.acknowledged.Load()
	}
	arrived := a.arrived.Load()
	if arrived < sent && a.meter.now() > deadline {
		return false, fmt.Errorf("%d of %d acknowledged records did not arrive within %s", sent-arrived, sent, patience)
	}
	return arrived >= sent, nil
}

// arrive takes one record in; it may be somebody else's.
func (a *arrivals) arrive(w *worker, value []byte, now int64) (mine bool) {
	if len(value) < stampSize {
		return false
	}
	stamp := int64(binary.BigEndian.Uint64(value))
	if stamp < a.meter.wall || stamp > now {
		return false
	}
	a.arrived.Add(1)
	if a.meter.within(stamp) {
		w.latency.note(now - stamp)
	}
	if a.meter.within(now) {
		w.records.Add(1)
		w.bytes.Add(int64(len(value)))
	}
	return true
}

// follow makes the consumers ready, at the end of the topic as it is now.
func (e *EndToEnd) follow(ctx context.Context, a *arrivals) ([]work, func(), error) {
	if e.Client {
		return e.followClients(ctx, a)
	}
	all, err := exclusiveShares(ctx, e.Addr, e.Topic, e.Consumers)
	if err != nil {
		return nil, nil, err
	}
	ends, err := endOffsets(ctx, e.Addr, e.Topic)
	if err != nil {
		return nil, nil, err
	}
	conns, hangUp, err := dialAll(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	var following []work
	for i, s := range all {
		w := a.meter.worker(a.meter.latency)
		following = append(following, func(ctx context.Context) error { return because(ctx, e.consume(conns[i], s, ends, a, w)) })
	}
	return following, hangUp, nil
}

const (
	followBytes = 1 << 20 // of one answer
	followWait  = 200 * time.Millisecond
)

func (e *EndToEnd) consume(c *conn, s share, ends map[int32]int64, a *arrivals, w *worker) error {
	request := (&Consume{Load: Load{Topic: e.Topic}, MaxBytes: followBytes}).request(s, ends)
	request.MaxWaitMillis = int32(followWait.Milliseconds())
	response := kmsg.NewPtrFetchResponse()
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	var frame []byte
	for i := int32(0); ; i++ {
		if done, err := a.complete(); done || err != nil {
			return err
		}
		frame = formatter.AppendRequest(frame[:0], request, i)
		if err := c.write(frame); err != nil {
			return err
		}
		answer, err := c.read()
		if err != nil {
			return err
		}
		now := a.meter.now()
		response.SetVersion(fetchVersion)
		if err := response.ReadFrom(answer[5:]); err != nil { // correlation id and tags
			return fmt.Errorf("the answer to Fetch is not understood: %w", err)
		}
		if err := take(request, response, func(value []byte) { a.arrive(w, value, now) }); err != nil {
			return err
		}
	}
}

// take gives each record of an answer, and moves the request's offsets behind them.
func take(q *kmsg.FetchRequest, r *kmsg.FetchResponse, each func(value []byte)) error {
	if r.ErrorCode != 0 {
		return kerr.ErrorForCode(r.ErrorCode)
	}
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			if p.ErrorCode != 0 {
				return fmt.Errorf("partition %d: %w", p.Partition, kerr.ErrorForCode(p.ErrorCode))
			}
			wanted := asked(q, p.Partition)
			if wanted == nil {
				return fmt.Errorf("the answer has partition %d, which was not asked for", p.Partition)
			}
			for rest := p.RecordBatches; ; {
				var batch record.Batch
				var err error
				if batch, rest, err = record.Next(rest); errors.Is(err, record.ErrShort) {
					break
				} else if err != nil {
					return fmt.Errorf("partition %d: %w", p.Partition, err)
				}
				h := batch.Header()
				records := record.Iterate(h, batch.Records())
				for h.Attributes.Codec() == record.None && records.Next() {
					if records.Record.Offset >= wanted.FetchOffset { // an answer begins with a whole batch
						each(records.Record.Value)
					}
				}
				if err := records.Err(); err != nil {
					return fmt.Errorf("partition %d: %w", p.Partition, err)
				}
				wanted.FetchOffset = max(wanted.FetchOffset, h.BaseOffset+int64(h.LastOffsetDelta)+1)
			}
		}
	}
	return nil
}

func asked(q *kmsg.FetchRequest, partition int32) *kmsg.FetchRequestTopicPartition {
	for i := range q.Topics[0].Partitions {
		if p := &q.Topics[0].Partitions[i]; p.Partition == partition {
			return p
		}
	}
	return nil
}
