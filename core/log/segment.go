package log

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// The suffixes of a segment's files, behind its base offset in 20 digits, and those of files that are on their way in or out.
const (
	logSuffix      = ".log"
	indexSuffix    = ".index"
	timeSuffix     = ".timeindex"
	txnSuffix      = ".txnindex"
	snapshotSuffix = ".snapshot"
	deletedSuffix  = ".deleted"
	cleanedSuffix  = ".cleaned"
	swapSuffix     = ".swap"
	tmpSuffix      = ".tmp"
)

// segmentPath is the path of one of a segment's files.
func segmentPath(dir string, base int64, suffix string) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", base, suffix))
}

// segment is one segment of a log with its indexes. Its bytes are kept by the storage. What changes with an append is
// guarded by the log's lock, except what is said to be for readers.
type segment struct {
	base     int64
	dir      string
	capacity int64
	data     storage.Segment
	offsets  *index
	times    *index
	txns     *txnIndex

	// For readers, who take size first and next afterwards; who appends sets them the other way round. So a reader finds a
	// next that is at least the offset behind the size it has.
	size atomic.Int64 // bytes of whole batches
	next atomic.Int64 // offset behind the last batch; of a segment that isn't the last one, at most the next one's base

	sinceIndex   int64 // bytes since the last index entry
	maxTimestamp int64 // largest timestamp of a batch, -1 without one …
	maxOffset    int64 // … and the last offset of the batch that has it
	settled      bool  // the two above are known
	firstTime    int64 // largest timestamp of the first batch; unknownTime until it was looked at
	created      time.Time
	jitter       int64 // milliseconds taken off segment.ms
	sealed       bool
	durable      bool // sealed, and on the device with its indexes
	damaged      bool // an index is missing or can't be one
}

const unknownTime = math.MinInt64

// createSegment makes the file of a new, empty segment; its indexes get theirs with the first record: most of
// what it takes to make a partition is files. The name has an ending, which the caller takes away when it isn't empty.
func createSegment(st storage.Storage, dir string, base int64, ending string, least int64, cfg *Config, now time.Time, jitter int64) (*segment, error) {
	s := newSegment(dir, base)
	s.capacity = max(cfg.segmentBytes(), least)
	s.created, s.jitter, s.settled = now, jitter, true
	s.next.Store(base)
	s.offsets = newIndex(segmentPath(dir, base, indexSuffix), offsetWidth, true)
	s.times = newIndex(segmentPath(dir, base, timeSuffix), timeWidth, true)
	var err error
	s.data, err = st.Create(segmentPath(dir, base, logSuffix)+ending, storage.Options{Capacity: s.capacity, Preallocate: cfg.Preallocate})
	if err != nil {
		return nil, err
	}
	// What an index of that name may hold is of a segment that is gone.
	for _, path := range []string{s.offsets.path, s.times.path, s.txns.path} {
		if err := removeFile(path); err != nil {
			return nil, errors.Join(err, s.data.Remove())
		}
	}
	return s, nil
}

func newSegment(dir string, base int64) *segment {
	return &segment{base: base, dir: dir, maxTimestamp: -1, maxOffset: base, firstTime: unknownTime,
		txns: newTxnIndex(segmentPath(dir, base, txnSuffix))}
}

// openSegment opens an existing segment, the last one for appends.
func openSegment(st storage.Storage, dir string, base int64, cfg *Config, now time.Time, last bool) (s *segment, err error) {
	s = newSegment(dir, base)
	s.capacity = cfg.segmentBytes()
	s.created = now
	if s.data, err = st.Open(segmentPath(dir, base, logSuffix), storage.Options{Capacity: s.capacity, ReadOnly: false}); err != nil {
		return nil, err
	}
	size := s.data.Size()
	if s.capacity = max(s.capacity, size); s.capacity > MaxSegmentBytes {
		return nil, errors.Join(fmt.Errorf("%w: segment %d has %d bytes, more than its index can address", ErrCorrupt, base, size), s.data.Close())
	}
	if !last {
		s.sealed = true
		if err := s.data.Seal(); err != nil {
			return nil, errors.Join(err, s.data.Close())
		}
	}
	s.size.Store(size)
	open := func(suffix string, width int) *index {
		path := segmentPath(dir, base, suffix)
		x, e := openIndex(path, width)
		absent := errors.Is(e, fs.ErrNotExist)
		switch {
		case e == nil:
			return x
		case absent && size == 0:
		case absent || errors.Is(e, errDamaged):
			s.damaged = true
		default:
			err = errors.Join(err, e)
		}
		return newIndex(path, width, absent)
	}
	s.offsets, s.times = open(indexSuffix, offsetWidth), open(timeSuffix, timeWidth)
	if err != nil {
		return nil, errors.Join(err, s.data.Close())
	}
	return s, nil
}

// plausible says whether the last entries of a sealed segment's indexes lie within it.
func (s *segment) plausible() bool {
	span := s.next.Load() - s.base
	if e, ok := s.offsets.last(); ok {
		if relative, position := offsetEntry(e[:]); int64(relative) >= span || int64(position) >= s.size.Load() || relative < 0 || position < 0 {
			return false
		}
	}
	if e, ok := s.times.last(); ok {
		if ts, relative := timeEntry(e[:]); int64(relative) >= span || relative < 0 || ts < 0 {
			return false
		}
	}
	return true
}

// lostEntries says whether an offset index without entries should have some: what it finds would be right, but every look
// into the segment would begin at its first batch.
func (s *segment) lostEntries(cfg *Config) (bool, error) {
	interval := int64(cfg.IndexIntervalBytes)
	if s.offsets.len() > 0 || s.size.Load() <= interval {
		return false, nil
	}
	r := newHeaders(s, s.size.Load())
	defer r.done()
	for pos := int64(0); ; {
		h, err := r.at(pos)
		if err != nil {
			if isIO(err) {
				return false, err
			}
			return false, nil // the end, or what is found out by who needs it
		}
		if pos > interval {
			return true, nil
		}
		pos += int64(h.Size())
	}
}

// note takes a batch that was appended at pos into the indexes. The position was appended already, but is not yet public.
func (s *segment) note(h record.Header, pos int64, cfg *Config) error {
	last := h.LastOffset()
	if largestTime(h) > s.maxTimestamp {
		s.maxTimestamp, s.maxOffset = h.MaxTimestamp, last
	}
	if pos == 0 {
		s.firstTime = h.MaxTimestamp
	}
	var err error
	if s.sinceIndex > int64(cfg.IndexIntervalBytes) {
		var e [offsetWidth]byte
		putOffsetEntry(e[:], int32(last-s.base), int32(pos))
		err = errors.Join(s.offsets.add(e[:]), s.noteTime())
		s.sinceIndex = 0
	}
	s.sinceIndex += int64(h.Size())
	return err
}

// largestTime is the largest timestamp of a batch's records. What compaction emptied still bears one, which nobody can find.
func largestTime(h record.Header) int64 {
	if h.Count <= 0 {
		return record.NoTimestamp
	}
	return h.MaxTimestamp
}

// noteTime puts the largest timestamp into the time index, unless it is there.
func (s *segment) noteTime() error {
	if s.maxTimestamp < 0 {
		return nil
	}
	if e, ok := s.times.last(); ok {
		if ts, _ := timeEntry(e[:]); ts >= s.maxTimestamp {
			return nil
		}
	}
	var e [timeWidth]byte
	putTimeEntry(e[:], s.maxTimestamp, int32(s.maxOffset-s.base))
	return s.times.add(e[:])
}

// publish shows readers what was appended.
func (s *segment) publish(next, size int64) {
	s.next.Store(next)
	s.size.Store(size)
}

// shouldRoll says whether n bytes that end with offset last and have the largest timestamp ts need a new segment.
func (s *segment) shouldRoll(n int64, last, ts int64, now time.Time, cfg *Config) (bool, error) {
	size := s.size.Load()
	switch {
	case size == 0:
		// An empty segment takes anything that the width of its offsets allows.
		return last-s.base > math.MaxInt32, nil
	case size+n > min(cfg.segmentBytes(), s.capacity), last-s.base > math.MaxInt32:
		return true, nil
	case s.offsets.len() >= cfg.offsetEntries(), s.times.len() >= cfg.timeEntries():
		return true, nil
	}
	first, err := s.firstTimestamp()
	if err != nil {
		return false, err
	}
	waited := now.Sub(s.created).Milliseconds()
	if first >= 0 {
		waited = max(ts, 0) - first
	}
	return waited > cfg.segmentMs()-s.jitter, nil
}

// firstTimestamp is the largest timestamp of the first batch, which time-based rolling counts from; -1 without one.
func (s *segment) firstTimestamp() (int64, error) {
	if s.firstTime == unknownTime {
		size := s.size.Load()
		if size == 0 {
			return -1, nil
		}
		r := newHeaders(s, size)
		defer r.done()
		h, err := r.at(0)
		if err != nil {
			return 0, err
		}
		s.firstTime = h.MaxTimestamp
	}
	return s.firstTime, nil
}

// seal ends a segment: its indexes are complete and in their files, the data file has its true length.
func (s *segment) seal() error {
	if err := s.settleTimes(); err != nil {
		return err
	}
	if err := errors.Join(s.noteTime(), s.offsets.write(), s.times.write()); err != nil {
		return err
	}
	s.sealed = true
	return s.data.Seal()
}

// sync makes the segment durable, with its indexes when it is sealed: only those of the last segment are rebuilt after a
// crash.
func (s *segment) sync(withIndexes bool) error {
	if err := s.data.Sync(); err != nil {
		return err
	}
	if withIndexes {
		return errors.Join(s.offsets.sync(), s.times.sync(), s.txns.sync())
	}
	return nil
}

// suffixes are those of the files beside a segment's data, of which some need not exist.
func (s *segment) suffixes() []string { return []string{indexSuffix, timeSuffix, txnSuffix} }

// remove deletes the segment's files at once. Views in use stay readable.
func (s *segment) remove() error {
	err := s.data.Remove()
	for _, suffix := range s.suffixes() {
		if e := os.Remove(segmentPath(s.dir, s.base, suffix)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// rename gives the segment's files another ending, the data first: as long as those have their old name, all of them do. It
// stays readable.
func (s *segment) rename(ending string) error {
	if err := s.data.Rename(segmentPath(s.dir, s.base, logSuffix) + ending); err != nil {
		return err
	}
	for _, x := range []struct {
		rename func(path string) error
		suffix string
	}{{s.offsets.rename, indexSuffix}, {s.times.rename, timeSuffix}, {s.txns.rename, txnSuffix}} {
		if err := x.rename(segmentPath(s.dir, s.base, x.suffix) + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// retire renames the segment's files to .deleted and returns what removes them, once. It is still readable until then.
func (s *segment) retire() (func() error, error) {
	if err := s.rename(deletedSuffix); err != nil {
		return nil, err
	}
	return sync.OnceValue(func() error {
		err := s.data.Remove()
		for _, suffix := range s.suffixes() {
			err = errors.Join(err, removeFile(segmentPath(s.dir, s.base, suffix)+deletedSuffix))
		}
		return err
	}), nil
}

// openSwap opens a segment's data only, for what its batches say.
func openSwap(st storage.Storage, path string, base int64) (*segment, error) {
	s := newSegment(filepath.Dir(path), base)
	var err error
	if s.data, err = st.Open(path, storage.Options{ReadOnly: true}); err != nil {
		return nil, err
	}
	s.size.Store(s.data.Size())
	return s, nil
}

// lastOffset is the offset behind the segment's last batch, found by walking all of them.
func (s *segment) lastOffset() (next int64, err error) {
	next = s.base
	err = s.each(0, func(_ int64, h record.Header) error {
		next = h.LastOffset() + 1
		return nil
	})
	return next, err
}

func closeAfter(s *segment, err error) error { return errors.Join(err, s.data.Close()) }
