package topic

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/record"
)

// loader turns the topic's batches into events.
type loader struct {
	codecs  record.Codecs
	visit   func(offsets.Event) error
	payload []byte // of a compressed batch
	foreign int    // records that aren't this contract's
}

func (l *loader) chunk(chunk []byte) error {
	for batch, err := range record.All(chunk) {
		if err == nil {
			err = record.CheckCRC(batch)
		}
		if err == nil {
			err = l.batch(batch)
		}
		if err != nil {
			return fromRecord(err)
		}
	}
	return nil
}

// fromRecord gives what is wrong with a batch the contract's error.
func fromRecord(err error) error {
	if errors.Is(err, record.ErrCorrupt) || errors.Is(err, record.ErrShort) {
		return fmt.Errorf("%w: %w", offsets.ErrCorrupt, err)
	}
	return err
}

func (l *loader) batch(b record.Batch) (err error) {
	h := b.Header()
	payload := b.Records()
	if h.Attributes.Codec() != record.None {
		if l.codecs == nil {
			return fmt.Errorf("%w: batch at offset %d is compressed with %s, and there is nothing to decompress it with",
				offsets.ErrCorrupt, h.BaseOffset, h.Attributes.Codec())
		}
		if payload, err = b.Payload(l.codecs, l.payload, record.DefaultPayloadLimit); err != nil {
			return fmt.Errorf("batch at offset %d: %w", h.BaseOffset, err)
		}
		l.payload = payload
	}
	it := record.Iterate(h, payload)
	for it.Next() {
		if h.Attributes.Control() {
			err = l.control(h, it.Record)
		} else {
			err = l.record(h, it.Record)
		}
		if err != nil {
			return fmt.Errorf("record at offset %d: %w", it.Record.Offset, err)
		}
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("batch at offset %d: %w", h.BaseOffset, err)
	}
	return nil
}

func (l *loader) control(h record.Header, r record.Record) error {
	marker, ok, err := record.ParseEndTxnMarker(r)
	if err != nil || !ok {
		return err
	}
	ended := offsets.Aborted
	if marker.Commit {
		ended = offsets.Committed
	}
	return l.visit(offsets.Event{Producer: h.ProducerID, Ended: ended})
}

func (l *loader) record(h record.Header, r record.Record) error {
	if r.Key == nil {
		l.foreign++
		return nil
	}
	entry, known, err := offsets.Decode(r.Key, r.Value)
	if err != nil {
		return err
	}
	if !known {
		l.foreign++
		return nil
	}
	event := offsets.Event{Entry: entry, Producer: offsets.None}
	if h.Attributes.Transactional() {
		event.Producer = h.ProducerID
	}
	return l.visit(event)
}
