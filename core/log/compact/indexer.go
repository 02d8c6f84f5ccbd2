package compact

import (
	"github.com/barnabas-mq/barnabas/core/record"
)

// Indexer is the first walk: it notes the last offset of each key of a range of offsets.
type Indexer struct {
	m    *OffsetMap
	from int64
	to   int64
	txns transactions
	r    reader
}

// NewIndexer makes an indexer of the offsets from from on that notes into m. aborted are the transactions of that range, or
// overlapping it, that were aborted.
func NewIndexer(m *OffsetMap, from int64, aborted []Aborted, c record.Codecs) *Indexer {
	return &Indexer{m: m, from: from, to: from, txns: newTransactions(aborted), r: reader{codecs: c}}
}

// To is the offset up to which, exclusively, everything was noted.
func (x *Indexer) To() int64 { return x.to }

// Batch notes the keys of the next batch. It is false when the map was full before the batch's end; then no further batch may
// follow, and To may lie within the batch. An error says that the batch can't be read.
func (x *Indexer) Batch(b record.Batch) (bool, error) {
	h := b.Header()
	if h.Attributes.Control() {
		kind, err := x.r.control(b, h)
		if err != nil {
			return true, err
		}
		if kind == commit || kind == abort {
			x.txns.marker(h, kind == commit)
		}
	} else if !x.txns.data(h) && h.LastOffset() >= x.from {
		records, err := x.r.open(b, h)
		if err != nil {
			return true, err
		}
		for records.next() {
			r := &records.Record
			if r.Key == nil || r.Offset < x.from {
				continue
			}
			if !x.m.Put(r.Key, r.Offset) {
				return false, nil
			}
			x.to = r.Offset + 1
		}
		if err := records.failure(); err != nil {
			return true, err
		}
	}
	x.to = max(x.to, h.LastOffset()+1)
	return true, nil
}
