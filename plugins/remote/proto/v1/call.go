package pluginv1

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// PartitionCall is a PartitionRequest on its way out. [NewCodec] writes it straight from a batch into the message's bytes:
// making a PartitionRequest of it first would copy everything once more.
type PartitionCall struct {
	Batch   *partitioner.Batch
	Records []partitioner.Record // all of the batch, or some
	Number  uint64               // call

	keys, values, names, headerValues columnSize
	counts                            int // bytes of header_counts
	available                         int
}

// columnSize is how many bytes a column takes.
type columnSize struct{ data, sizes int }

func (c *columnSize) add(b []byte) {
	if b == nil {
		c.sizes++ // -1 is 1 in zigzag
		return
	}
	c.text(len(b))
}

func (c *columnSize) text(n int) {
	c.sizes += protowire.SizeVarint(protowire.EncodeZigZag(int64(n)))
	c.data += n
}

// inner is the size of the column's message without what is before it.
func (c columnSize) inner() (n int) {
	if c.data > 0 {
		n += 1 + protowire.SizeBytes(c.data)
	}
	if c.sizes > 0 {
		n += 1 + protowire.SizeBytes(c.sizes)
	}
	return n
}

// Fields of PartitionRequest and Column, as in plugin.proto. All have numbers below 16, and so tags of one byte.
const (
	requestTopic, requestPartitions, requestAvailable protowire.Number = 1, 2, 3
	requestKeys, requestValues, requestCounts         protowire.Number = 4, 5, 6
	requestNames, requestHeaderValues, requestCall    protowire.Number = 7, 8, 9
	columnData, columnSizes                           protowire.Number = 1, 2
	answerError, answerPartitions, answerCall         protowire.Number = 1, 2, 3
)

// size implements outgoing. It looks at every record once.
func (c *PartitionCall) size() int {
	c.keys, c.values, c.names, c.headerValues, c.counts, c.available = columnSize{}, columnSize{}, columnSize{}, columnSize{}, 0, 0
	headers := false
	for i := range c.Records {
		r := &c.Records[i]
		c.keys.add(r.Key)
		c.values.add(r.Value)
		c.counts += protowire.SizeVarint(uint64(len(r.Headers)))
		for j := range r.Headers {
			headers = true
			c.names.text(len(r.Headers[j].Key))
			c.headerValues.add(r.Headers[j].Value)
		}
	}
	if !headers {
		c.counts = 0
	}
	for _, p := range c.Batch.Available {
		c.available += protowire.SizeVarint(uint64(p))
	}
	n := 1 + protowire.SizeBytes(len(c.Batch.Topic)) + 1 + protowire.SizeVarint(uint64(c.Batch.Partitions)) + 1 + protowire.SizeVarint(c.Number)
	for _, packed := range []int{c.available, c.counts, c.keys.inner(), c.values.inner(), c.names.inner(), c.headerValues.inner()} {
		if packed > 0 {
			n += 1 + protowire.SizeBytes(packed)
		}
	}
	return n
}

// append implements outgoing. size came before.
func (c *PartitionCall) append(b []byte) ([]byte, error) {
	b = protowire.AppendTag(b, requestTopic, protowire.BytesType)
	b = protowire.AppendString(b, c.Batch.Topic)
	b = protowire.AppendTag(b, requestPartitions, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(c.Batch.Partitions))
	b = protowire.AppendTag(b, requestCall, protowire.VarintType)
	b = protowire.AppendVarint(b, c.Number)
	if c.available > 0 {
		b = appendLength(b, requestAvailable, c.available)
		for _, p := range c.Batch.Available {
			b = protowire.AppendVarint(b, uint64(p))
		}
	}
	if c.counts > 0 {
		b = appendLength(b, requestCounts, c.counts)
		for i := range c.Records {
			b = protowire.AppendVarint(b, uint64(len(c.Records[i].Headers)))
		}
	}
	b = c.column(b, requestKeys, c.keys, func(r *partitioner.Record) []byte { return r.Key })
	b = c.column(b, requestValues, c.values, func(r *partitioner.Record) []byte { return r.Value })
	return c.headers(b), nil
}

func appendLength(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

func (c *PartitionCall) column(b []byte, field protowire.Number, n columnSize, of func(*partitioner.Record) []byte) []byte {
	if n.sizes == 0 {
		return b
	}
	b = appendLength(b, field, n.inner())
	if n.data > 0 {
		b = appendLength(b, columnData, n.data)
		for i := range c.Records {
			b = append(b, of(&c.Records[i])...)
		}
	}
	b = appendLength(b, columnSizes, n.sizes)
	for i := range c.Records {
		b = appendSize(b, of(&c.Records[i]))
	}
	return b
}

func appendSize(b, element []byte) []byte {
	n := int64(-1)
	if element != nil {
		n = int64(len(element))
	}
	return protowire.AppendVarint(b, protowire.EncodeZigZag(n))
}

func (c *PartitionCall) headers(b []byte) []byte {
	if c.names.sizes == 0 {
		return b
	}
	each := func(f func(*partitioner.Header)) {
		for i := range c.Records {
			for j := range c.Records[i].Headers {
				f(&c.Records[i].Headers[j])
			}
		}
	}
	b = appendLength(b, requestNames, c.names.inner())
	if c.names.data > 0 {
		b = appendLength(b, columnData, c.names.data)
		each(func(h *partitioner.Header) { b = append(b, h.Key...) })
	}
	b = appendLength(b, columnSizes, c.names.sizes)
	each(func(h *partitioner.Header) { b = protowire.AppendVarint(b, protowire.EncodeZigZag(int64(len(h.Key)))) })
	b = appendLength(b, requestHeaderValues, c.headerValues.inner())
	if c.headerValues.data > 0 {
		b = appendLength(b, columnData, c.headerValues.data)
		each(func(h *partitioner.Header) { b = append(b, h.Value...) })
	}
	b = appendLength(b, columnSizes, c.headerValues.sizes)
	each(func(h *partitioner.Header) { b = appendSize(b, h.Value) })
	return b
}
