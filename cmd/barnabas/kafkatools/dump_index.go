package kafkatools

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/core/log/inspect"
)

// beside is the path of another file of the same segment.
func beside(file, suffix string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + suffix
}

// batchEnds reads where each batch of a segment begins, and which is its last offset, up to the first that is damaged.
func batchEnds(file string) (at map[int64]inspect.Batch, order []inspect.Batch, err error) {
	s, err := inspect.OpenSegment(file)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	at = map[int64]inspect.Batch{}
	for b, err := range s.Batches() {
		if damage := new(inspect.Damage); errors.As(err, &damage) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		at[b.Position] = b
		order = append(order, b)
	}
	return at, order, nil
}

// offsetIndex prints an offset index, and finds entries that don't point at the batch with their offset. Of the zeros that a broker at
// work has at the end of its index, Kafka's tool takes one for an entry where there is no other.
func (d *dumper) offsetIndex(file string, base int64) error {
	b, err := inspect.ReadFile(file)
	if err != nil {
		return err
	}
	list, zeros, err := inspect.ReadOffsetIndex(b, base)
	if err != nil {
		return fmt.Errorf("Corrupt index found, index file (%s): %w", absolute(file), err) //nolint:staticcheck // Kafka's words
	}
	if len(list) == 0 {
		if zeros == 0 {
			d.print("%s is empty.\n", file)
			return nil
		}
		list = []inspect.OffsetEntry{{Offset: base}}
	}
	if d.has("index-sanity-check") {
		if last := list[len(list)-1]; zeros == 0 && last.Offset < base {
			return fmt.Errorf("Corrupt index found, index file (%s) has non-zero size but the last offset is %d which is less than the base offset %d", absolute(file), last.Offset, base) //nolint:staticcheck // Kafka's words
		}
		d.print("%s passed sanity check.\n", file)
		return nil
	}
	batches, _, err := batchEnds(beside(file, ".log"))
	if err != nil {
		return err
	}
	var wrong []string
	for _, e := range list {
		switch batch, ok := batches[e.Position]; {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("  Index offset: %d, log offset: none", e.Offset))
		case batch.LastOffset() != e.Offset:
			wrong = append(wrong, fmt.Sprintf("  Index offset: %d, log offset: %d", e.Offset, batch.LastOffset()))
		}
		if !d.has("verify-index-only") {
			d.print("offset: %d position: %d\n", e.Offset, e.Position)
		}
	}
	if len(wrong) > 0 {
		d.fault("Mismatches in :%s\n%s", absolute(file), strings.Join(wrong, "\n"))
	}
	return nil
}

// timeIndexOrder is what Kafka checks of a time index when it starts: that its end isn't before its beginning. The index of a broker at
// work fails, for it ends with zeros.
func timeIndexOrder(list []inspect.TimeEntry, zeros int, base int64) error {
	if len(list) == 0 {
		return nil
	}
	last := list[len(list)-1]
	if zeros > 0 {
		last = inspect.TimeEntry{Offset: base}
	}
	switch first := list[0].Timestamp; {
	case last.Timestamp < first:
		return fmt.Errorf("timestamp is %d which is less than the first timestamp %d", last.Timestamp, first)
	case last.Offset < base:
		return fmt.Errorf("offset is %d which is less than the first offset %d", last.Offset, base)
	}
	return nil
}

// timeIndex prints a time index, and finds entries whose time isn't that of the batch, or isn't later than the last.
func (d *dumper) timeIndex(file string, base int64) error {
	b, err := inspect.ReadFile(file)
	if err != nil {
		return err
	}
	list, zeros, err := inspect.ReadTimeIndex(b, base)
	if err != nil {
		return fmt.Errorf("Corrupt time index found, time index file (%s): %w", absolute(file), err) //nolint:staticcheck // Kafka's words
	}
	if len(list) == 0 && zeros > 0 {
		list = []inspect.TimeEntry{{Offset: base}}
	}
	if d.has("index-sanity-check") {
		if err := timeIndexOrder(list, zeros, base); err != nil {
			return fmt.Errorf("Corrupt time index found, time index file (%s) has non-zero size but the last %w", absolute(file), err) //nolint:staticcheck // Kafka's words
		}
		d.print("%s passed sanity check.\n", file)
		return nil
	}
	_, order, err := batchEnds(beside(file, ".log"))
	if err != nil {
		return err
	}
	before := int64(math.MinInt64)
	at := 0
	for _, e := range list {
		for at < len(order) && order[at].LastOffset() < e.Offset {
			at++
		}
		switch {
		case at == len(order):
			d.fault("The following indexed offsets are not found in the log.\nIndexed offset: %d, found log offset: -1", e.Offset)
		case order[at].LastOffset() != e.Offset:
			d.fault("The following indexed offsets are not found in the log.\nIndexed offset: %d, found log offset: %d", e.Offset, order[at].LastOffset())
		case order[at].MaxTimestamp != e.Timestamp:
			d.fault("Found timestamp mismatch in :%s\n  Index timestamp: %d, log timestamp: %d", absolute(file), e.Timestamp, order[at].MaxTimestamp)
		case before >= e.Timestamp:
			d.fault("Found out of order timestamp in :%s\n  Index timestamp: %d, Previously indexed timestamp: %d", absolute(file), e.Timestamp, before)
		}
		if !d.has("verify-index-only") {
			d.print("timestamp: %d offset: %d\n", e.Timestamp, e.Offset)
		}
		before = e.Timestamp
	}
	return nil
}
