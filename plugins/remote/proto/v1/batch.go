package pluginv1

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// errColumn says that sizes and data of a column don't belong together.
var errColumn = errors.New("a column's sizes are not those of its data")

// reset empties a column and keeps its memory.
func (x *Column) reset() {
	x.Data, x.Sizes = x.Data[:0], x.Sizes[:0]
}

// add appends one element.
func (x *Column) add(b []byte) {
	if b == nil {
		x.Sizes = append(x.Sizes, -1)
		return
	}
	x.Sizes = append(x.Sizes, int32(len(b)))
	x.Data = append(x.Data, b...)
}

// addText appends a string, which is never null.
func (x *Column) addText(s string) {
	x.Sizes = append(x.Sizes, int32(len(s)))
	x.Data = append(x.Data, s...)
}

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

// SetBatch fills the request with records of a batch, all or some, reusing the memory that it has. The request keeps nothing
// of the batch but its list of available partitions.
func (x *PartitionRequest) SetBatch(b *partitioner.Batch, records []partitioner.Record) {
	x.Topic, x.Partitions, x.Available = b.Topic, b.Partitions, b.Available
	for _, c := range []**Column{&x.Keys, &x.Values, &x.HeaderNames, &x.HeaderValues} {
		if *c == nil {
			*c = &Column{}
		}
		(*c).reset()
	}
	x.HeaderCounts = x.HeaderCounts[:0]
	headers := false
	for i := range records {
		r := &records[i]
		x.Keys.add(r.Key)
		x.Values.add(r.Value)
		x.HeaderCounts = append(x.HeaderCounts, uint32(len(r.Headers)))
		for _, h := range r.Headers {
			headers = true
			x.HeaderNames.addText(h.Key)
			x.HeaderValues.add(h.Value)
		}
	}
	if !headers {
		x.HeaderCounts = x.HeaderCounts[:0]
	}
}

// Batch gives what SetBatch put in. The batch shares the request's memory. An error says that the request makes no sense.
func (x *PartitionRequest) Batch() (*partitioner.Batch, error) {
	keys, values := x.GetKeys().reader(), x.GetValues().reader()
	names, headerValues := x.GetHeaderNames().reader(), x.GetHeaderValues().reader()
	n := len(keys.sizes)
	counts := x.GetHeaderCounts()
	if len(values.sizes) != n || len(counts) != 0 && len(counts) != n || len(names.sizes) != len(headerValues.sizes) {
		return nil, fmt.Errorf("%w: columns of %d keys, %d values, %d header counts, %d header names and %d header values", partitioner.ErrInvalid,
			n, len(values.sizes), len(counts), len(names.sizes), len(headerValues.sizes))
	}
	b := &partitioner.Batch{Topic: x.GetTopic(), Partitions: x.GetPartitions(), Available: x.GetAvailable(), Records: make([]partitioner.Record, n)}
	headers := make([]partitioner.Header, 0, len(names.sizes)) // of all records; appending never moves it
	for i := range b.Records {
		r := &b.Records[i]
		r.Key, r.Value = keys.next(), values.next()
		if len(counts) == 0 || counts[i] == 0 {
			continue
		}
		if int64(counts[i]) > int64(len(names.sizes)) {
			return nil, fmt.Errorf("%w: record %d has %d headers, %d are left", partitioner.ErrInvalid, i, counts[i], len(names.sizes))
		}
		first := len(headers)
		for range counts[i] {
			headers = append(headers, partitioner.Header{Key: string(names.next()), Value: headerValues.next()})
		}
		r.Headers = headers[first:len(headers):len(headers)]
	}
	if !keys.done() || !values.done() || !names.done() || !headerValues.done() {
		return nil, fmt.Errorf("%w: %w", partitioner.ErrInvalid, errColumn)
	}
	return b, nil
}
