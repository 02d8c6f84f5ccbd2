package topic

import (
	"errors"
	"testing"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/record"
)

// FuzzLoad gives the loader batches with any record in them, and any bytes at all: it says what is wrong, and nothing worse.
func FuzzLoad(f *testing.F) {
	key, err := offsets.AppendKey(nil, offsets.OffsetKey("g", "t", 1))
	if err != nil {
		f.Fatal(err)
	}
	value, err := offsets.AppendValue(nil, offsets.Entry{Key: offsets.OffsetKey("g", "t", 1), Offset: &offsets.Offset{Offset: 1, ExpireTimestamp: offsets.None}})
	if err != nil {
		f.Fatal(err)
	}
	marker := record.EndTxnMarker{Commit: true}.Record(0, 0)
	f.Add(key, value, false, false, []byte(nil))
	f.Add(key, value, true, false, []byte{1})
	f.Add(marker.Key, marker.Value, true, true, []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte, transactional, control bool, behind []byte) {
		o := record.Options{Transactional: transactional, Control: control}
		if transactional {
			o.Producer = &record.Producer{ID: 5, Sequence: record.NoSequence}
		}
		b := record.NewBuilder(o)
		if err := b.Append(record.Record{Key: key, Value: value}); err != nil {
			return
		}
		chunk, err := b.Build(nil, nil)
		if err != nil {
			return
		}
		events := 0
		l := loader{visit: func(e offsets.Event) error {
			events++
			if (e.Ended != offsets.NotEnded) != control || transactional && e.Producer != 5 {
				t.Fatalf("event %+v of a batch that is transactional %v, control %v", e, transactional, control)
			}
			return nil
		}}
		err = l.chunk(append(chunk, behind...))
		if err != nil && !errors.Is(err, offsets.ErrCorrupt) && !errors.Is(err, offsets.ErrUnsupported) {
			t.Fatal(err)
		}
		if events > 1 && len(behind) == 0 {
			t.Fatalf("%d events of one record", events)
		}
	})
}
