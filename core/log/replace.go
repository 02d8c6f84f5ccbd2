package log

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// ErrReplaced says that the segments to be replaced are no longer those of the log: it was truncated, or they were deleted.
var ErrReplaced = errors.New("segments changed meanwhile")

// Replacement is a segment that is being written to take the place of some neighbouring ones: what compaction makes of them.
// It is used by one goroutine, and ended by Commit or Abort. A crash before Commit leaves the log as it was, one during
// Commit either that or the new segment; nothing in between.
type Replacement struct {
	log     *Log
	sources []*segment
	s       *segment
	next    int64
}

// Replace begins a replacement of the segments with the base offsets from first to last. ErrReplaced when they aren't there
// or the last one is the active one, which can't be replaced.
func (l *Log) Replace(first, last int64) (*Replacement, error) {
	if err := l.Err(); err != nil {
		return nil, err
	}
	segments := *l.segments.Load()
	from, to := segmentOf(segments, first), segmentOf(segments, last)
	if from < 0 || to < from || to >= len(segments)-1 || segments[from].base != first || segments[to].base != last {
		return nil, l.wrap(fmt.Errorf("%w: none from %d to %d", ErrReplaced, first, last))
	}
	r := &Replacement{log: l, sources: segments[from : to+1], next: first}
	cfg := l.cfg.Load()
	size := int64(0)
	for _, s := range r.sources {
		size += s.size.Load()
	}
	s := newSegment(l.Dir(), first)
	s.capacity = min(max(cfg.segmentBytes(), size), MaxSegmentBytes)
	s.created, s.settled = l.o.Now(), true
	s.next.Store(first)
	s.offsets = newIndex(segmentPath(s.dir, first, indexSuffix)+cleanedSuffix, offsetWidth)
	s.times = newIndex(segmentPath(s.dir, first, timeSuffix)+cleanedSuffix, timeWidth)
	s.txns = newTxnIndex(segmentPath(s.dir, first, txnSuffix) + cleanedSuffix)
	s.txns.loaded = true
	// What an earlier replacement left when it failed is worth nothing.
	path := segmentPath(s.dir, first, logSuffix) + cleanedSuffix
	err := errors.Join(removeFile(path), removeFile(s.txns.path), s.offsets.reset(), s.times.reset())
	if err == nil {
		s.data, err = l.o.Storage.Create(path, storage.Options{Capacity: s.capacity})
	}
	if err != nil {
		return nil, l.fail(fmt.Errorf("replace segment %d: %w", first, err))
	}
	r.s = s
	return r, nil
}

// Append writes a batch behind those written before. Its offsets, leader epoch and checksum stay as they are. ErrFull of
// the storage when it doesn't fit, after which what was written so far can still be committed or given up.
func (r *Replacement) Append(b record.Batch) error {
	h := b.Header()
	if h.BaseOffset < r.next || !r.s.holds(h) {
		return r.log.wrap(fmt.Errorf("%w: offsets %d to %d, the next is %d", ErrUnexpectedOffset, h.BaseOffset, h.LastOffset(), r.next))
	}
	pos, err := r.s.data.Append(b)
	if errors.Is(err, storage.ErrFull) {
		return err
	}
	if err == nil {
		err = r.s.note(h, pos, r.log.cfg.Load())
	}
	if err != nil {
		return r.log.fail(fmt.Errorf("replace segment %d: %w", r.s.base, err))
	}
	r.next = h.LastOffset() + 1
	r.s.publish(r.next, pos+int64(len(b)))
	return nil
}

// Size is the number of bytes appended.
func (r *Replacement) Size() int64 { return r.s.size.Load() }

// KeepAborted takes the aborted transactions of the replaced segments over, those that keep says.
func (r *Replacement) KeepAborted(keep func(t AbortedTxn, lastOffset int64) bool) error {
	for _, s := range r.sources {
		s.txns.mu.Lock()
		err := s.txns.load()
		entries := slices.Clone(s.txns.entries)
		s.txns.mu.Unlock()
		for _, e := range entries {
			if err == nil && keep(AbortedTxn{e.producerID, e.firstOffset}, e.lastOffset) {
				err = r.s.txns.add(e)
			}
		}
		if err != nil {
			return r.log.fail(fmt.Errorf("replace segment %d: %w", r.s.base, err))
		}
	}
	return nil
}

// Abort gives up what was written.
func (r *Replacement) Abort() error {
	return errors.Join(r.s.data.Remove(), removeFile(r.s.offsets.path), removeFile(r.s.times.path), removeFile(r.s.txns.path))
}

// Commit makes what was written durable and puts it in the place of the old segments, which are removed after
// file.delete.delay.ms. ErrReplaced, with the log as it was, when they have changed meanwhile.
func (r *Replacement) Commit() error {
	l := r.log
	if err := r.settle(); err != nil {
		return l.fail(fmt.Errorf("replace segment %d: %w", r.s.base, err))
	}
	l.mu.Lock()
	err := r.swap()
	var gone []retired
	if err == nil {
		gone = slices.Clone(l.retired[len(l.retired)-len(r.sources):])
	}
	l.mu.Unlock()
	if errors.Is(err, ErrReplaced) {
		return errors.Join(l.wrap(err), r.Abort())
	}
	if err != nil {
		return err
	}
	l.forget(gone)
	return nil
}

// settle makes the new files whole and durable, as old as those they replace.
func (r *Replacement) settle() error {
	if err := r.s.seal(); err != nil {
		return err
	}
	if err := r.s.sync(true); err != nil {
		return err
	}
	// Retention goes by the file's time where records have none.
	last := r.sources[len(r.sources)-1]
	if st, err := os.Stat(segmentPath(last.dir, last.base, logSuffix)); err == nil {
		return os.Chtimes(segmentPath(r.s.dir, r.s.base, logSuffix)+cleanedSuffix, st.ModTime(), st.ModTime())
	}
	return nil
}

// swap is the part of Commit under the log's lock: .cleaned becomes .swap, after which a crash completes the replacement;
// the old segments become .deleted; .swap takes the final names.
func (r *Replacement) swap() error {
	l := r.log
	if err := l.Err(); err != nil {
		return err
	}
	segments := *l.segments.Load()
	at := slices.Index(segments, r.sources[0])
	if at < 0 || at+len(r.sources) >= len(segments) || !slices.Equal(segments[at:at+len(r.sources)], r.sources) {
		return fmt.Errorf("%w: from %d on", ErrReplaced, r.s.base)
	}
	failed := func(err error) error { return l.fail(fmt.Errorf("replace segment %d: %w", r.s.base, err)) }
	if err := errors.Join(r.s.rename(swapSuffix), syncPath(r.s.dir)); err != nil {
		return failed(err)
	}
	r.s.durable = true
	l.setSegments(slices.Concat(segments[:at], []*segment{r.s}, segments[at+len(r.sources):]))
	for _, s := range r.sources {
		remove, err := s.retire()
		if err != nil {
			return failed(err)
		}
		l.retired = append(l.retired, retired{s, remove})
	}
	if err := errors.Join(r.s.rename(""), syncPath(r.s.dir)); err != nil {
		return failed(err)
	}
	return nil
}
