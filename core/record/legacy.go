package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// Where the fields of a message of format 0 or 1 lie, as in Kafka's
// LegacyRecord. Behind the attributes, and the timestamp of format 1, come
// length and bytes of key and value; length -1 is null.
const (
	legacyCRC        = 12
	legacyMagic      = 16 // the checksum, a CRC-32, covers everything from here on
	legacyAttributes = 17
	legacyTimestamp  = 18 // format 1 only
	legacyKey0       = 18
	legacyKey1       = 26

	// legacyAppendTime is the attribute of format 1 for LogAppendTime.
	legacyAppendTime = 0x08
)

// checkLegacy is entry.check for formats 0 and 1.
func (e entry) checkLegacy() error {
	if len(e) < legacyKey(e.magic())+8 {
		return corrupt("message of format %d with %d bytes", e.magic(), len(e))
	}
	want := binary.BigEndian.Uint32(e[legacyCRC:])
	if got := crc32.ChecksumIEEE(e[legacyMagic:]); got != want {
		return corrupt("checksum of a message is %08x, the bytes have %08x", want, got)
	}
	return nil
}

func legacyKey(magic byte) int {
	if magic == 0 {
		return legacyKey0
	}
	return legacyKey1
}

// message is a message of format 0 or 1. Of a compressed one, value is the
// block with the messages inside.
type message struct {
	magic      byte
	offset     int64
	timestamp  int64 // NoTimestamp in format 0
	codec      Codec
	appendTime bool
	key, value []byte
}

// message parses a checked entry. ErrInvalid when its fields do not fill it.
func (e entry) message() (message, error) {
	m := message{magic: e.magic(), offset: e.offset(), timestamp: NoTimestamp, codec: e.codec()}
	if m.magic > 0 {
		m.timestamp = int64(binary.BigEndian.Uint64(e[legacyTimestamp:]))
		m.appendTime = e[legacyAttributes]&legacyAppendTime != 0
	}
	var ok bool
	rest := []byte(e[legacyKey(m.magic):])
	if m.key, rest, ok = cutNullable(rest); ok {
		m.value, rest, ok = cutNullable(rest)
	}
	if !ok || len(rest) > 0 {
		return m, invalid("key and value do not fill a message of %d bytes", len(e))
	}
	return m, nil
}

// cutNullable reads a 32-bit length and so many bytes; nil for a negative
// length.
func cutNullable(b []byte) (v, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n < 0 {
		return nil, b, true
	}
	if int(n) > len(b) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// append encodes the message behind b.
func (m *message) append(b []byte) []byte {
	start := len(b)
	var head [legacyKey1]byte
	binary.BigEndian.PutUint64(head[:], uint64(m.offset))
	head[legacyMagic] = m.magic
	head[legacyAttributes] = byte(m.codec)
	if m.magic > 0 {
		if m.appendTime {
			head[legacyAttributes] |= legacyAppendTime
		}
		binary.BigEndian.PutUint64(head[legacyTimestamp:], uint64(m.timestamp))
	}
	b = append(b, head[:legacyKey(m.magic)]...)
	for _, v := range [...][]byte{m.key, m.value} {
		if v == nil {
			b = binary.BigEndian.AppendUint32(b, ^uint32(0))
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	out := b[start:]
	binary.BigEndian.PutUint32(out[atLength:], uint32(len(out)-LogOverhead))
	binary.BigEndian.PutUint32(out[legacyCRC:], crc32.ChecksumIEEE(out[legacyMagic:]))
	return b
}

// inner decompresses the messages inside of m and calls each for every one:
// its offset made absolute as KIP-31 has it, its timestamp that of m where m
// has the time of its append (KIP-32). What each gets is checked and points
// into the memory that inner returns, which is buf where that suffices.
func (m *message) inner(c Codecs, buf []byte, limit int, each func(message) error) ([]byte, error) {
	switch {
	case m.codec == Zstd:
		return buf, invalid("zstd in message format %d", m.magic)
	case m.value == nil:
		return buf, invalid("compressed message with null value")
	}
	block := m.value
	if m.magic == 0 && m.codec == LZ4 {
		block = rightLZ4Checksum(block)
	}
	buf, err := decompress(c, m.codec, buf[:0], block, limit)
	if err != nil {
		return nil, err
	}
	base, err := m.innerBase(buf)
	if err != nil {
		return buf, err
	}
	for rest := buf; ; {
		var e entry
		if e, rest, err = nextAny(rest); err != nil {
			return buf, err
		}
		if e == nil {
			return buf, nil
		}
		if err := e.checkLegacy(); err != nil {
			return buf, err
		}
		in, err := e.message()
		if err != nil {
			return buf, err
		}
		if in.codec != None {
			return buf, invalid(reasonNested)
		}
		in.offset += base
		if m.appendTime && in.magic == 1 {
			in.timestamp, in.appendTime = m.timestamp, true
		}
		if err := each(in); err != nil {
			return buf, err
		}
	}
}

// innerBase returns what to add to the offsets of the messages inside of m: 0
// in format 0, where they are absolute. In format 1 the offset of m is that of
// its last message; some librdkafka versions write 0 there instead.
func (m *message) innerBase(payload []byte) (int64, error) {
	var last entry
	for rest := payload; ; {
		e, r, err := nextAny(rest)
		if err != nil {
			return 0, err
		}
		if e == nil {
			break
		}
		if e.magic() == Magic {
			return 0, invalid("format 2 inside of a message of format %d", m.magic)
		}
		last, rest = e, r
	}
	switch {
	case last == nil:
		return 0, invalid("compressed message with no messages inside")
	case m.magic == 0 || m.offset == 0:
		return 0, nil
	case m.offset < last.offset():
		return 0, invalid("message offset %d is before the last offset inside, %d", m.offset, last.offset())
	}
	return m.offset - last.offset(), nil
}

// validateLegacy is Validate for sets of formats 0 and 1: the records of the
// set, with offsets anew, become one batch.
func (v *Validator) validateLegacy(b []byte, r *Rules, limit int) (Result, error) {
	var set []entry
	source := None
	for rest := b; ; {
		e, next, err := nextAny(rest)
		if err != nil {
			return Result{}, err
		}
		if e == nil {
			break
		}
		if err := r.analyze(e); err != nil {
			return Result{}, err
		}
		if c := e.codec(); c != None {
			source = c
		}
		set, rest = append(set, e), next
	}
	if source != None && len(set) > 1 {
		return Result{}, invalid("a compressed message among %d", len(set))
	}
	s := v.scratch.Get().(*scratch)
	defer v.release(s)
	s.start(Options{Codec: r.codecFor(source)}, r)
	for _, e := range set {
		if e.magic() != set[0].magic() {
			return Result{}, invalid("message format %d behind format %d", e.magic(), set[0].magic())
		}
		if err := v.addLegacy(s, e, r, limit); err != nil {
			return Result{}, err
		}
	}
	if r.Keys != nil {
		if err := s.checkKeys(r); err != nil {
			return Result{}, err
		}
	}
	res, err := s.finish(r, v.codecs)
	if err != nil {
		return Result{}, err
	}
	return r.checkStored(res)
}

// addLegacy adds the record of one message to the batch, or the records inside
// of it. Errors of single records count from the start of the message, as
// Kafka's do.
func (v *Validator) addLegacy(s *scratch, e entry, r *Rules, limit int) error {
	outer, err := e.message()
	if err != nil {
		return err
	}
	var errs *RecordErrors
	index := int32(0)
	each := func(m message) error {
		if m.magic != outer.magic {
			errs = errs.add(index, ErrInvalid, reasonInnerMagic)
		} else {
			errs = r.checkRecord(errs, index, m.key != nil, m.timestamp, outer.appendTime)
		}
		index++
		if errs != nil {
			return nil //nolint:nilerr // nothing will be appended; only the other errors count
		}
		if r.Keys != nil {
			s.keys = append(s.keys, m.key)
		}
		return s.add(Record{Timestamp: m.timestamp, Key: m.key, Value: m.value})
	}
	if outer.codec == None {
		err = each(outer)
	} else {
		s.payload, err = outer.inner(v.codecs, s.payload, limit, each)
	}
	switch {
	case err != nil:
		return err
	case errs != nil:
		return errs
	}
	return nil
}

// LegacyRecords returns the records of a message set of format 0 or 1, with
// those inside of compressed messages; they point into b or new memory. A
// partial message at the end of b is left out. Errors are those of Validate.
func LegacyRecords(b []byte, c Codecs, limit int) ([]Record, error) {
	var out []Record
	keep := func(m message) error {
		out = append(out, Record{Offset: m.offset, Timestamp: m.timestamp, Key: m.key, Value: m.value})
		return nil
	}
	for {
		e, rest, err := nextAny(b)
		if err != nil || e == nil {
			return out, err
		}
		b = rest
		if e.magic() == Magic {
			return out, invalid("format 2 in a message set of format 0 or 1")
		}
		if err := e.check(); err != nil {
			return out, err
		}
		m, err := e.message()
		switch {
		case err != nil:
			return out, err
		case m.codec == None:
			err = keep(m)
		default:
			_, err = m.inner(c, nil, limit, keep)
		}
		if err != nil {
			return out, err
		}
	}
}

// DownConvert appends to dst the records of the batches in b as messages of
// format 0 or 1, for Fetch versions 0-1 and 2-3, as Kafka's
// RecordsUtil.downConvert does: compressed batches become one compressed
// message, with absolute offsets inside in format 0 and relative ones in
// format 1; control batches are left out, and so are headers. Records of
// uncompressed batches below firstOffset, the offset of the fetch, are left
// out, too: clients of that time expect it. A partial batch at the end is
// ignored. What is in a format as old or older already is copied.
//
// ErrUnsupportedCodec for zstd, which these formats do not know; other errors
// as reading the records gives them. dst is returned unchanged with an error.
func DownConvert(dst, b []byte, magic int8, firstOffset int64, c Codecs, limit int) ([]byte, error) {
	out := dst
	for {
		e, rest, err := nextAny(b)
		if err != nil {
			return dst, err
		}
		if e == nil {
			return out, nil
		}
		b = rest
		if int8(e.magic()) <= magic {
			out = append(out, e...)
			continue
		}
		if out, err = e.downConvert(out, byte(magic), firstOffset, c, limit); err != nil {
			return dst, err
		}
	}
}

func (e entry) downConvert(dst []byte, magic byte, firstOffset int64, c Codecs, limit int) ([]byte, error) {
	from, err := e.readForOld(c, limit)
	if err != nil || from.control {
		return dst, err
	}
	records := from.records
	if from.codec == None {
		records = slices.DeleteFunc(records, func(r Record) bool { return r.Offset < firstOffset })
	}
	if len(records) == 0 {
		return dst, nil
	}
	out := dst
	wrapper := message{magic: magic, codec: from.codec, appendTime: from.appendTime, timestamp: NoTimestamp}
	if from.codec != None {
		out = nil
	}
	for i := range records {
		m := message{magic: magic, offset: records[i].Offset, timestamp: records[i].Timestamp,
			appendTime: from.appendTime, key: records[i].Key, value: records[i].Value}
		wrapper.offset = m.offset
		wrapper.timestamp = max(wrapper.timestamp, m.timestamp)
		if from.codec != None && magic > 0 {
			m.offset -= records[0].Offset
		}
		out = m.append(out)
	}
	if from.codec == None {
		return out, nil
	}
	block, err := c.Compress(from.codec, 0, nil, out)
	if err != nil {
		return dst, fmt.Errorf("compress messages of format %d with %s: %w", magic, from.codec, err)
	}
	if magic == 0 && from.codec == LZ4 {
		block = wrongLZ4Checksum(block)
	}
	wrapper.value = block
	return wrapper.append(dst), nil
}

// oldBatch is what DownConvert needs of a batch.
type oldBatch struct {
	codec      Codec
	appendTime bool
	control    bool
	records    []Record // none of a control batch
}

func (e entry) readForOld(c Codecs, limit int) (oldBatch, error) {
	if e.magic() != Magic {
		records, err := LegacyRecords(e, c, limit)
		return oldBatch{codec: e.codec(), appendTime: e[legacyAttributes]&legacyAppendTime != 0, records: records}, err
	}
	h, err := e.header()
	if err != nil {
		return oldBatch{}, err
	}
	old := oldBatch{codec: h.Attributes.Codec(), appendTime: h.Attributes.LogAppendTime(), control: h.Attributes.Control()}
	switch {
	case old.control:
		return old, nil
	case old.codec == Zstd:
		return old, fmt.Errorf("%w: zstd in message formats before 2", ErrUnsupportedCodec)
	}
	for rec, err := range Batch(e).Each(c, limit) {
		if err != nil {
			return old, err
		}
		old.records = append(old.records, rec)
	}
	return old, nil
}
