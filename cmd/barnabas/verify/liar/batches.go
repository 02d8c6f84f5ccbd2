package liar

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/record"
)

// produced calls f with the record set of each partition of a produce request, and says whether it is one.
func produced(req kmsg.Request, f func(topic string, p *kmsg.ProduceRequestTopicPartition)) bool {
	r, ok := req.(*kmsg.ProduceRequest)
	if !ok {
		return false
	}
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			f(r.Topics[i].Topic, &r.Topics[i].Partitions[j])
		}
	}
	return true
}

// fetched calls f with each partition of a fetch response that has records, and says whether it is one.
func fetched(resp kmsg.Response, f func(p *kmsg.FetchResponseTopicPartition)) bool {
	r, ok := resp.(*kmsg.FetchResponse)
	if !ok {
		return false
	}
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if p := &r.Topics[i].Partitions[j]; len(p.RecordBatches) > 0 {
				f(p)
			}
		}
	}
	return true
}

// count is the number of offsets that a record set takes.
func count(set []byte) (n int64) {
	for b := range record.All(set) {
		n += int64(b.Header().LastOffsetDelta) + 1
	}
	return n
}

// anonymous takes the producer out of batches, so that the broker doesn't notice when one is missing or comes twice.
func anonymous(set []byte) []byte {
	set = slices.Clone(set)
	for b := range record.All(set) {
		h := b.Header()
		h.ProducerID, h.ProducerEpoch, h.BaseSequence = record.NoProducerID, record.NoProducerEpoch, record.NoSequence
		h.Put(b)
		record.SetCRC(b)
	}
	return set
}

// reversed turns the records of one batch around.
func reversed(set []byte) []byte {
	b := record.Batch(set)
	var records []record.Record
	for r, err := range b.Each(nil, 0) {
		if err != nil {
			return set
		}
		records = append(records, r)
	}
	slices.Reverse(records)
	build := record.NewBuilder(record.Options{})
	for i, r := range records {
		r.Offset = int64(i)
		if build.Append(r) != nil {
			return set
		}
	}
	turned, err := build.Build(nil, nil)
	if err != nil {
		return set
	}
	return turned
}

// altered changes a letter in the value of the last record.
func altered(set []byte) []byte {
	set = slices.Clone(set)
	var last record.Batch
	for b := range record.All(set) {
		last = b
	}
	if i := bytes.LastIndexByte(last, 'o'); i > record.HeaderSize {
		last[i] = '0'
		record.SetCRC(last)
	}
	return set
}

// behind is a record set that follows the offset of another.
func behind(set []byte, base int64) []byte {
	set = slices.Clone(set)
	for b := range record.All(set) {
		record.SetBaseOffset(b, base)
		base += int64(b.Header().LastOffsetDelta) + 1
	}
	return set
}

// alien is a batch that no producer of a run sends.
func alien() []byte {
	b := record.NewBuilder(record.Options{})
	_ = b.Append(record.Record{Value: []byte("somebody else's"), Timestamp: 1}) // one record fits
	set, _ := b.Build(nil, nil)
	return set
}
