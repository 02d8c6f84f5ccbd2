package record

import (
	"encoding/binary"
	"math"
)

const (
	// HeaderSize is the number of bytes of a format 2 batch before its records.
	HeaderSize = 61

	// LogOverhead is the number of bytes of a batch that its length field does
	// not count: the base offset and the length field itself.
	LogOverhead = 12

	// Magic is the format number of the batches this package writes.
	Magic = 2
)

// Where the fields of a format 2 batch lie, as in Kafka's DefaultRecordBatch.
const (
	atBaseOffset      = 0
	atLength          = 8
	atLeaderEpoch     = 12
	atMagic           = 16
	atCRC             = 17
	atAttributes      = 21 // the checksum covers everything from here on
	atLastOffsetDelta = 23
	atBaseTimestamp   = 27
	atMaxTimestamp    = 35
	atProducerID      = 43
	atProducerEpoch   = 51
	atBaseSequence    = 53
	atCount           = 57
)

// What stands in a batch's header for "there is none".
const (
	NoTimestamp     int64 = -1
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
	NoLeaderEpoch   int32 = -1
)

// Attributes are the flags of a batch.
type Attributes int16

// The bits of Attributes above the codec.
const (
	codecMask         Attributes = 0x07
	AttrLogAppendTime Attributes = 1 << 3
	AttrTransactional Attributes = 1 << 4
	AttrControl       Attributes = 1 << 5
	AttrDeleteHorizon Attributes = 1 << 6
)

// Codec is the compression of the records. It may be a number that no codec
// has: see [Codec.Valid].
func (a Attributes) Codec() Codec { return Codec(a & codecMask) }

// LogAppendTime reports whether all records bear the time of the append, which
// is the header's MaxTimestamp, instead of the producer's (KIP-32).
func (a Attributes) LogAppendTime() bool { return a&AttrLogAppendTime != 0 }

// Transactional reports whether the batch belongs to a transaction (KIP-98).
func (a Attributes) Transactional() bool { return a&AttrTransactional != 0 }

// Control reports whether the batch holds a marker for the log's readers, such
// as the end of a transaction, instead of records for an application (KIP-98).
func (a Attributes) Control() bool { return a&AttrControl != 0 }

// DeleteHorizon reports whether BaseTimestamp is the time from which compaction
// may drop the tombstones or markers of this batch (KIP-534). The timestamps
// of its records are still relative to BaseTimestamp.
func (a Attributes) DeleteHorizon() bool { return a&AttrDeleteHorizon != 0 }

// Header is the fixed part of a format 2 batch. Timestamps are milliseconds
// since 1970, UTC.
type Header struct {
	BaseOffset      int64
	Length          int32 // bytes that follow the length field
	LeaderEpoch     int32
	Magic           int8
	CRC             uint32 // CRC-32C of everything from Attributes on
	Attributes      Attributes
	LastOffsetDelta int32
	BaseTimestamp   int64
	MaxTimestamp    int64
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32
}

// ParseHeader reads the header at the start of b. It allocates only for errors.
//
// ErrShort means that b has fewer than HeaderSize bytes; that the records are
// there as well is not checked. ErrCorrupt means that the magic byte is not 2
// (ErrLegacy for 0 and 1) or that the length is one no batch can have. Neither
// the checksum nor any relation between the fields is checked.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		// The format is told apart even when a short message of format 0 or 1
		// has fewer bytes than a format 2 header.
		if len(b) > atMagic && (b[atMagic] == 0 || b[atMagic] == 1) {
			return Header{}, ErrLegacy
		}
		return Header{}, ErrShort
	}
	b = b[:HeaderSize]
	h := Header{
		BaseOffset:      int64(binary.BigEndian.Uint64(b[atBaseOffset:])),
		Length:          int32(binary.BigEndian.Uint32(b[atLength:])),
		LeaderEpoch:     int32(binary.BigEndian.Uint32(b[atLeaderEpoch:])),
		Magic:           int8(b[atMagic]),
		CRC:             binary.BigEndian.Uint32(b[atCRC:]),
		Attributes:      Attributes(binary.BigEndian.Uint16(b[atAttributes:])),
		LastOffsetDelta: int32(binary.BigEndian.Uint32(b[atLastOffsetDelta:])),
		BaseTimestamp:   int64(binary.BigEndian.Uint64(b[atBaseTimestamp:])),
		MaxTimestamp:    int64(binary.BigEndian.Uint64(b[atMaxTimestamp:])),
		ProducerID:      int64(binary.BigEndian.Uint64(b[atProducerID:])),
		ProducerEpoch:   int16(binary.BigEndian.Uint16(b[atProducerEpoch:])),
		BaseSequence:    int32(binary.BigEndian.Uint32(b[atBaseSequence:])),
		Count:           int32(binary.BigEndian.Uint32(b[atCount:])),
	}
	switch {
	case h.Magic == 0 || h.Magic == 1:
		return Header{}, ErrLegacy
	case h.Magic != Magic:
		return Header{}, corrupt("magic byte %d", h.Magic)
	case h.Length < HeaderSize-LogOverhead:
		return Header{}, corrupt("batch length %d is less than a header", h.Length)
	case h.Length > math.MaxInt32-LogOverhead:
		return Header{}, corrupt("batch length %d is more than a batch can have", h.Length)
	}
	return h, nil
}

// Put writes the header into the first HeaderSize bytes of b, checksum and
// length as they stand in h. It panics when b is shorter.
func (h Header) Put(b []byte) {
	b = b[:HeaderSize]
	binary.BigEndian.PutUint64(b[atBaseOffset:], uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[atLength:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[atLeaderEpoch:], uint32(h.LeaderEpoch))
	b[atMagic] = byte(h.Magic)
	binary.BigEndian.PutUint32(b[atCRC:], h.CRC)
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[atLastOffsetDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[atProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[atProducerEpoch:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[atBaseSequence:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[atCount:], uint32(h.Count))
}

// Size is the number of bytes of the whole batch, header included.
func (h Header) Size() int { return LogOverhead + int(h.Length) }

// LastOffset is the offset of the batch's last record, or where that was
// before compaction removed it.
func (h Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// LastSequence is the sequence number of the last record, which wraps from
// 2147483647 to 0; NoSequence when the batch has none.
func (h Header) LastSequence() int32 {
	if h.BaseSequence == NoSequence {
		return NoSequence
	}
	return AddSequence(h.BaseSequence, h.LastOffsetDelta)
}

// DeleteHorizonMs returns the time from which compaction may drop this batch's
// tombstones or markers, and whether the batch has such a time at all.
func (h Header) DeleteHorizonMs() (int64, bool) {
	if !h.Attributes.DeleteHorizon() {
		return NoTimestamp, false
	}
	return h.BaseTimestamp, true
}

// AddSequence returns the sequence number n places after seq, modulo 2^31.
func AddSequence(seq, n int32) int32 { return int32((uint32(seq) + uint32(n)) & 0x7fffffff) }
