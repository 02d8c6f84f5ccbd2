package kgopartitioner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/plugins/sdk/kgopartitioner"
)

// counting gives each record the number of the call, modulo the partitions; keyed ones go to the last.
type counting struct {
	keyed bool
	calls int32
	err   error
	last  partitioner.Batch
}

func (*counting) Start(context.Context) error { return nil }
func (*counting) Stop(context.Context) error  { return nil }
func (c *counting) Keyed() bool               { return c.keyed }

func (c *counting) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if c.err != nil {
		return dst, c.err
	}
	c.last = *b
	c.last.Records = append([]partitioner.Record(nil), b.Records...)
	for _, r := range b.Records {
		if c.keyed && r.Key != nil {
			dst = append(dst, b.Partitions-1)
		} else {
			dst = append(dst, c.calls%b.Partitions)
		}
	}
	c.calls++
	return dst, nil
}

func TestUnkeyedRecordsStayUntilTheBatchIsFull(t *testing.T) {
	p := &counting{keyed: true}
	topic := kgopartitioner.New(p).ForTopic("t")
	plain, keyed := kgo.StringRecord("v"), kgo.KeyStringRecord("k", "v")
	require.False(t, topic.RequiresConsistency(plain))
	require.True(t, topic.RequiresConsistency(keyed))
	require.Equal(t, 0, topic.Partition(plain, 3))
	require.Equal(t, 2, topic.Partition(keyed, 3))
	require.Equal(t, 0, topic.Partition(plain, 3))
	topic.(kgo.TopicPartitionerOnNewBatch).OnNewBatch()
	require.Equal(t, 2, topic.Partition(plain, 3))
	require.Equal(t, 0, topic.Partition(plain, 1), "a pin beyond the partitions that are left is none")
}

// bound is as counting, and its records belong where it puts them.
type bound struct{ counting }

func (*bound) Bound() bool { return true }

// TestBoundSeesTheTopicsOwnPartitions wants nothing renumbered for records that belong somewhere, with a key or not.
func TestBoundSeesTheTopicsOwnPartitions(t *testing.T) {
	topic := kgopartitioner.New(&bound{}).ForTopic("t")
	require.True(t, topic.RequiresConsistency(kgo.StringRecord("v")))
	require.True(t, topic.RequiresConsistency(kgo.KeyStringRecord("k", "v")))
	require.Equal(t, []int{0, 1}, []int{topic.Partition(kgo.StringRecord("v"), 3), topic.Partition(kgo.StringRecord("v"), 3)})
}

func TestOthersAreAskedForEachRecord(t *testing.T) {
	p := &counting{}
	topic := kgopartitioner.New(p).ForTopic("t")
	require.NotImplements(t, (*kgo.TopicPartitionerOnNewBatch)(nil), topic, "franz-go would ask twice for a record that begins a batch")
	for i := range 5 {
		r := kgo.KeyStringRecord("k", "v")
		r.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte{1}}}
		require.False(t, topic.RequiresConsistency(r))
		require.Equal(t, i%3, topic.Partition(r, 3))
	}
	require.Equal(t, "t", p.last.Topic)
	require.Equal(t, []partitioner.Record{{Key: []byte("k"), Value: []byte("v"), Headers: []partitioner.Header{{Key: "h", Value: []byte{1}}}}}, p.last.Records)
}

func TestErrors(t *testing.T) {
	var told error
	p := &counting{err: errors.New("boom")}
	topic := kgopartitioner.New(p, kgopartitioner.OnError(func(topic string, err error) { told = fmt.Errorf("%s: %w", topic, err) })).ForTopic("t")
	require.Equal(t, -1, topic.Partition(kgo.StringRecord("v"), 3))
	require.EqualError(t, told, "t: boom")
	require.Equal(t, -1, kgopartitioner.New(p).ForTopic("t").Partition(kgo.StringRecord("v"), 3))
	records := []*kgo.Record{{Partition: 7}}
	require.Error(t, kgopartitioner.Assign(t.Context(), p, "t", 3, nil, records))
	require.Equal(t, int32(7), records[0].Partition)
}

func TestAssignAsksOnce(t *testing.T) {
	p := &counting{keyed: true}
	records := []*kgo.Record{kgo.StringRecord("a"), kgo.KeyStringRecord("k", "b"), kgo.StringRecord("c")}
	require.NoError(t, kgopartitioner.Assign(t.Context(), p, "t", 3, []int32{0, 2}, records))
	require.Equal(t, int32(1), p.calls)
	require.Equal(t, []int32{0, 2}, p.last.Available)
	require.Equal(t, []int32{0, 2, 0}, []int32{records[0].Partition, records[1].Partition, records[2].Partition})
}
