// Package kgopartitioner lets programs that use franz-go partition with any Barnabas partitioner.
//
//	client, err := kgo.NewClient(kgo.RecordPartitioner(kgopartitioner.New(p)), …)
//
// franz-go asks for one record at a time. A program that has many records at hand gives whole batches to a partitioner with
// [Assign] instead, which matters when the partitioner runs in another process; the client then needs
// kgo.ManualPartitioner.
//
// What a partitioner decides, and starting and stopping it, is not this package's business.
package kgopartitioner

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// DefaultTimeout is how long a client waits for the partition of a record.
const DefaultTimeout = 10 * time.Second

// Option changes what [New] makes.
type Option func(*adapter)

// Timeout sets how long the client waits for the partition of a record, instead of [DefaultTimeout].
func Timeout(d time.Duration) Option { return func(a *adapter) { a.timeout = d } }

// OnError is called with each error of the partitioner, from the goroutine that produces. The client itself fails the record
// with an error of its own that doesn't say why.
func OnError(f func(topic string, err error)) Option { return func(a *adapter) { a.failed = f } }

// New makes a partitioner for a client (kgo.RecordPartitioner) of a started Barnabas partitioner.
//
// Records with a key go where p says, among all partitions of the topic, when p is keyed; all records do when p is
// partitioner.Bound. Records without a key stay at one partition of a keyed p until the client begins another batch. For everything else franz-go offers p the partitions that can be
// written to at the moment, counted from 0: they are not the topic's own numbers while some partition has no leader.
func New(p partitioner.Partitioner, options ...Option) kgo.Partitioner {
	a := &adapter{p: p, timeout: DefaultTimeout}
	for _, o := range options {
		o(a)
	}
	return a
}

type adapter struct {
	p       partitioner.Partitioner
	timeout time.Duration
	failed  func(topic string, err error)
}

// ForTopic implements kgo.Partitioner.
func (a *adapter) ForTopic(topic string) kgo.TopicPartitioner {
	t := &topicAdapter{adapter: a, topic: topic, pinned: -1}
	if !a.p.Keyed() {
		return t
	}
	return &pinningAdapter{t}
}

// topicAdapter is used by one goroutine at a time, as kgo promises.
type topicAdapter struct {
	*adapter
	topic   string
	pinned  int // for records without a key, -1 for none
	records [1]partitioner.Record
	answer  [1]int32
}

// RequiresConsistency implements kgo.TopicPartitioner.
func (t *topicAdapter) RequiresConsistency(r *kgo.Record) bool { return partitioner.Fixed(t.p, r.Key) }

// Partition implements kgo.TopicPartitioner. -1 makes the client fail the record.
func (t *topicAdapter) Partition(r *kgo.Record, n int) int {
	pin := t.p.Keyed() && !partitioner.Fixed(t.p, r.Key)
	if pin && t.pinned >= 0 && t.pinned < n {
		return t.pinned
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	t.records[0] = record(r)
	b := partitioner.Batch{Topic: t.topic, Partitions: int32(n), Records: t.records[:]}
	got, err := t.p.Partition(ctx, t.answer[:0], &b)
	t.records[0] = partitioner.Record{}
	if err != nil {
		if t.failed != nil {
			t.failed(t.topic, err)
		}
		return -1
	}
	if pin {
		t.pinned = int(got[0])
	}
	return int(got[0])
}

// pinningAdapter is for keyed partitioners. Whoever has OnNewBatch is asked a second time for a record that begins a batch,
// which makes one that takes turns leave out every other partition; so others don't have it.
type pinningAdapter struct{ *topicAdapter }

var _ kgo.TopicPartitionerOnNewBatch = (*pinningAdapter)(nil)

// OnNewBatch implements kgo.TopicPartitionerOnNewBatch.
func (t *pinningAdapter) OnNewBatch() { t.pinned = -1 }

func record(r *kgo.Record) partitioner.Record {
	p := partitioner.Record{Key: r.Key, Value: r.Value}
	if len(r.Headers) > 0 {
		p.Headers = make([]partitioner.Header, len(r.Headers))
		for i, h := range r.Headers {
			p.Headers[i] = partitioner.Header{Key: h.Key, Value: h.Value}
		}
	}
	return p
}

// Assign asks a partitioner once for the partitions of many records of one topic, and sets them in the records, for a
// client with kgo.ManualPartitioner. partitions is the number of the topic's partitions; available lists those that have a
// leader, ascending, and may be nil. After an error no record was changed.
func Assign(ctx context.Context, p partitioner.Partitioner, topic string, partitions int32, available []int32, records []*kgo.Record) error {
	b := partitioner.Batch{Topic: topic, Partitions: partitions, Available: available, Records: make([]partitioner.Record, len(records))}
	for i, r := range records {
		b.Records[i] = record(r)
	}
	got, err := p.Partition(ctx, make([]int32, 0, len(records)), &b)
	if err != nil {
		return err
	}
	if len(got) != len(records) {
		return fmt.Errorf("%w: %d partitions for %d records", partitioner.ErrInvalid, len(got), len(records))
	}
	for _, n := range got {
		if n < 0 || n >= partitions {
			return fmt.Errorf("%w: partition %d of %d", partitioner.ErrInvalid, n, partitions)
		}
	}
	for i, r := range records {
		r.Partition = got[i]
	}
	return nil
}
