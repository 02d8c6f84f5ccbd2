package api

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"
)

// What is decoded and encoded by hand: Produce and Fetch. The primitives are those of Kafka's protocol guide; "compact" are
// the ones of flexible versions (KIP-482).

var errMalformed = errors.New("malformed body")

// maxItems is how many topics and partitions, all counted, one Produce or Fetch request may have. What is kept of an item may
// be some thirty times as large as its bytes, so there has to be a bound below that of the frame.
const maxItems = 1 << 20

// decoder reads primitives off a body. After the first one that isn't there bad is set, and everything reads as zero.
type decoder struct {
	b        []byte
	flexible bool
	bad      bool
	items    int
}

func (d *decoder) fail() {
	d.bad, d.b = true, nil
}

// take reads n bytes, in place.
func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) int8() int8 {
	if len(d.b) < 1 {
		d.fail()
		return 0
	}
	v := int8(d.b[0])
	d.b = d.b[1:]
	return v
}

func (d *decoder) int16() int16 {
	if len(d.b) < 2 {
		d.fail()
		return 0
	}
	v := int16(binary.BigEndian.Uint16(d.b))
	d.b = d.b[2:]
	return v
}

func (d *decoder) int32() int32 {
	if len(d.b) < 4 {
		d.fail()
		return 0
	}
	v := int32(binary.BigEndian.Uint32(d.b))
	d.b = d.b[4:]
	return v
}

func (d *decoder) int64() int64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := int64(binary.BigEndian.Uint64(d.b))
	d.b = d.b[8:]
	return v
}

func (d *decoder) uuid() (id [16]byte) {
	copy(id[:], d.take(16))
	return id
}

func (d *decoder) uvarint() uint32 {
	v, n := binary.Uvarint(d.b[:min(len(d.b), binary.MaxVarintLen32)])
	if n <= 0 || v > math.MaxUint32 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return uint32(v)
}

// compactLen reads the length of something compact, -1 for null.
func (d *decoder) compactLen() int { return int(int32(d.uvarint())) - 1 }

// string reads a string that may not be null, in place.
func (d *decoder) string() []byte {
	s, ok := d.nullableString()
	if !ok {
		d.fail()
	}
	return s
}

// nullableString reads a string that may be null, in place; false when it is.
func (d *decoder) nullableString() ([]byte, bool) {
	var n int
	if d.flexible {
		n = d.compactLen()
	} else {
		n = int(d.int16())
	}
	switch {
	case n < 0:
		return nil, false
	case n > math.MaxInt16:
		d.fail()
		return nil, false
	}
	return d.take(n), true
}

// nullableBytes reads bytes that may be null, in place; nil when they are, and never nil when they are not.
func (d *decoder) nullableBytes() []byte {
	var n int
	if d.flexible {
		n = d.compactLen()
	} else {
		n = int(d.int32())
	}
	if n < 0 {
		return nil
	}
	return d.take(n)
}

// arrayLen reads the length of an array that may not be null and whose items have at least size bytes each.
func (d *decoder) arrayLen(size int) int {
	var n int
	if d.flexible {
		n = d.compactLen()
	} else {
		n = int(d.int32())
	}
	if d.items += max(n, 0); n < 0 || n > len(d.b)/size || d.items > maxItems {
		d.fail()
		return 0
	}
	return n
}

// tagCount reads how many tagged fields follow, each to be read with tag.
func (d *decoder) tagCount() uint32 {
	if !d.flexible {
		return 0
	}
	return d.uvarint()
}

// tag reads a tagged field: its number, and a decoder of its value.
func (d *decoder) tag() (uint32, decoder) {
	tag := d.uvarint()
	return tag, decoder{b: d.take(int(int32(d.uvarint()))), flexible: true}
}

// tagged ends the value of a tagged field that is known: it must have been read to its end, and be what it should.
func (d *decoder) tagged(value *decoder) {
	if value.bad || len(value.b) > 0 {
		d.fail()
	}
}

// skipTags reads tagged fields of which none is known.
func (d *decoder) skipTags() {
	for n := d.tagCount(); n > 0 && !d.bad; n-- {
		d.tag()
	}
}

// borrow makes a string of bytes that belong to a frame, without copying them. It is for looking something up only: the
// string is gone with the frame.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }
func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }
func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// appendArrayLen appends the length of an array or, in flexible versions, of bytes; -1 stands for null.
func appendArrayLen(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(dst, uint64(n+1))
	}
	return appendInt32(dst, int32(n))
}

func appendString[S string | []byte](dst []byte, s S, flexible bool) []byte {
	if flexible {
		dst = binary.AppendUvarint(dst, uint64(len(s)+1))
	} else {
		dst = appendInt16(dst, int16(len(s)))
	}
	return append(dst, s...)
}

// appendNullableString appends s, and null for the empty string.
func appendNullableString(dst []byte, s string, flexible bool) []byte {
	switch {
	case s != "":
		return appendString(dst, s, flexible)
	case flexible:
		return append(dst, 0)
	}
	return appendInt16(dst, -1)
}

// appendTag appends one tagged field of at most 127 bytes, as body appends it.
func appendTag(dst []byte, tag byte, body func([]byte) []byte) []byte {
	dst = append(dst, tag, 0)
	at := len(dst)
	dst = body(dst)
	dst[at-1] = byte(len(dst) - at)
	return dst
}
