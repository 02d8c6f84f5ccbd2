package zookeeper

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// item is an entry that is ready to be stored; it shares no memory with what it was made of.
type item struct {
	key    offsets.Key
	number int64  // the offset, of offsets
	value  []byte // the record; nil for a tombstone
}

// newItem encodes an entry.
func newItem(e offsets.Entry) (item, error) {
	it := item{key: e.Key}
	if _, err := offsets.AppendKey(nil, e.Key); err != nil {
		return item{}, err
	}
	if e.Tombstone() {
		return it, nil
	}
	var err error
	if it.value, err = offsets.AppendValue([]byte{}, e); err != nil {
		return item{}, err
	}
	if e.Kind == offsets.KindOffset {
		it.number = e.Offset.Offset
	}
	return it, nil
}

// text is what old readers find.
func (it item) text() []byte { return strconv.AppendInt(nil, it.number, 10) }

// encodePending is the data of a pending entry's node: the length of the key's record in four bytes, big endian, that record,
// and the value's, which a tombstone doesn't have.
func (it item) encodePending() ([]byte, error) {
	b, err := offsets.AppendKey(make([]byte, 4), it.key)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return append(b, it.value...), nil
}

// decodePending is the way back.
func decodePending(data []byte) (item, offsets.Entry, error) {
	fail := func(err error) (item, offsets.Entry, error) { return item{}, offsets.Entry{}, err }
	if len(data) < 4 || uint64(binary.BigEndian.Uint32(data)) > uint64(len(data)-4) {
		return fail(fmt.Errorf("%w: a pending entry of %d bytes", offsets.ErrCorrupt, len(data)))
	}
	n := 4 + int(binary.BigEndian.Uint32(data))
	var value []byte
	if len(data) > n {
		value = data[n:]
	}
	entry, known, err := offsets.Decode(data[4:n], value)
	if err != nil {
		return fail(err)
	}
	if !known {
		return fail(fmt.Errorf("%w: a pending entry with another kind of key", offsets.ErrUnsupported))
	}
	it, err := newItem(entry)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", offsets.ErrCorrupt, err))
	}
	return it, entry, nil
}
