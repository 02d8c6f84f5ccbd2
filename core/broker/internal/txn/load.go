package txn

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/core/record"
)

// loader gathers what the log of a shard says: the last record of each transactional id.
type loader struct {
	codecs  record.Codecs
	records map[string]Record
}

// chunk takes whole batches.
func (l *loader) chunk(chunk []byte) error {
	for b, err := range record.All(chunk) {
		if err == nil {
			err = record.CheckCRC(b)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if b.Header().Attributes.Control() {
			continue
		}
		for r, err := range b.Each(l.codecs, record.DefaultPayloadLimit) {
			if err == nil {
				err = l.record(r)
			}
			if err != nil {
				return fmt.Errorf("offset %d: %w", b.Header().BaseOffset, err)
			}
		}
	}
	return nil
}

func (l *loader) record(r record.Record) error {
	id, ok, err := ParseKey(r.Key)
	if err != nil || !ok {
		return err
	}
	if r.Value == nil {
		delete(l.records, id)
		return nil
	}
	v, err := ParseValue(r.Value)
	if err != nil {
		return fmt.Errorf("transactional id %q: %w", id, err)
	}
	if v.State == Dead {
		delete(l.records, id)
		return nil
	}
	l.records[id] = v
	return nil
}
