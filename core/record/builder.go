package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Producer is what an idempotent or transactional producer stamps on a batch.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // of the first record
}

// Options are the properties of a batch that a Builder makes. The zero value
// is a plain batch without compression, from offset 0, leader epoch 0.
type Options struct {
	BaseOffset  int64
	LeaderEpoch int32
	Codec       Codec
	Level       int       // as in Codecs.Compress
	Producer    *Producer // nil for none

	Transactional bool
	Control       bool // markers, see EndTxnMarker; never compressed

	// AppendTime, when set, is the timestamp of all records (LogAppendTime).
	AppendTime *int64

	// DeleteHorizon, when set, is the time from which compaction may drop the
	// batch's tombstones or markers (KIP-534).
	DeleteHorizon *int64

	// LastOffset, when set, is kept as the batch's last offset although its
	// last record may lie before it: compaction must not move the end.
	LastOffset *int64
}

// OptionsOf returns the options of a batch that keeps everything of the batch
// with header h but its records: compaction builds anew what it thins out.
func OptionsOf(h Header) Options {
	o := Options{BaseOffset: h.BaseOffset, LeaderEpoch: h.LeaderEpoch, Codec: h.Attributes.Codec(),
		Transactional: h.Attributes.Transactional(), Control: h.Attributes.Control()}
	if h.ProducerID != NoProducerID || h.ProducerEpoch != NoProducerEpoch || h.BaseSequence != NoSequence {
		o.Producer = &Producer{h.ProducerID, h.ProducerEpoch, h.BaseSequence}
	}
	if h.Attributes.LogAppendTime() {
		o.AppendTime = &h.MaxTimestamp
	}
	if h.Attributes.DeleteHorizon() {
		o.DeleteHorizon = &h.BaseTimestamp
	}
	last := h.LastOffset()
	o.LastOffset = &last
	return o
}

// Builder encodes records into one batch. It is used by one goroutine at a
// time, for any number of batches: Reset, Append…, Build. Its memory is reused.
type Builder struct {
	o       Options
	payload []byte
	count   int32
	base    int64 // base timestamp
	max     int64
	last    int64 // offset of the last record

	maxIndex int32 // of the first record with timestamp max
}

// NewBuilder returns a builder for a batch with these options.
func NewBuilder(o Options) *Builder {
	b := &Builder{}
	b.Reset(o)
	return b
}

// Reset forgets all records and starts a batch with these options.
func (b *Builder) Reset(o Options) {
	*b = Builder{o: o, payload: b.payload[:0], base: NoTimestamp, max: NoTimestamp, last: o.BaseOffset - 1}
	if o.DeleteHorizon != nil {
		b.base = *o.DeleteHorizon
	}
}

// Count is the number of records appended since Reset.
func (b *Builder) Count() int { return int(b.count) }

// Size is the number of bytes that the batch would have now, uncompressed.
func (b *Builder) Size() int { return HeaderSize + len(b.payload) }

// Append adds a record: its Offset, Timestamp, Key, Value and headers, which
// are copied. Offsets are absolute and must rise. The error says that they do
// not, or that the batch spans more than a batch can; then nothing was added.
func (b *Builder) Append(r Record) error {
	delta := r.Offset - b.o.BaseOffset
	switch {
	case r.Offset <= b.last:
		return fmt.Errorf("record offset %d does not follow %d", r.Offset, b.last)
	case delta > math.MaxInt32:
		return fmt.Errorf("record offset %d is too far from the batch's first, %d", r.Offset, b.o.BaseOffset)
	}
	base := b.base
	if b.count == 0 && b.o.DeleteHorizon == nil {
		base = r.Timestamp
	}
	raw := rawRecord{timestampDelta: r.Timestamp - base, offsetDelta: int32(delta), key: r.Key, value: r.Value,
		headers: r.headers, headerCount: r.headerCount}
	size := raw.size()
	if size > math.MaxInt32-len(b.payload)-HeaderSize {
		return fmt.Errorf("record of %d bytes does not fit into a batch that has %d", size, b.Size())
	}
	b.payload = raw.append(b.payload, size)
	if r.Timestamp > b.max {
		b.max, b.maxIndex = r.Timestamp, b.count
	}
	b.count++
	b.base, b.last = base, r.Offset
	return nil
}

// Build appends the batch to dst, checksum and all, compressing its records
// with c, which may be nil for a batch that is not compressed. A batch without
// records is built only when Options.LastOffset says which offsets it spans.
func (b *Builder) Build(dst []byte, c Codecs) ([]byte, error) {
	if b.count == 0 && b.o.LastOffset == nil {
		return dst, fmt.Errorf("a batch needs a record")
	}
	h := Header{
		BaseOffset: b.o.BaseOffset, LeaderEpoch: b.o.LeaderEpoch, Magic: Magic,
		BaseTimestamp: b.base, MaxTimestamp: b.max,
		ProducerID: NoProducerID, ProducerEpoch: NoProducerEpoch, BaseSequence: NoSequence, Count: b.count,
	}
	if p := b.o.Producer; p != nil {
		h.ProducerID, h.ProducerEpoch, h.BaseSequence = p.ID, p.Epoch, p.Sequence
	}
	last := b.last
	if b.o.LastOffset != nil {
		last = *b.o.LastOffset
	}
	if last < b.last || last < b.o.BaseOffset-1 || last-b.o.BaseOffset > math.MaxInt32 {
		return dst, fmt.Errorf("last offset %d does not fit a batch from %d whose last record is at %d", last, b.o.BaseOffset, b.last)
	}
	h.LastOffsetDelta = int32(last - b.o.BaseOffset)
	if b.o.Transactional {
		h.Attributes |= AttrTransactional
	}
	if b.o.Control {
		h.Attributes |= AttrControl
	}
	if b.o.DeleteHorizon != nil {
		h.Attributes |= AttrDeleteHorizon
	}
	if b.o.AppendTime != nil {
		h.Attributes |= AttrLogAppendTime
		h.MaxTimestamp = *b.o.AppendTime
	}
	codec := b.o.Codec
	if b.o.Control || b.count == 0 {
		codec = None
	}
	return appendBatch(dst, h, codec, b.o.Level, b.payload, c)
}

// appendBatch appends header and payload to dst: h with the codec, the length
// and the checksum that follow from them.
func appendBatch(dst []byte, h Header, codec Codec, level int, payload []byte, c Codecs) ([]byte, error) {
	start := len(dst)
	out := append(dst, make([]byte, HeaderSize)...)
	if codec == None {
		out = append(out, payload...)
	} else {
		var err error
		if out, err = c.Compress(codec, level, out, payload); err != nil {
			return dst, fmt.Errorf("compress a batch with %s: %w", codec, err)
		}
	}
	size := len(out) - start
	if size > math.MaxInt32 {
		return dst, fmt.Errorf("%w: %d bytes are more than the format allows", ErrTooLarge, size)
	}
	h.Attributes |= Attributes(codec)
	h.Length = int32(size - LogOverhead)
	h.Put(out[start:])
	SetCRC(out[start:])
	return out, nil
}

// AppendEmpty appends to dst what compaction leaves of a batch whose records
// are all gone, but whose producer state must stay: its header, without
// records. Offsets, sequence, producer, leader epoch, largest timestamp, and
// the flags but for codec and delete horizon are those of h.
func AppendEmpty(dst []byte, h Header) []byte {
	h.Attributes &= AttrLogAppendTime | AttrTransactional | AttrControl
	h.Magic = Magic
	h.Count = 0
	h.BaseTimestamp = NoTimestamp
	out, _ := appendBatch(dst, h, None, 0, nil, nil) // cannot fail without a codec
	return out
}

// size is the number of bytes behind the record's length field.
func (r *rawRecord) size() int {
	return 1 + sizeVarint(r.timestampDelta) + sizeVarint(int64(r.offsetDelta)) +
		sizeNullable(r.key) + sizeNullable(r.value) + sizeVarint(int64(r.headerCount)) + len(r.headers)
}

func (r *rawRecord) append(b []byte, size int) []byte {
	b = appendVarint(b, int64(size))
	b = append(b, byte(r.attributes))
	b = appendVarint(b, r.timestampDelta)
	b = appendVarint(b, int64(r.offsetDelta))
	b = appendNullable(b, r.key)
	b = appendNullable(b, r.value)
	b = appendVarint(b, int64(r.headerCount))
	return append(b, r.headers...)
}

func appendNullable(b, v []byte) []byte {
	if v == nil {
		return appendVarint(b, -1)
	}
	return append(appendVarint(b, int64(len(v))), v...)
}

func sizeNullable(v []byte) int {
	if v == nil {
		return 1
	}
	return sizeVarint(int64(len(v))) + len(v)
}

// EndTxnMarker is the record of a control batch that ends a transaction on a
// partition (KIP-98).
type EndTxnMarker struct {
	Commit           bool // else the transaction was aborted
	CoordinatorEpoch int32
}

// Types of control records, the second field of their keys.
const (
	controlAbort  = 0
	controlCommit = 1
)

// Record returns the marker as a record for a batch with Options.Control, at
// offset and timestamp.
func (m EndTxnMarker) Record(offset, timestamp int64) Record {
	key := make([]byte, 4) // version 0, type
	if m.Commit {
		key[3] = controlCommit
	}
	value := make([]byte, 6) // version 0, coordinator epoch
	binary.BigEndian.PutUint32(value[2:], uint32(m.CoordinatorEpoch))
	return Record{Offset: offset, Timestamp: timestamp, Key: key, Value: value}
}

// ParseEndTxnMarker reads the record of a control batch. ok is false for a
// control record of another type, which readers skip. ErrInvalid when it is
// malformed. Versions after 0 may have more fields, which are ignored.
func ParseEndTxnMarker(r Record) (m EndTxnMarker, ok bool, err error) {
	if len(r.Key) < 4 || int16(binary.BigEndian.Uint16(r.Key)) < 0 {
		return m, false, invalid("control record with key %x", r.Key)
	}
	switch binary.BigEndian.Uint16(r.Key[2:]) {
	case controlAbort:
	case controlCommit:
		m.Commit = true
	default:
		return m, false, nil
	}
	if len(r.Value) < 6 || int16(binary.BigEndian.Uint16(r.Value)) < 0 {
		return m, false, invalid("end of transaction with value %x", r.Value)
	}
	m.CoordinatorEpoch = int32(binary.BigEndian.Uint32(r.Value[2:]))
	return m, true, nil
}
