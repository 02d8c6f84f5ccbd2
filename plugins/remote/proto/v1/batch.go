package pluginv1

import (
	"errors"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// errColumn says that sizes and data of a column don't belong together.
var errColumn = errors.New("a column's sizes are not those of its data")

// reader takes the elements of a column one by one.
type reader struct {
	data  []byte
	sizes []int32
	bad   bool
}

func (x *Column) reader() reader { return reader{data: x.GetData(), sizes: x.GetSizes()} }

// next is the next element. Once there is none, or its size is a lie, bad is set and everything is null.
func (r *reader) next() []byte {
	if len(r.sizes) == 0 || r.bad {
		r.bad = true
		return nil
	}
	n := int(r.sizes[0])
	r.sizes = r.sizes[1:]
	if n == -1 {
		return nil
	}
	if n == 0 {
		return []byte{} // not null, though data may be
	}
	if n < 0 || n > len(r.data) {
		r.bad = true
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

// done says whether everything was taken and nothing was wrong.
func (r *reader) done() bool { return !r.bad && len(r.sizes) == 0 && len(r.data) == 0 }

// columns are what the records of a batch come in.
type columns struct {
	keys, values, names, headerValues reader
	counts                            []uint32 // of headers; empty when no record has any
}

// fill makes the records of a batch, which share the memory of the columns. headers is memory for all headers; it is given
// back, maybe larger.
func (c columns) fill(b *partitioner.Batch, headers []partitioner.Header) ([]partitioner.Header, error) {
	n := len(c.keys.sizes)
	if len(c.values.sizes) != n || len(c.counts) != 0 && len(c.counts) != n || len(c.names.sizes) != len(c.headerValues.sizes) {
		return headers, fmt.Errorf("%w: columns of %d keys, %d values, %d header counts, %d header names and %d header values", partitioner.ErrInvalid,
			n, len(c.values.sizes), len(c.counts), len(c.names.sizes), len(c.headerValues.sizes))
	}
	b.Records = slices.Grow(b.Records[:0], n)[:n]
	headers = slices.Grow(headers[:0], len(c.names.sizes)) // appending never moves it
	for i := range b.Records {
		b.Records[i] = partitioner.Record{Key: c.keys.next(), Value: c.values.next()}
		if len(c.counts) == 0 || c.counts[i] == 0 {
			continue
		}
		if int64(c.counts[i]) > int64(len(c.names.sizes)) {
			return headers, fmt.Errorf("%w: record %d has %d headers, %d are left", partitioner.ErrInvalid, i, c.counts[i], len(c.names.sizes))
		}
		first := len(headers)
		for range c.counts[i] {
			headers = append(headers, partitioner.Header{Key: string(c.names.next()), Value: c.headerValues.next()})
		}
		b.Records[i].Headers = headers[first:len(headers):len(headers)]
	}
	if !c.keys.done() || !c.values.done() || !c.names.done() || !c.headerValues.done() {
		return headers, fmt.Errorf("%w: %w", partitioner.ErrInvalid, errColumn)
	}
	return headers, nil
}

// Batch gives the batch that a [PartitionCall] was made of. It shares the request's memory. An error says that the request
// makes no sense.
func (x *PartitionRequest) Batch() (*partitioner.Batch, error) {
	b := &partitioner.Batch{Topic: x.GetTopic(), Partitions: x.GetPartitions(), Available: x.GetAvailable()}
	c := columns{x.GetKeys().reader(), x.GetValues().reader(), x.GetHeaderNames().reader(), x.GetHeaderValues().reader(), x.GetHeaderCounts()}
	if _, err := c.fill(b, nil); err != nil {
		return nil, err
	}
	return b, nil
}
