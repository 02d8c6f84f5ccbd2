package record

import (
	"fmt"
	"iter"
)

// Codecs compresses and decompresses what lies behind a batch's header. A
// compression.Set is one. The methods are called from any goroutine.
type Codecs interface {
	// Compress appends src, compressed, to dst. Level 0 is the codec's own
	// default; other levels count as the codec's topic property counts them
	// (KIP-390).
	Compress(c Codec, level int, dst, src []byte) ([]byte, error)

	// Decompress appends the contents of src to dst: at most limit bytes of
	// them, else it is an ErrPayloadTooLarge.
	Decompress(c Codec, dst, src []byte, limit int) ([]byte, error)
}

// DefaultPayloadLimit is how many bytes a batch may decompress to where the
// caller has no bound of its own: enough for whatever a producer can pack into
// the largest batch a broker takes by default, and little enough that a few
// malicious batches at once cannot exhaust the memory.
const DefaultPayloadLimit = 128 << 20

// Payload returns the records of b as they were before compression: in place
// for an uncompressed batch, else appended to buf[:0], which may be nil.
// ErrUnreadable when that is impossible; the codec's own error is wrapped as
// well.
func (b Batch) Payload(c Codecs, buf []byte, limit int) ([]byte, error) {
	codec := b.Header().Attributes.Codec()
	if codec == None {
		return b.Records(), nil
	}
	return decompress(c, codec, buf[:0], b.Records(), limit)
}

func decompress(c Codecs, codec Codec, dst, src []byte, limit int) ([]byte, error) {
	if !codec.Valid() {
		return nil, fmt.Errorf("%w: no such codec: %d", ErrUnreadable, codec)
	}
	out, err := c.Decompress(codec, dst, src, limit)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreadable, codec, err)
	}
	return out, nil
}

// Record is one record of a batch. Its slices point into the bytes that were
// iterated over.
type Record struct {
	Offset     int64
	Timestamp  int64 // milliseconds; of the append when the batch has LogAppendTime
	Key, Value []byte
	// nil is a null key or value, which is not the same as an empty one

	headers     []byte // the encoded headers, without their count
	headerCount int32
	attributes  int8 // unused by the format, so far
}

// HeaderCount is the number of headers (KIP-82).
func (r *Record) HeaderCount() int { return int(r.headerCount) }

// Headers walks key and value of the headers. A key may be empty, and a value
// null, which is nil.
func (r *Record) Headers() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := cursor{b: r.headers, ok: true}
		for range r.headerCount {
			k, v := c.bytes(), c.bytes()
			if !c.ok || !yield(k, v) {
				return
			}
		}
	}
}

// AddHeader adds a header to a record that is to be appended to a Builder.
func (r *Record) AddHeader(key, value []byte) {
	r.headers = appendVarint(r.headers, int64(len(key)))
	r.headers = append(r.headers, key...)
	r.headers = appendNullable(r.headers, value)
	r.headerCount++
}

// Iterator walks the records of one batch without copying or allocating.
//
//	it := record.Iterate(h, payload)
//	for it.Next() {
//		use(it.Record)
//	}
//	return it.Err()
type Iterator struct {
	Record Record // the one that Next found

	h    Header
	rest []byte
	seen int32
	err  error
}

// Iterate returns an iterator over payload, which holds the records of the
// batch with header h, decompressed.
func Iterate(h Header, payload []byte) Iterator { return Iterator{h: h, rest: payload} }

// Next moves to the next record. It returns false after the last one and at
// the first record that is malformed: see Err.
func (it *Iterator) Next() bool {
	if it.err != nil {
		return false
	}
	if it.seen >= it.h.Count {
		switch {
		case it.h.Count < 0:
			it.err = invalid("record count %d", it.h.Count)
		case len(it.rest) > 0:
			it.err = invalid("%d bytes behind the last of %d records", len(it.rest), it.h.Count)
		}
		return false
	}
	var raw rawRecord
	if it.rest, it.err = raw.read(it.rest); it.err != nil {
		it.err = fmt.Errorf("record %d of %d: %w", it.seen, it.h.Count, it.err)
		return false
	}
	it.seen++
	it.Record = Record{
		Offset:    it.h.BaseOffset + int64(raw.offsetDelta),
		Timestamp: it.h.BaseTimestamp + raw.timestampDelta,
		Key:       raw.key, Value: raw.value,
		headers: raw.headers, headerCount: raw.headerCount, attributes: raw.attributes,
	}
	if it.h.Attributes.LogAppendTime() {
		it.Record.Timestamp = it.h.MaxTimestamp
	}
	return true
}

// Err returns ErrInvalid when the walk ended early: a record is malformed,
// there are fewer than the batch's count, or bytes are left behind the last.
func (it *Iterator) Err() error { return it.err }

// Each walks the records of b, decompressing them into memory of its own:
// the convenient way, where Payload and Iterate are the thrifty one. An error
// comes with an empty record and ends the walk.
func (b Batch) Each(c Codecs, limit int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		payload, err := b.Payload(c, nil, limit)
		if err != nil {
			yield(Record{}, err)
			return
		}
		it := Iterate(b.Header(), payload)
		for it.Next() {
			if !yield(it.Record, nil) {
				return
			}
		}
		if it.Err() != nil {
			yield(Record{}, it.Err())
		}
	}
}

// rawRecord is a record as it is encoded: relative to its batch.
type rawRecord struct {
	timestampDelta int64
	offsetDelta    int32
	headerCount    int32
	attributes     int8
	key, value     []byte
	headers        []byte
}

// read parses the record at the start of b, all its lengths included, and
// returns what follows it. The format is that of Kafka's DefaultRecord, which
// takes any negative key or value length for null.
func (r *rawRecord) read(b []byte) (rest []byte, err error) {
	if rest, ok := r.readPlain(b); ok {
		return rest, nil
	}
	return r.readGeneral(b)
}

// readGeneral is read for any record.
func (r *rawRecord) readGeneral(b []byte) (rest []byte, err error) {
	size, n := varint(b)
	switch {
	case n == 0 && len(b) >= maxVarint32: // which Kafka tells from a record that is cut off
		return nil, wrap(ErrUnreadable, "a record length that never ends", nil)
	case n == 0:
		return nil, invalid("no record length in the %d bytes left", len(b))
	}
	b = b[n:]
	if size < 0 || int(size) > len(b) {
		return nil, invalid("record length %d, %d bytes left", size, len(b))
	}
	c := cursor{b: b[:size:size], ok: true}
	r.attributes = c.int8()
	r.timestampDelta = c.varlong()
	r.offsetDelta = c.varint()
	r.key = c.bytes()
	r.value = c.bytes()
	r.headerCount = c.varint()
	if !c.ok {
		return nil, invalid("record of %d bytes ends too early", size)
	}
	// A header has at least two bytes, so a count beyond the bytes left is a
	// lie that must not be walked.
	if r.headerCount < 0 || int(r.headerCount) > len(c.b) {
		return nil, invalid("%d headers in %d bytes", r.headerCount, len(c.b))
	}
	r.headers = c.b
	for range r.headerCount {
		if !c.skipHeader() {
			return nil, invalid("malformed header")
		}
	}
	if len(c.b) > 0 {
		return nil, invalid("%d bytes behind the last field of a record", len(c.b))
	}
	return b[size:], nil
}

// readPlain is read for what nearly all records are: without headers, and with numbers of one or two bytes. It reports
// false, having done nothing that counts, for whatever else there is, be it malformed. A record costs a fraction of what
// the general way costs, and every record that is produced is read.
func (r *rawRecord) readPlain(b []byte) (rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, false
	}
	size, n := short(b[0], b[1])
	b = b[n:]
	if size&1 != 0 || int(size>>1) > len(b) || size > maxShort {
		return nil, false
	}
	c := b[: size>>1 : size>>1]
	if len(c) < 7 { // attributes, and three numbers of which each may have two bytes
		return nil, false
	}
	delta, n := short(c[1], c[2])
	i := 1 + n
	offset, n := short(c[i], c[i+1])
	i += n
	key, n := short(c[i], c[i+1])
	i += n
	r.key = nil
	if key&1 == 0 {
		end := i + int(key>>1)
		if end > len(c) {
			return nil, false
		}
		r.key = c[i:end:end]
		i = end
	}
	if i+2 > len(c) {
		return nil, false
	}
	value, n := short(c[i], c[i+1])
	i += n
	r.value = nil
	if value&1 == 0 {
		end := i + int(value>>1)
		if end > len(c) {
			return nil, false
		}
		r.value = c[i:end:end]
		i = end
	}
	if i+1 != len(c) || c[i] != 0 || delta > maxShort || offset > maxShort || key > maxShort || value > maxShort {
		return nil, false
	}
	r.attributes = int8(c[0])
	r.timestampDelta = int64(delta>>1) ^ -int64(delta&1)
	r.offsetDelta = int32(offset>>1) ^ -int32(offset&1)
	r.headerCount, r.headers = 0, nil
	return b[len(c):], true
}

// maxShort is the largest number, before zig-zag, that two bytes hold.
const maxShort = 1<<14 - 1

// short reads a varint of one or two bytes, before zig-zag, from the two bytes given. One that goes on is larger than
// maxShort.
func short(a, b byte) (u uint32, n int) {
	if a < 0x80 {
		return uint32(a), 1
	}
	return uint32(a&0x7f) | uint32(b)<<7, 2
}

// cursor reads fields off the front of b, until one is malformed.
type cursor struct {
	b  []byte
	ok bool
}

func (c *cursor) int8() int8 {
	if len(c.b) == 0 {
		c.ok = false
		return 0
	}
	v := int8(c.b[0])
	c.b = c.b[1:]
	return v
}

func (c *cursor) varint() int32 {
	v, n := varint(c.b)
	c.ok = c.ok && n > 0
	c.b = c.b[n:]
	return v
}

func (c *cursor) varlong() int64 {
	v, n := varlong(c.b)
	c.ok = c.ok && n > 0
	c.b = c.b[n:]
	return v
}

// bytes reads a length and so many bytes; nil for a negative length.
func (c *cursor) bytes() []byte {
	n := c.varint()
	if n < 0 || !c.ok {
		return nil
	}
	if int(n) > len(c.b) {
		c.ok = false
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

// skipHeader reads one header, whose key cannot be null.
func (c *cursor) skipHeader() bool {
	key := c.bytes()
	_ = c.bytes()
	return c.ok && key != nil
}
