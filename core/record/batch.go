package record

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
)

// castagnoli never changes; hash/crc32 keeps one table of its own behind it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is one whole format 2 batch, in place: a slice of the bytes it was
// found in. Batches come from [Next], [All], a [Builder] or a [Validator], which
// make sure
// that the header is one that ParseHeader accepts and that len(b) is the
// header's Size.
type Batch []byte

// Header returns the batch's header. It is read anew at each call.
func (b Batch) Header() Header {
	h, err := ParseHeader(b)
	if err != nil {
		panic("record: Batch made from bytes that are no batch: " + err.Error())
	}
	return h
}

// Records returns the bytes behind the header, compressed as they are.
func (b Batch) Records() []byte { return b[HeaderSize:] }

// Next splits off the first batch of b. The batch is capped, so that appending
// to it never writes into what follows. It allocates only for errors: ErrShort
// when b ends before the batch does (also when b is empty), ErrCorrupt as
// ParseHeader has it.
func Next(b []byte) (first Batch, rest []byte, err error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, nil, err
	}
	n := h.Size()
	if len(b) < n {
		return nil, nil, ErrShort
	}
	return Batch(b[:n:n]), b[n:], nil
}

// All walks the batches of b, in place. Bytes that are no batch end the walk
// with an error and a nil batch; a partial batch at the end gives ErrShort.
func All(b []byte) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for len(b) > 0 {
			first, rest, err := Next(b)
			if !yield(first, err) || err != nil {
				return
			}
			b = rest
		}
	}
}

// Checksum is the CRC-32C that belongs into the batch's header.
func Checksum(batch []byte) uint32 { return crc32.Checksum(batch[atAttributes:], castagnoli) }

// CheckCRC compares the checksum of one whole batch with its bytes. ErrShort
// when there is no header, ErrCorrupt when they do not match.
func CheckCRC(batch []byte) error {
	if len(batch) < HeaderSize {
		return ErrShort
	}
	want := binary.BigEndian.Uint32(batch[atCRC:])
	if got := Checksum(batch); got != want {
		return corrupt("checksum is %08x, the bytes have %08x", want, got)
	}
	return nil
}

// SetCRC makes the checksum of one whole batch right.
func SetCRC(batch []byte) { binary.BigEndian.PutUint32(batch[atCRC:], Checksum(batch)) }

// SetBaseOffset stamps the offset of the first record, which the checksum does
// not cover.
func SetBaseOffset(batch []byte, off int64) {
	binary.BigEndian.PutUint64(batch[atBaseOffset:], uint64(off))
}

// SetLeaderEpoch stamps the epoch of the leader that appends the batch, which
// the checksum does not cover.
func SetLeaderEpoch(batch []byte, e int32) {
	binary.BigEndian.PutUint32(batch[atLeaderEpoch:], uint32(e))
}

// SetMaxTimestamp sets the timestamp type and the largest timestamp of one
// whole batch, and the checksum that follows from them. With logAppendTime, ts
// is the timestamp of all its records. Nothing is written when both are
// already so.
func SetMaxTimestamp(batch []byte, logAppendTime bool, ts int64) {
	old := Attributes(binary.BigEndian.Uint16(batch[atAttributes:]))
	attrs := old &^ AttrLogAppendTime
	if logAppendTime {
		attrs |= AttrLogAppendTime
	}
	if attrs == old && int64(binary.BigEndian.Uint64(batch[atMaxTimestamp:])) == ts {
		return
	}
	binary.BigEndian.PutUint16(batch[atAttributes:], uint16(attrs))
	binary.BigEndian.PutUint64(batch[atMaxTimestamp:], uint64(ts))
	SetCRC(batch)
}
