package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// entry is a batch of format 2 or a message of format 0 or 1, whole: offset,
// length, and what the length counts.
type entry []byte

const (
	// minLegacySize is the least length a message of format 0 can have:
	// checksum, magic byte, attributes, and the lengths of key and value.
	minLegacySize = 14

	magicEnd = atMagic + 1
)

// nextAny splits the first batch or message off a set of any format, as
// Kafka's ByteBufferLogInputStream does: nil when b ends before it is
// complete, ErrCorrupt for a length or magic byte that no format has, and
// ErrUnreadable for a length that overflows.
func nextAny(b []byte) (first entry, rest []byte, err error) {
	if len(b) < LogOverhead {
		return nil, nil, nil
	}
	length := int32(binary.BigEndian.Uint32(b[atLength:]))
	switch {
	case length < minLegacySize:
		return nil, nil, corrupt("message length %d", length)
	case length > math.MaxInt32-LogOverhead:
		return nil, nil, fmt.Errorf("%w: message length %d", ErrUnreadable, length)
	}
	if len(b) < magicEnd {
		return nil, nil, nil
	}
	if magic := int8(b[atMagic]); magic < 0 || magic > Magic {
		return nil, nil, corrupt("magic byte %d", magic)
	}
	if int64(len(b)) < LogOverhead+int64(length) {
		return nil, nil, nil
	}
	n := LogOverhead + int(length)
	return entry(b[:n:n]), b[n:], nil
}

func (e entry) magic() byte { return e[atMagic] }

func (e entry) offset() int64 { return int64(binary.BigEndian.Uint64(e)) }

// codec may be one that does not exist.
func (e entry) codec() Codec {
	if e.magic() == Magic {
		if len(e) < HeaderSize {
			return None // refused later, for its length
		}
		return Attributes(binary.BigEndian.Uint16(e[atAttributes:])).Codec()
	}
	return Codec(e[legacyAttributes]) & Codec(codecMask)
}

// check tells whether the entry is what its sender wrote: ErrCorrupt when its
// length cannot hold its fields, or the checksum does not match.
func (e entry) check() error {
	if e.magic() != Magic {
		return e.checkLegacy()
	}
	if _, err := e.header(); err != nil {
		return err
	}
	return CheckCRC(e)
}

// header parses the header of a format 2 batch. Since the entry is whole, one
// that is too short for it is corrupt.
func (e entry) header() (Header, error) {
	if len(e) < HeaderSize {
		return Header{}, corrupt("batch of %d bytes", len(e))
	}
	return ParseHeader(e)
}
