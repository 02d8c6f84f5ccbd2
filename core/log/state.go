package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/barnabas-mq/barnabas/core/record"
)

// restoreProducers finds what was known of the producers at the end of the log, or at the base of the first segment that is
// about to be checked: the newest good snapshot up to there, and the batches behind it.
func (l *Log) restoreProducers(segments []*segment, checked int) error {
	var to int64
	if checked < len(segments) {
		to = segments[checked].base
	} else {
		to = segments[len(segments)-1].next.Load()
	}
	from, err := l.loadSnapshot(to)
	if err != nil {
		return err
	}
	for i := max(0, segmentOf(segments[:checked], from)); i < checked && from < to; i++ {
		if err := l.replaySegment(segments[i], from, to); err != nil {
			return err
		}
	}
	return nil
}

// replaySegment takes the batches of one segment within [from, to) into the producers' state.
func (l *Log) replaySegment(s *segment, from, to int64) error {
	if size := s.size.Load(); size == 0 || s.next.Load() <= from {
		return nil
	}
	pos := int64(0)
	if from > s.base {
		r := newHeaders(s, s.size.Load())
		var err error
		pos, _, err = s.locate(r, from)
		if errors.Is(err, errDamaged) {
			if err = l.mend(s, err); err == nil {
				pos, _, err = s.locate(r, from)
			}
		}
		r.done()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.each(pos, func(pos int64, h record.Header) error {
		if h.ProducerID < 0 || h.BaseOffset >= to {
			return nil
		}
		var b record.Batch
		if h.Attributes.Control() {
			var err error
			if b, err = s.batch(pos, h); err != nil {
				return err
			}
		}
		return l.replay(nil, b, h)
	})
}

// loadSnapshot makes the producers what the newest good snapshot up to an offset says, and returns the snapshot's offset: 0
// when there is none. Later and bad snapshots are removed.
func (l *Log) loadSnapshot(upTo int64) (int64, error) {
	l.producers.Clear()
	for n := len(l.snapshots); n > 0; n-- {
		offset := l.snapshots[n-1]
		path := segmentPath(l.Dir(), offset, snapshotSuffix)
		if offset <= upTo {
			b, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
			if err == nil {
				err = l.producers.ReadSnapshot(b)
			}
			if err == nil {
				return offset, nil
			}
			l.o.Logger.Warn("producer snapshot dropped", "topic", l.o.Topic, "partition", l.o.Partition, "offset", offset, "err", err)
		}
		if err := removeFile(path); err != nil {
			return 0, err
		}
		l.snapshots = l.snapshots[:n-1]
	}
	return 0, nil
}

// takeSnapshot writes what is known of the producers as of an offset. The caller holds mu.
func (l *Log) takeSnapshot(offset int64, sync bool) error {
	at, have := slices.BinarySearch(l.snapshots, offset)
	if have {
		return nil
	}
	if l.producers.Len() == 0 && offset == (*l.segments.Load())[0].base {
		return nil // nothing was ever known
	}
	path := segmentPath(l.Dir(), offset, snapshotSuffix)
	if err := os.WriteFile(path, l.producers.AppendSnapshot(nil), 0o644); err != nil {
		return fmt.Errorf("producer snapshot: %w", err)
	}
	l.snapshots = slices.Insert(l.snapshots, at, offset)
	if sync {
		return syncFile(path)
	}
	l.unsynced = append(l.unsynced, path)
	return nil
}

// dropStraySnapshots removes the snapshots that belong to no segment, but for the newest one if it lies in the last segment.
func (l *Log) dropStraySnapshots() error {
	segments := *l.segments.Load()
	last := segments[len(segments)-1].base
	return l.dropSnapshots(func(i int, offset int64) bool {
		if i == len(l.snapshots)-1 && offset >= last {
			return false
		}
		at := segmentOf(segments, offset)
		return at < 0 || segments[at].base != offset
	})
}

// dropSnapshots removes those that drop says.
func (l *Log) dropSnapshots(drop func(i int, offset int64) bool) error {
	kept := make([]int64, 0, len(l.snapshots))
	var err error
	for i, offset := range l.snapshots {
		if !drop(i, offset) {
			kept = append(kept, offset)
			continue
		}
		path := segmentPath(l.Dir(), offset, snapshotSuffix)
		if e := removeFile(path); e != nil {
			err = errors.Join(err, e)
			kept = append(kept, offset)
			continue
		}
		l.unsynced = slices.DeleteFunc(l.unsynced, func(p string) bool { return p == path })
	}
	l.snapshots = kept
	return err
}

// removeFile removes a file that may be gone already.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
