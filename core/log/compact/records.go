package compact

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/core/record"
)

// reader reads the records of one batch after the other. Its memory is reused.
type reader struct {
	codecs  record.Codecs
	payload []byte
}

// open begins to walk over the records of a batch.
func (r *reader) open(b record.Batch, h record.Header) (records, error) {
	payload, err := b.Payload(r.codecs, r.payload, record.DefaultPayloadLimit)
	if err != nil {
		return records{}, fmt.Errorf("records at offset %d: %w", h.BaseOffset, err)
	}
	if h.Attributes.Codec() != record.None {
		r.payload = payload
	}
	return records{Iterator: record.Iterate(h, payload), h: h, last: h.BaseOffset - 1}, nil
}

// records walks over the records of a batch, and makes sure that they are those that the header speaks of: what is thrown
// away can't be looked at again.
type records struct {
	record.Iterator
	h    record.Header
	last int64
	err  error
}

// next moves to the next record.
func (r *records) next() bool {
	if r.err != nil || !r.Next() {
		return false
	}
	if at := r.Record.Offset; at <= r.last || at > r.h.LastOffset() {
		r.err = fmt.Errorf("%w: record offset %d behind %d in the batch of offsets %d to %d", record.ErrInvalid, at, r.last, r.h.BaseOffset, r.h.LastOffset())
		return false
	}
	r.last = r.Record.Offset
	return true
}

// failure is why next ended early, if it did.
func (r *records) failure() error {
	if r.err != nil {
		return r.err
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("records at offset %d: %w", r.h.BaseOffset, err)
	}
	return nil
}

// control is what a control batch says.
type control int8

const (
	emptied control = iota // nothing: its marker was removed
	commit
	abort
	other // a control record that doesn't end a transaction
)

// control reads a control batch.
func (r *reader) control(b record.Batch, h record.Header) (control, error) {
	records, err := r.open(b, h)
	if err != nil {
		return emptied, err
	}
	kind := emptied
	if records.next() {
		m, ok, err := record.ParseEndTxnMarker(records.Record)
		switch {
		case err != nil:
			return emptied, fmt.Errorf("control record at offset %d: %w", h.BaseOffset, err)
		case !ok:
			kind = other
		case m.Commit:
			kind = commit
		default:
			kind = abort
		}
	}
	return kind, records.failure()
}
