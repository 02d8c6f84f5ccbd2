package pluginv1

import (
	"fmt"
	"math"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// NewEntry makes the message for an entry. offsets.ErrTooLarge when a string doesn't fit into the record format.
func NewEntry(e offsets.Entry) (*Entry, error) {
	key, err := offsets.AppendKey(nil, e.Key)
	if err != nil {
		return nil, err
	}
	if e.Tombstone() {
		return &Entry{Key: key, Tombstone: true}, nil
	}
	value, err := offsets.AppendValue(nil, e)
	if err != nil {
		return nil, err
	}
	return &Entry{Key: key, Value: value}, nil
}

// Parse gives the entry. known is false, without error, for a kind of record that isn't of this contract. The errors are
// those of [offsets.Decode].
func (x *Entry) Parse() (entry offsets.Entry, known bool, err error) {
	value := x.GetValue()
	switch {
	case x.GetTombstone() && len(value) > 0:
		return entry, false, fmt.Errorf("%w: a tombstone with a value", offsets.ErrCorrupt)
	case x.GetTombstone():
		value = nil
	case value == nil:
		value = []byte{} // not null: the wire doesn't tell the two apart
	}
	return offsets.Decode(x.GetKey(), value)
}

// NewEvent makes the message for something stored.
func NewEvent(e offsets.Event) (*Event, error) {
	x := &Event{InTransaction: e.Producer != offsets.None, ProducerId: e.Producer, Ended: End(e.Ended)}
	if e.Ended != offsets.NotEnded {
		return x, nil
	}
	var err error
	x.Entry, err = NewEntry(e.Entry)
	return x, err
}

// Parse gives what was stored. known is as in [Entry.Parse].
func (x *Event) Parse() (event offsets.Event, known bool, err error) {
	event.Producer = offsets.None
	if x.GetInTransaction() {
		event.Producer = x.GetProducerId()
	}
	if event.Ended, err = x.GetEnded().parse(); err != nil {
		return event, false, err
	}
	if event.Ended != offsets.NotEnded {
		return event, true, nil
	}
	event.Entry, known, err = x.GetEntry().Parse()
	return event, known, err
}

func (x End) parse() (offsets.End, error) {
	if x < End_END_NONE || x > End_END_ABORTED {
		return 0, fmt.Errorf("%w: end %d of a transaction", offsets.ErrCorrupt, x)
	}
	return offsets.End(x), nil
}

// NewWriteRequest makes the message for a batch. Errors are those of [NewEntry].
func NewWriteRequest(shard, epoch int32, b offsets.Batch) (*WriteRequest, error) {
	x := &WriteRequest{Shard: shard, Epoch: epoch, Timestamp: b.Timestamp, Ended: End(b.Ended), CoordinatorEpoch: b.CoordinatorEpoch}
	if b.Producer != nil {
		x.InTransaction, x.ProducerId, x.ProducerEpoch = true, b.Producer.ID, int32(b.Producer.Epoch)
	}
	for _, e := range b.Entries {
		entry, err := NewEntry(e)
		if err != nil {
			return nil, err
		}
		x.Entries = append(x.Entries, entry)
	}
	return x, nil
}

// Batch gives the batch of a write. The errors are those of [offsets.Decode].
func (x *WriteRequest) Batch() (b offsets.Batch, err error) {
	b = offsets.Batch{Timestamp: x.GetTimestamp(), CoordinatorEpoch: x.GetCoordinatorEpoch()}
	if b.Ended, err = x.GetEnded().parse(); err != nil {
		return b, err
	}
	if x.GetInTransaction() {
		if x.GetProducerEpoch() < math.MinInt16 || x.GetProducerEpoch() > math.MaxInt16 {
			return b, fmt.Errorf("%w: producer epoch %d", offsets.ErrCorrupt, x.GetProducerEpoch())
		}
		b.Producer = &offsets.Producer{ID: x.GetProducerId(), Epoch: int16(x.GetProducerEpoch())}
	}
	for _, e := range x.GetEntries() {
		entry, known, err := e.Parse()
		if err != nil {
			return b, err
		}
		if !known {
			return b, fmt.Errorf("%w: a record of an unknown kind", offsets.ErrUnsupported)
		}
		b.Entries = append(b.Entries, entry)
	}
	return b, nil
}
