package log

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/barnabas-mq/barnabas/core/record"
)

// headers reads batch headers of a segment, a small block at a time. It comes from a pool: done gives it back.
type headers struct {
	s    *segment
	size int64 // what counts as the segment's end
	from int64
	n    int64
	buf  [2048]byte
}

var headerPool = sync.Pool{New: func() any { return new(headers) }}

func newHeaders(s *segment, size int64) *headers {
	r := headerPool.Get().(*headers)
	r.s, r.size, r.from, r.n = s, size, 0, 0
	return r
}

func (r *headers) done() {
	r.s = nil
	headerPool.Put(r)
}

// at gives the header of the batch at pos, which must lie whole in the segment. io.EOF at the end; record.ErrCorrupt or
// record.ErrShort when there is no batch.
func (r *headers) at(pos int64) (record.Header, error) {
	if pos >= r.size {
		return record.Header{}, io.EOF
	}
	if pos+record.HeaderSize > r.size {
		return record.Header{}, record.ErrShort
	}
	if pos < r.from || pos+record.HeaderSize > r.from+r.n {
		n, err := r.s.data.ReadAt(r.buf[:min(int64(len(r.buf)), r.size-pos)], pos)
		if n < record.HeaderSize {
			if err == nil || err == io.EOF {
				err = record.ErrShort
			}
			return record.Header{}, err
		}
		r.from, r.n = pos, int64(n)
	}
	h, err := record.ParseHeader(r.buf[pos-r.from : r.n])
	if err != nil {
		return h, err
	}
	if pos+int64(h.Size()) > r.size {
		return h, record.ErrShort
	}
	if !r.s.holds(h) {
		return h, fmt.Errorf("%w: offsets %d to %d at position %d of segment %d", record.ErrCorrupt, h.BaseOffset, h.LastOffset(), pos, r.s.base)
	}
	return h, nil
}

// holds reports whether a batch has offsets that can be in the segment.
func (s *segment) holds(h record.Header) bool {
	return h.LastOffsetDelta >= 0 && h.BaseOffset >= s.base && h.BaseOffset-s.base <= math.MaxInt32-int64(h.LastOffsetDelta)
}

// locate finds the first batch below size whose last offset is at least target, and its position. io.EOF when there is
// none; errDamaged when an index led astray.
func (s *segment) locate(r *headers, target int64) (int64, record.Header, error) {
	pos := int64(0)
	e, ok, err := s.offsets.floor(func(e []byte) bool {
		relative, _ := offsetEntry(e)
		return s.base+int64(relative) <= target
	})
	if err != nil {
		return 0, record.Header{}, err
	}
	if ok {
		relative, position := offsetEntry(e[:])
		pos = int64(position)
		// Apache followers index the last offset of several batches at the first one's position: the batch there may end
		// below the entry's offset, but never above.
		h, err := r.at(pos)
		if pos <= 0 || relative < 0 || err != nil && !isIO(err) && !(err == io.EOF && pos == r.size) || err == nil && h.LastOffset() > s.base+int64(relative) {
			return 0, h, fmt.Errorf("%w: entry %d of segment %d points to position %d", errDamaged, relative, s.base, position)
		}
	}
	for {
		h, err := r.at(pos)
		if err != nil || h.LastOffset() >= target {
			return pos, h, err
		}
		pos += int64(h.Size())
	}
}

// isIO reports whether an error came from the system and not from the bytes.
func isIO(err error) bool {
	return !errors.Is(err, record.ErrCorrupt) && !errors.Is(err, record.ErrShort) && err != io.EOF
}

// boundary finds the largest end of a batch that is at most limit, starting from the batch at from, and the base offset of the batch
// behind it: -1 when there is none.
func (s *segment) boundary(r *headers, from, limit int64) (end, next int64, err error) {
	if e, ok, err := s.offsets.floor(func(e []byte) bool {
		_, position := offsetEntry(e)
		return int64(position) <= limit
	}); err != nil {
		return 0, -1, err
	} else if ok {
		if _, position := offsetEntry(e[:]); int64(position) > from && int64(position) < r.size {
			from = int64(position)
		}
	}
	for {
		h, err := r.at(from)
		if err == io.EOF {
			return from, -1, nil
		}
		if err != nil {
			return 0, -1, err
		}
		if from+int64(h.Size()) > limit {
			return from, h.BaseOffset, nil
		}
		from += int64(h.Size())
	}
}

// settle finds out what lies behind the last index entry of the last segment of a log, indexing it as an append would: the
// next offset, the largest timestamp. errDamaged when index and data don't fit together, or the data end in anything but a
// whole batch: then the segment is to be scanned.
func (s *segment) settle(cfg *Config) error {
	size := s.data.Size()
	r := newHeaders(s, size)
	defer r.done()
	pos, next := int64(0), s.base
	s.maxTimestamp, s.maxOffset, s.sinceIndex = -1, s.base, 0
	timed, hasTimes := s.times.last()
	seen := false // the batch that timed speaks of was among those behind the last index entry
	if hasTimes {
		ts, relative := timeEntry(timed[:])
		s.maxTimestamp, s.maxOffset = ts, s.base+int64(relative)
	}
	e, indexed := s.offsets.last()
	if indexed {
		relative, position := offsetEntry(e[:])
		h, err := r.at(int64(max(position, 0)))
		if err != nil && isIO(err) {
			return err
		}
		if err != nil || position <= 0 || h.LastOffset() > s.base+int64(relative) {
			return errDamaged
		}
		pos = int64(position)
		next = h.BaseOffset
	}
	first := true
	for ; ; first = false {
		h, err := r.at(pos)
		if err == io.EOF {
			break
		}
		if err != nil {
			if isIO(err) {
				return err
			}
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if h.BaseOffset < next {
			return errDamaged
		}
		if hasTimes {
			ts, relative := timeEntry(timed[:])
			seen = seen || h.MaxTimestamp == ts && h.LastOffset() == s.base+int64(relative)
		}
		if first && pos > 0 { // indexed already
			s.sinceIndex = int64(h.Size())
			if largestTime(h) > s.maxTimestamp {
				s.maxTimestamp, s.maxOffset = h.MaxTimestamp, h.LastOffset()
			}
		} else if err := s.note(h, pos, cfg); err != nil {
			return err
		}
		next, pos = h.LastOffset()+1, pos+int64(h.Size())
	}
	s.publish(next, pos)
	if !seen && (hasTimes || indexed) {
		if err := s.believeTimes(r, timed, hasTimes); err != nil {
			return err
		}
	}
	s.settled = true
	return nil
}

// believeTimes checks the entry that the largest timestamp was taken from, or that there may be none.
func (s *segment) believeTimes(r *headers, e [timeWidth]byte, ok bool) error {
	if !ok {
		// Either no batch has a timestamp, or the index was lost.
		h, err := r.at(0)
		for pos := int64(0); err == nil && h.Count <= 0; h, err = r.at(pos) { // emptied by compaction: it says nothing
			pos += int64(h.Size())
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damagedUnlessIO(err)
		}
		if h.MaxTimestamp >= 0 {
			return errDamaged
		}
		return nil
	}
	ts, relative := timeEntry(e[:])
	_, h, err := s.locate(r, s.base+int64(relative))
	if err != nil {
		return damagedUnlessIO(err)
	}
	if relative < 0 || h.MaxTimestamp != ts {
		return fmt.Errorf("%w: last entry of the time index of segment %d", errDamaged, s.base)
	}
	return nil
}

// settleTimes finds the largest timestamp of a sealed segment: the last entry of its time index, if that can be believed.
func (s *segment) settleTimes() error {
	if s.settled {
		return nil
	}
	size := s.size.Load()
	if size == 0 {
		s.settled = true
		return nil
	}
	r := newHeaders(s, size)
	defer r.done()
	e, ok := s.times.last()
	if err := s.believeTimes(r, e, ok); err != nil {
		return err
	}
	if ok {
		ts, relative := timeEntry(e[:])
		s.maxTimestamp, s.maxOffset = ts, s.base+int64(relative)
	}
	s.settled = true
	return nil
}

func damagedUnlessIO(err error) error {
	if isIO(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

// scanBuffer is how much recovery reads at a time.
const scanBuffer = 1 << 20

// scan reads whole batches from position from on and gives each to visit with its position. It ends at size, or before the
// first bytes that are no good batch: an impossible header, a checksum that doesn't match, offsets that don't rise or reach
// limit. why says what was found there; an error is one of reading, or of visit.
func (s *segment) scan(from, next, limit int64, visit func(pos int64, b record.Batch) error) (end int64, why error, err error) {
	return s.scanWith(make([]byte, min(scanBuffer, max(s.data.Size()-from, 0))), from, next, limit, visit)
}

// scanWith is scan that reads as much at a time as the buffer holds; a larger batch gets a buffer of its own.
func (s *segment) scanWith(buf []byte, from, next, limit int64, visit func(pos int64, b record.Batch) error) (end int64, why error, err error) {
	size := s.data.Size()
	var have []byte
	pos := from
	for pos < size {
		b, _, e := record.Next(have)
		if errors.Is(e, record.ErrShort) {
			need := int64(record.HeaderSize)
			if len(have) >= record.HeaderSize {
				h, _ := record.ParseHeader(have)
				need = int64(h.Size())
			}
			if need > size-pos {
				return pos, fmt.Errorf("%w: %d of %d bytes", record.ErrShort, size-pos, need), nil
			}
			if int64(len(buf)) < need {
				buf = make([]byte, need)
			}
			n, e := s.data.ReadAt(buf[:min(int64(len(buf)), size-pos)], pos)
			if int64(n) < need {
				return pos, nil, fmt.Errorf("read segment %d at %d: %w", s.base, pos, e)
			}
			have = buf[:n]
			continue
		}
		if e != nil {
			return pos, e, nil
		}
		h := b.Header()
		switch {
		case !s.holds(h) || h.BaseOffset < next || h.LastOffset() >= limit:
			return pos, fmt.Errorf("%w: offsets %d to %d where %d is next", record.ErrCorrupt, h.BaseOffset, h.LastOffset(), next), nil
		default:
			if e := record.CheckCRC(b); e != nil {
				return pos, e, nil
			}
		}
		if err := visit(pos, b); err != nil {
			return pos, nil, err
		}
		next, pos, have = h.LastOffset()+1, pos+int64(len(b)), have[len(b):]
	}
	return pos, nil, nil
}

// each visits the headers of all batches from position pos on.
func (s *segment) each(pos int64, visit func(pos int64, h record.Header) error) error {
	r := newHeaders(s, s.size.Load())
	defer r.done()
	for {
		h, err := r.at(pos)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if !isIO(err) {
				err = fmt.Errorf("%w: segment %d at position %d: %w", ErrCorrupt, s.base, pos, err)
			}
			return err
		}
		if err := visit(pos, h); err != nil {
			return err
		}
		pos += int64(h.Size())
	}
}

// batch reads one batch whole.
func (s *segment) batch(pos int64, h record.Header) (record.Batch, error) {
	b := make([]byte, h.Size())
	if _, err := s.data.ReadAt(b, pos); err != nil && err != io.EOF {
		return nil, err
	}
	whole, _, err := record.Next(b)
	return whole, err
}

// rebuild makes new offset and time indexes from the headers of a segment whose data are good.
func (s *segment) rebuild(cfg *Config) error {
	fresh := &segment{base: s.base, dir: s.dir, firstTime: unknownTime, maxTimestamp: -1, maxOffset: s.base}
	var offsets, times []byte
	since, next := int64(0), s.base
	err := s.each(0, func(pos int64, h record.Header) error {
		if h.BaseOffset < next {
			return fmt.Errorf("%w: segment %d at position %d: offset %d where %d is next", ErrCorrupt, s.base, pos, h.BaseOffset, next)
		}
		if largestTime(h) > fresh.maxTimestamp {
			fresh.maxTimestamp, fresh.maxOffset = h.MaxTimestamp, h.LastOffset()
		}
		if since > int64(cfg.IndexIntervalBytes) {
			var e [offsetWidth]byte
			putOffsetEntry(e[:], int32(h.LastOffset()-s.base), int32(pos))
			offsets = append(offsets, e[:]...)
			times = fresh.appendTime(times)
			since = 0
		}
		since += int64(h.Size())
		next = h.LastOffset() + 1
		return nil
	})
	if err != nil {
		return err
	}
	if s.sealed {
		times = fresh.appendTime(times)
	}
	if err := errors.Join(s.offsets.replace(offsets), s.times.replace(times)); err != nil {
		return err
	}
	s.sinceIndex, s.maxTimestamp, s.maxOffset, s.settled = since, fresh.maxTimestamp, fresh.maxOffset, true
	return nil
}

// appendTime is noteTime for a time index that is being built in memory.
func (s *segment) appendTime(times []byte) []byte {
	if s.maxTimestamp < 0 {
		return times
	}
	if n := len(times); n > 0 {
		if ts, _ := timeEntry(times[n-timeWidth:]); ts >= s.maxTimestamp {
			return times
		}
	}
	var e [timeWidth]byte
	putTimeEntry(e[:], s.maxTimestamp, int32(s.maxOffset-s.base))
	return append(times, e[:]...)
}
