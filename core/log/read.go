package log

import (
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// ReadRequest says what to read.
type ReadRequest struct {
	// Offset is the offset of the first record wanted; the batch that holds it may begin earlier.
	Offset int64
	// MaxBytes bounds the view, except as the next two say.
	MaxBytes int
	// MinOneBatch gives the first batch whole even if it is larger than MaxBytes (KIP-74).
	MinOneBatch bool
	// HardLimit cuts the first batch off at MaxBytes instead of giving nothing, as Fetch up to version 2 does.
	HardLimit bool
	// UpTo is where reading ends, exclusively: the high watermark, the last stable offset or the end.
	UpTo int64
	// Aborted asks for the aborted transactions among what was read.
	Aborted bool
}

// ReadResult is what was read.
type ReadResult struct {
	// View holds whole batches of one segment, except for HardLimit; nil when there is nothing to read. The caller releases
	// it.
	View storage.View
	// FirstBatchOffset is the base offset of the first batch in the view.
	FirstBatchOffset int64
	// NextOffset is the offset behind the last batch in the view; that of the first batch when the view ends within it.
	NextOffset int64
	// SegmentBase and Position say where the view begins.
	SegmentBase int64
	Position    int64
	// Cut says that the segment has more below UpTo, and MaxBytes is why the view ends.
	Cut bool
	// Aborted lists the aborted transactions that overlap what was read, when they were asked for.
	Aborted []AbortedTxn
}

// Read gives the batches from the one on that holds the offset, or the first one behind it. It gives nothing, without an
// error, when there is no whole batch below UpTo, or none that fits.
//
// Errors: ErrOffsetOutOfRange outside of start and end, ErrCorrupt, ErrClosed, and errors of the system.
func (l *Log) Read(q ReadRequest) (ReadResult, error) {
	for try := 0; ; try++ {
		cuts := l.cuts.Load()
		if l.closed.Load() {
			return ReadResult{}, l.wrap(ErrClosed)
		}
		res, s, err := l.read(q)
		if err == nil && l.cuts.Load() == cuts {
			return res, nil
		}
		if err == nil || try < maxTries && l.cutSince(cuts) {
			// Something was cut off meanwhile: what was found may be elsewhere by now, or gone.
			if res.View != nil {
				res.View.Release()
			}
			continue
		}
		if l.closed.Load() {
			return ReadResult{}, l.wrap(ErrClosed)
		}
		if try < maxTries && errors.Is(err, errDamaged) && s != nil {
			if err = l.mendNow(s, err); err == nil {
				continue
			}
		}
		if try < maxTries && s != nil && l.gone(s) {
			continue // its files are deleted
		}
		if errors.Is(err, record.ErrCorrupt) || errors.Is(err, record.ErrShort) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return ReadResult{}, l.wrap(err)
	}
}

// cutSince says, to a look-up that failed, whether something was taken away since it loaded cuts. It waits for a truncation
// that is under way: that one may have raised cuts before they were loaded, and does so again only when it is done.
func (l *Log) cutSince(cuts int64) bool {
	if l.cuts.Load() != cuts {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts.Load() != cuts
}

// maxTries bounds how often a read starts over because something changed under it.
const maxTries = 8

// mendNow is mend for those who don't hold the lock. A segment that has left the log is let be.
func (l *Log) mendNow(s *segment, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return ErrClosed
	}
	if l.gone(s) {
		return nil
	}
	return l.mend(s, err)
}

// read is one try of Read. It also gives the segment where an error was found.
func (l *Log) read(q ReadRequest) (res ReadResult, s *segment, err error) {
	start, end := l.start.Load(), l.end.Load()
	if q.Offset < start || q.Offset > end {
		return res, nil, fmt.Errorf("%w: %d is not within %d and %d", ErrOffsetOutOfRange, q.Offset, start, end)
	}
	upTo := min(q.UpTo, end)
	if q.Offset >= upTo {
		return res, nil, nil
	}
	segments := *l.segments.Load()
	for i := max(0, segmentOf(segments, q.Offset)); i < len(segments) && segments[i].base < upTo; i++ {
		s = segments[i]
		size := s.size.Load()
		next := s.next.Load()
		if i+1 < len(segments) {
			next = segments[i+1].base
		}
		r := newHeaders(s, size)
		pos, h, e := s.locate(r, q.Offset)
		if e == io.EOF {
			r.done()
			continue
		}
		var n int64
		if e == nil {
			n, res.NextOffset, res.Cut, e = s.extent(r, q, pos, h, upTo, next)
		}
		r.done()
		if e != nil {
			return res, s, e
		}
		if n == 0 {
			return res, nil, nil
		}
		if res.View, e = s.data.View(pos, n); e != nil {
			return res, s, e
		}
		res.FirstBatchOffset, res.SegmentBase, res.Position = h.BaseOffset, s.base, pos
		if q.Aborted {
			res.Aborted, e = l.aborted(segments, i, q.Offset, pos+n, upTo)
			if e != nil {
				res.View.Release()
				return ReadResult{}, s, e
			}
		}
		return res, nil, nil
	}
	return res, nil, nil
}

// extent is how many bytes from pos on, where the batch with header h begins, a read gives, the offset behind them, and whether only
// MaxBytes keeps it from giving more. next is the offset behind the segment.
func (s *segment) extent(r *headers, q ReadRequest, pos int64, h record.Header, upTo, next int64) (n, behind int64, cut bool, err error) {
	if h.LastOffset() >= upTo {
		return 0, 0, false, nil
	}
	limit := int64(max(q.MaxBytes, 0))
	if first := int64(h.Size()); first > limit {
		switch {
		case q.HardLimit:
			return limit, h.BaseOffset, true, nil
		case q.MinOneBatch:
			return first, h.LastOffset() + 1, true, nil
		}
		return 0, 0, true, nil
	}
	end, behind := r.size, next
	if next > upTo {
		var last record.Header
		switch end, last, err = s.locate(r, upTo); err {
		case nil:
			behind = last.BaseOffset
		case io.EOF:
			end, behind = r.size, upTo
		default:
			return 0, 0, false, err
		}
	}
	if cut = end-pos > limit; cut {
		var cutAt int64
		if end, cutAt, err = s.boundary(r, pos, pos+limit); err != nil {
			return 0, 0, false, err
		}
		if cutAt >= 0 {
			behind = cutAt
		}
	}
	return max(end-pos, 0), behind, cut, nil
}

// aborted lists the transactions that overlap what was read from segment i: from offset on, up to position end.
func (l *Log) aborted(segments []*segment, i int, offset, end, upTo int64) ([]AbortedTxn, error) {
	// Where the bytes end by offset needn't be known exactly: the next index entry behind them will do.
	to := upTo
	if i+1 < len(segments) {
		to = min(to, segments[i+1].base)
	}
	s := segments[i]
	if e, ok, err := s.offsets.ceiling(func(e []byte) bool {
		_, position := offsetEntry(e)
		return int64(position) < end
	}); err != nil {
		return nil, err
	} else if ok {
		relative, _ := offsetEntry(e[:])
		to = min(to, s.base+int64(relative))
	}
	var out []AbortedTxn
	for ; i < len(segments); i++ {
		var done bool
		var err error
		if out, done, err = segments[i].txns.collect(out, offset, to); err != nil {
			return nil, err
		}
		if done {
			break
		}
	}
	return out, nil
}
