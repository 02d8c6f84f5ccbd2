package compact

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Producer is what must stay of an idempotent producer that isn't forgotten yet.
type Producer struct {
	// LastOffset is where its last batch of records ends, -1 when none is known: then its last marker tells its epoch.
	LastOffset int64
	Epoch      int16
}

// Rules are what a Filter goes by.
type Rules struct {
	// Keys has the last offset of each key, of all that lies below To and wasn't cleaned before.
	Keys *OffsetMap
	// To is where the cleaned range ends, exclusively: records from there on stay.
	To int64
	// Now and DeleteRetentionMs say when a tombstone or marker may go (delete.retention.ms), in milliseconds.
	Now, DeleteRetentionMs int64
	// Producers are those that aren't forgotten, by id.
	Producers map[int64]Producer
	// Aborted are the aborted transactions of the range, or overlapping it.
	Aborted []Aborted
	Codecs  record.Codecs
}

// Filter is the second walk: it takes the batches of a log in order, from its start on, and gives what is left of each.
type Filter struct {
	Rules
	txns    transactions
	left    []Aborted
	r       reader
	builder record.Builder
	kept    []record.Record
	// Dropped counts the records that are gone.
	Dropped int64
}

// NewFilter makes a filter.
func NewFilter(r Rules) *Filter {
	return &Filter{Rules: r, txns: newTransactions(r.Aborted), r: reader{codecs: r.Codecs}}
}

// TakeAborted gives the aborted transactions whose markers were passed since the last call, and of which something may be
// left: those that the index of the cleaned range still needs.
func (f *Filter) TakeAborted() []Aborted {
	left := f.left
	f.left = nil
	return left
}

// Batch appends to dst what is left of the next batch: the batch as it is, one with fewer records over the same offsets, one
// without records that keeps the state of its producer, or nothing. An error says that the batch can't be read; it must not
// be thrown away then.
func (f *Filter) Batch(dst []byte, b record.Batch) ([]byte, error) {
	h := b.Header()
	var discard, lastOfTxn bool
	if h.Attributes.Control() {
		kind, err := f.r.control(b, h)
		if err != nil {
			return dst, err
		}
		switch kind {
		case emptied:
			lastOfTxn = true
		case commit, abort:
			var left *Aborted
			if lastOfTxn, left = f.txns.marker(h, kind == commit); left != nil {
				f.left = append(f.left, *left)
			}
		}
		// A marker waits like a tombstone, so that a reader who has seen some of the transaction finds its end.
		at, waits := h.DeleteHorizonMs()
		discard = kind == emptied || lastOfTxn && waits && at <= f.Now
	} else {
		discard = f.txns.data(h)
	}
	if discard {
		f.Dropped += int64(max(h.Count, 0))
		return f.emptied(dst, h), nil
	}
	return f.thin(dst, b, h, lastOfTxn)
}

// emptied appends what is left of a batch without records: nothing, unless it is the last word of its producer.
func (f *Filter) emptied(dst []byte, h record.Header) []byte {
	if h.ProducerID < 0 {
		return dst
	}
	p, known := f.Producers[h.ProducerID]
	switch {
	case !known:
		return dst
	case p.LastOffset >= 0 && p.LastOffset != h.LastOffset():
		return dst
	case p.LastOffset < 0 && !(h.Attributes.Control() && h.ProducerEpoch == p.Epoch):
		return dst
	}
	return record.AppendEmpty(dst, h)
}

// thin appends a batch without the records that need not stay.
func (f *Filter) thin(dst []byte, b record.Batch, h record.Header, lastOfTxn bool) ([]byte, error) {
	records, err := f.r.open(b, h)
	if err != nil {
		return dst, err
	}
	horizon, waits := h.DeleteHorizonMs()
	tombstones := false
	f.kept = f.kept[:0]
	for records.next() {
		r := &records.Record
		if h.Attributes.Control() {
			f.kept = append(f.kept, *r)
			continue
		}
		if r.Offset < f.To {
			if r.Key == nil || r.Offset < f.Keys.Get(r.Key) || r.Value == nil && waits && horizon <= f.Now {
				continue
			}
			tombstones = tombstones || r.Value == nil
		}
		f.kept = append(f.kept, *r)
	}
	if err := records.failure(); err != nil {
		return dst, err
	}
	f.Dropped += int64(h.Count) - int64(len(f.kept))
	if len(f.kept) == 0 {
		return f.emptied(dst, h), nil
	}
	// From the first pass on that has seen all of a batch its tombstones and markers have a time to go (KIP-534).
	stamp := !waits && (tombstones || lastOfTxn) && h.LastOffset() < f.To
	if int(h.Count) == len(f.kept) && !stamp {
		return append(dst, b...), nil
	}
	o := record.OptionsOf(h)
	if stamp {
		at := f.Now + min(max(f.DeleteRetentionMs, 0), maxRetention)
		o.DeleteHorizon = &at
	}
	f.builder.Reset(o)
	for _, r := range f.kept {
		if err := f.builder.Append(r); err != nil {
			return dst, fmt.Errorf("rewrite the batch at offset %d: %w", h.BaseOffset, err)
		}
	}
	if dst, err = f.builder.Build(dst, f.Codecs); err != nil {
		return dst, fmt.Errorf("rewrite the batch at offset %d: %w", h.BaseOffset, err)
	}
	return dst, nil
}

// maxRetention keeps the sum of a time and delete.retention.ms from overflowing: about a million years.
const maxRetention = 1 << 55

// AppendEnd appends a batch without records or a producer whose only offset is the last one of a cleaned range, so that the
// range still says where it ends.
func AppendEnd(dst []byte, last int64, epoch int32) []byte {
	return record.AppendEmpty(dst, record.Header{
		BaseOffset: last, LeaderEpoch: epoch, MaxTimestamp: record.NoTimestamp,
		ProducerID: record.NoProducerID, ProducerEpoch: record.NoProducerEpoch, BaseSequence: record.NoSequence,
	})
}
