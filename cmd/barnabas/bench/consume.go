package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Consume is load by consumers that read the topic from its start, and begin anew at its end. One request is under way on
// each connection.
type Consume struct {
	Load
	MaxBytes int32 // of one answer, and of each partition in it
	// Once reads each partition once, from its start to where it ends when the run begins, without a warm-up. Duration bounds it.
	Once bool
	// Client consumes through franz-go, one client for each connection, each of them other partitions: every record is read.
	Client bool
}

// fetchVersion is spoken by every broker from Kafka 2.7 on and, unlike the versions from 13 on, has topics by name.
const fetchVersion = 12

// Check finds what is wrong with the load.
func (o *Consume) Check() error {
	switch {
	case o.MaxBytes < 1 || o.MaxBytes > maxResponse/2:
		return fmt.Errorf("at most %d bytes an answer: it must be from 1 to %d", o.MaxBytes, maxResponse/2)
	case o.Once && o.Client:
		return errors.New("a topic is read once without a client only")
	case o.Once && o.WarmUp != 0:
		return errors.New("what is read once has no warm-up")
	}
	return o.check()
}

// Run puts the load on the broker.
func (o *Consume) Run(ctx context.Context) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Client {
		return o.runClients(ctx)
	}
	all, err := shares(ctx, o.Addr, o.Topic, o.Connections)
	if err != nil {
		return nil, err
	}
	var ends map[int32]int64
	if o.Once {
		if all, err = exclusiveShares(ctx, o.Addr, o.Topic, o.Connections); err != nil {
			return nil, err
		}
		if ends, err = endOffsets(ctx, o.Addr, o.Topic); err != nil {
			return nil, err
		}
	}
	starts, err := startOffsets(ctx, o.Addr, o.Topic)
	if err != nil {
		return nil, err
	}
	conns, hangUp, err := dialAll(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	defer hangUp()
	m := newMeter(len(all))
	workers := make([]work, len(all))
	for i, s := range all {
		w := m.worker(m.latency)
		workers[i] = func(ctx context.Context) error { return because(ctx, o.work(ctx, conns[i], w, s, starts, ends)) }
	}
	r, err := o.drive(ctx, m, workers, nil, hangUp)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	r.Name, r.InFlight = "consume", 1
	return r, nil
}

func (o *Consume) work(ctx context.Context, c *conn, w *worker, s share, starts, ends map[int32]int64) error {
	request := o.request(s, starts)
	if o.Once {
		request.Topics[0].Partitions = unread(request.Topics[0].Partitions, ends)
		select {
		case <-w.meter.opened:
		case <-ctx.Done():
		}
	}
	response := kmsg.NewPtrFetchResponse()
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	var frame []byte
	for i := int32(0); len(request.Topics[0].Partitions) > 0 && w.more(); i++ {
		frame = formatter.AppendRequest(frame[:0], request, i)
		start := w.meter.now()
		if err := c.write(frame); err != nil {
			return err
		}
		answer, err := c.read()
		if err != nil {
			return err
		}
		response.SetVersion(fetchVersion)
		if err := response.ReadFrom(answer[5:]); err != nil { // correlation id and tags
			return fmt.Errorf("the answer to Fetch is not understood: %w", err)
		}
		records, bytes, err := walk(request, response, o.Once)
		if err != nil {
			return err
		}
		if o.Once {
			request.Topics[0].Partitions = unread(request.Topics[0].Partitions, ends)
		}
		w.done(start, w.meter.now(), records, bytes, bytes)
	}
	return nil
}

// request asks for all partitions of a share, from their start. It is a fetch without a session.
func (o *Consume) request(s share, starts map[int32]int64) *kmsg.FetchRequest {
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = o.Topic
	for _, partition := range s.partitions {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, starts[partition], o.MaxBytes
		topic.Partitions = append(topic.Partitions, p)
	}
	r := kmsg.NewPtrFetchRequest()
	r.SetVersion(fetchVersion)
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch = 100, 1, o.MaxBytes, -1
	r.Topics = []kmsg.FetchRequestTopic{topic}
	return r
}

// walk goes over the batches of an answer by their headers, and moves the request's offsets behind them: at the end of a
// partition back to its start, unless it is to be read once. The partitions that gave something go to the end of the request, as clients have it.
func walk(q *kmsg.FetchRequest, r *kmsg.FetchResponse, once bool) (records, bytes int64, err error) {
	if r.ErrorCode != 0 {
		return 0, 0, kerr.ErrorForCode(r.ErrorCode)
	}
	wanted := q.Topics[0].Partitions
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			if p.ErrorCode != 0 {
				return 0, 0, fmt.Errorf("partition %d: %w", p.Partition, kerr.ErrorForCode(p.ErrorCode))
			}
			at := 0
			for at < len(wanted) && wanted[at].Partition != p.Partition {
				at++
			}
			if at == len(wanted) {
				return 0, 0, fmt.Errorf("the answer has partition %d, which was not asked for", p.Partition)
			}
			next := wanted[at].FetchOffset
			n, to := batches(p.RecordBatches)
			if to > next {
				next = to
			}
			records += n
			bytes += int64(len(p.RecordBatches))
			if next >= p.HighWatermark && !once {
				next = max(p.LogStartOffset, 0)
			}
			wanted[at].FetchOffset = next
			if n > 0 {
				moved := wanted[at]
				copy(wanted[at:], wanted[at+1:])
				wanted[len(wanted)-1] = moved
			}
		}
	}
	return records, bytes, nil
}

// unread leaves the partitions that have not been read to their ends.
func unread(all []kmsg.FetchRequestTopicPartition, ends map[int32]int64) []kmsg.FetchRequestTopicPartition {
	return slices.DeleteFunc(all, func(p kmsg.FetchRequestTopicPartition) bool { return p.FetchOffset >= ends[p.Partition] })
}

// batches counts the records of whole batches, and gives the offset behind the last.
func batches(b []byte) (records, next int64) {
	for len(b) >= record.HeaderSize {
		size := 12 + int(int32(binary.BigEndian.Uint32(b[8:])))
		if size < record.HeaderSize || size > len(b) {
			return records, next
		}
		records += int64(int32(binary.BigEndian.Uint32(b[57:])))
		next = int64(binary.BigEndian.Uint64(b)) + int64(int32(binary.BigEndian.Uint32(b[23:]))) + 1
		b = b[size:]
	}
	return records, next
}
