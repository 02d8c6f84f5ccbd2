package pluginv1

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// PartitionTask is a PartitionRequest that came in, whose memory is used again by the next one. Keys and values are where they
// came in, until Free.
type PartitionTask struct {
	Number uint64 // call

	batch               partitioner.Batch
	keys, values        inColumn
	names, headerValues inColumn
	counts              []uint32
	headers             []partitioner.Header
	buffer              mem.Buffer
}

// inColumn is a Column as it came in.
type inColumn struct {
	data  []byte
	sizes []int32
}

var errTopicText = errors.New("the topic is no UTF-8")

// Batch gives the batch, which is there until Free. An error says that the request makes no sense.
func (t *PartitionTask) Batch() (*partitioner.Batch, error) {
	read := func(c inColumn) reader { return reader{data: c.data, sizes: c.sizes} }
	c := columns{read(t.keys), read(t.values), read(t.names), read(t.headerValues), t.counts}
	var err error
	if t.headers, err = c.fill(&t.batch, t.headers); err != nil {
		return nil, err
	}
	return &t.batch, nil
}

// Free gives back what the batch lies in.
func (t *PartitionTask) Free() {
	if t.buffer != nil {
		t.buffer.Free()
		t.buffer = nil
	}
}

// keep takes over the bytes of a message and reads them.
func (t *PartitionTask) keep(b mem.Buffer) error {
	t.Free()
	b.Ref()
	t.buffer = b
	return t.decode(b.ReadOnlyData())
}

// decode reads a PartitionRequest, keeping b.
func (t *PartitionTask) decode(b []byte) error {
	t.Number, t.counts = 0, t.counts[:0]
	topic := t.batch.Topic // of the task before, likely the same
	t.batch = partitioner.Batch{Available: t.batch.Available[:0], Records: t.batch.Records[:0]}
	for _, c := range []*inColumn{&t.keys, &t.values, &t.names, &t.headerValues} {
		c.data, c.sizes = nil, c.sizes[:0]
	}
	return fields(b, func(number protowire.Number, kind protowire.Type, value []byte, v uint64) error {
		packed := kind == protowire.BytesType
		single := kind == protowire.VarintType
		switch {
		case number == requestTopic && packed:
			if !utf8.Valid(value) {
				return errTopicText
			}
			if t.batch.Topic = topic; string(value) != topic {
				t.batch.Topic = string(value)
			}
		case number == requestPartitions && single:
			t.batch.Partitions = int32(v)
		case number == requestCall && single:
			t.Number = v
		case number == requestAvailable && packed:
			return varints(value, t.available)
		case number == requestAvailable && single:
			return t.available(v)
		case number == requestCounts && packed:
			return varints(value, t.count)
		case number == requestCounts && single:
			return t.count(v)
		case number == requestKeys && packed:
			return t.keys.decode(value)
		case number == requestValues && packed:
			return t.values.decode(value)
		case number == requestNames && packed:
			return t.names.decode(value)
		case number == requestHeaderValues && packed:
			return t.headerValues.decode(value)
		}
		return nil
	})
}

func (t *PartitionTask) available(v uint64) error {
	t.batch.Available = append(t.batch.Available, int32(v))
	return nil
}

func (t *PartitionTask) count(v uint64) error {
	t.counts = append(t.counts, uint32(v))
	return nil
}

// decode reads a Column, or more of it.
func (c *inColumn) decode(b []byte) error {
	return fields(b, func(number protowire.Number, kind protowire.Type, value []byte, v uint64) error {
		switch {
		case number == columnData && kind == protowire.BytesType:
			c.data = value
		case number == columnSizes && kind == protowire.BytesType:
			return varints(value, c.size)
		case number == columnSizes && kind == protowire.VarintType:
			return c.size(v)
		}
		return nil
	})
}

func (c *inColumn) size(v uint64) error {
	c.sizes = append(c.sizes, int32(protowire.DecodeZigZag(v&0xffffffff)))
	return nil
}
