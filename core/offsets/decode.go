package offsets

import (
	"encoding/binary"
	"fmt"
)

// Decode reads the key and value of a record of Kafka's `__consumer_offsets`, all versions of both kinds that Kafka ever
// wrote: keys 0 to 2, offsets 0 to 4, groups 0 to 4. A null value (nil) makes a tombstone. What it returns shares no memory
// with the record.
//
// known is false, without error, for keys of other versions, which belong to newer kinds of groups. ErrUnsupported for a
// value of a version that isn't known; ErrCorrupt for bytes that make no sense, with known telling whether the key did.
func Decode(key, value []byte) (entry Entry, known bool, err error) {
	d := decoder{b: key}
	switch v := d.int16(); {
	case d.bad:
	case v == 0 || v == 1:
		entry.Key = OffsetKey(d.str(), d.str(), d.int32())
	case v == groupKeyVersion:
		entry.Key = GroupKey(d.str())
	default:
		return Entry{}, false, nil
	}
	if d.bad || len(d.b) > 0 {
		return Entry{}, false, fmt.Errorf("%w: key of %d bytes", ErrCorrupt, len(key))
	}
	if value == nil {
		return entry, true, nil
	}
	d = decoder{b: value}
	v := d.int16()
	switch {
	case d.bad:
	case v < 0 || entry.Kind == KindOffset && v > offsetVersionFlex || entry.Kind == KindGroup && v > groupVersionFlex:
		return entry, true, fmt.Errorf("%w: value version %d of group %q", ErrUnsupported, v, entry.Group)
	case entry.Kind == KindOffset:
		d.flexible = v >= offsetVersionFlex
		entry.Offset = d.offset(v)
	default:
		d.flexible = v >= groupVersionFlex
		entry.Meta = d.group(v)
	}
	if d.bad {
		return Entry{Key: entry.Key}, true, fmt.Errorf("%w: value of %d bytes of group %q", ErrCorrupt, len(value), entry.Group)
	}
	return entry, true, nil
}

// decoder takes fields off the front of b. Once a field is missing or lies about its length, bad is set and everything
// reads as zero. Bytes behind the last field of a value are ignored, as Kafka does.
type decoder struct {
	b        []byte
	flexible bool // compact lengths and tagged fields (KIP-482)
	bad      bool
}

func (d *decoder) offset(version int16) *Offset {
	o := &Offset{LeaderEpoch: None, ExpireTimestamp: None}
	o.Offset = d.int64()
	if version >= 3 {
		o.LeaderEpoch = d.int32()
	}
	o.Metadata = d.str()
	o.CommitTimestamp = d.int64()
	if version == offsetVersionExp {
		o.ExpireTimestamp = d.int64()
	}
	d.tags()
	return o
}

func (d *decoder) group(version int16) *Group {
	g := &Group{StateTimestamp: None}
	g.ProtocolType = d.str()
	g.Generation = d.int32()
	g.Protocol = d.nullable()
	g.Leader = d.nullable()
	if version >= 2 {
		g.StateTimestamp = d.int64()
	}
	n := d.arrayLen()
	for range n {
		m := d.member(version)
		if d.bad {
			return nil
		}
		g.Members = append(g.Members, m)
	}
	d.tags()
	return g
}

func (d *decoder) member(version int16) (m Member) {
	m.ID = d.str()
	if version >= 3 {
		m.InstanceID = d.nullable()
	}
	m.ClientID = d.str()
	m.ClientHost = d.str()
	if version >= 1 {
		m.RebalanceTimeout = d.int32()
	}
	m.SessionTimeout = d.int32()
	if version == 0 {
		m.RebalanceTimeout = m.SessionTimeout
	}
	m.Subscription = d.bytes()
	m.Assignment = d.bytes()
	d.tags()
	return m
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) int16() int16 {
	if b := d.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// uvarint reads an unsigned varint of at most 32 bits.
func (d *decoder) uvarint() int {
	v, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 || v > 1<<31 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return int(v)
}

// length reads the length of a string, of bytes or of an array: -1 is null.
func (d *decoder) length(short bool) int {
	switch {
	case d.flexible:
		return d.uvarint() - 1
	case short:
		return int(d.int16())
	}
	return int(d.int32())
}

func (d *decoder) str() string {
	n := d.length(true)
	return string(d.take(n)) // null where the format has no null is an error
}

func (d *decoder) nullable() *string {
	n := d.length(true)
	if n == -1 || d.bad {
		return nil
	}
	s := string(d.take(n))
	return &s
}

func (d *decoder) bytes() []byte {
	b := d.take(d.length(false))
	return append(make([]byte, 0, len(b)), b...)
}

// arrayLen reads the length of an array whose elements have at least 12 bytes each, so that a lie is seen at once.
func (d *decoder) arrayLen() int {
	n := d.length(false)
	if n < 0 || n > len(d.b) {
		d.bad = true
		return 0
	}
	return n
}

// tags passes over the tagged fields at the end of a structure.
func (d *decoder) tags() {
	if !d.flexible {
		return
	}
	for range d.uvarint() {
		d.uvarint()
		d.take(d.uvarint())
		if d.bad {
			return
		}
	}
}
