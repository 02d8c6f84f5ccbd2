package log

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// DeleteOldSegments deletes what the topic's retention no longer asks for, oldest first, and says how many segments that
// were: segments wholly below the start offset; then, with cleanup.policy delete, those that retention.bytes can spare, and
// those whose largest timestamp is older than retention.ms. It stops at the first segment that must stay, and never deletes
// one that reaches above the high watermark. Their files are renamed to .deleted and removed after file.delete.delay.ms.
func (l *Log) DeleteOldSegments(now time.Time) (int, error) {
	l.mu.Lock()
	before := len(l.retired)
	n, err := l.deleteOld(now)
	gone := slices.Clone(l.retired[before:])
	l.mu.Unlock()
	l.bury(gone)
	return n, err
}

// bury removes the files of retired segments after file.delete.delay.ms. The caller doesn't hold mu.
func (l *Log) bury(gone []retired) {
	for _, r := range gone {
		l.later(func() error {
			l.mu.Lock()
			l.retired = slices.DeleteFunc(l.retired, func(x retired) bool { return x.segment == r.segment })
			l.mu.Unlock()
			return r.remove()
		})
	}
}

// retired is a segment that was deleted, whose files are still there for who reads it.
type retired struct {
	segment *segment
	remove  func() error
}

// deleteOld is DeleteOldSegments for who holds mu; what was deleted is added to l.retired.
func (l *Log) deleteOld(now time.Time) (int, error) {
	if err := l.Err(); err != nil {
		return 0, err
	}
	cfg := l.cfg.Load()
	n, err := l.drop("below the start offset", func(_ *segment, next int64) (bool, error) { return next <= l.start.Load(), nil })
	if err != nil || !cfg.Delete {
		return n, err
	}
	if cfg.RetentionBytes >= 0 {
		spare := l.Size() - cfg.RetentionBytes
		more, err := l.drop("retention.bytes", func(s *segment, _ int64) (bool, error) {
			spare -= s.size.Load()
			return spare >= 0, nil
		})
		if n += more; err != nil {
			return n, err
		}
	}
	if cfg.RetentionMs >= 0 {
		more, err := l.drop("retention.ms", func(s *segment, _ int64) (bool, error) {
			ts, err := l.lastTime(s)
			return now.UnixMilli()-ts > cfg.RetentionMs, err
		})
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}

// lastTime is when a segment's records are from: its largest timestamp, or without one when its file was last written.
func (l *Log) lastTime(s *segment) (int64, error) {
	if err := l.mend(s, s.settleTimes()); err != nil {
		return 0, err
	}
	if s.maxTimestamp >= 0 {
		return s.maxTimestamp, nil
	}
	st, err := os.Stat(segmentPath(l.Dir(), s.base, logSuffix))
	if err != nil {
		return 0, err
	}
	return st.ModTime().UnixMilli(), nil
}

// drop deletes segments from the oldest on, as long as old says so. The caller holds mu.
func (l *Log) drop(why string, old func(s *segment, next int64) (bool, error)) (int, error) {
	segments := *l.segments.Load()
	n := 0
	for i, s := range segments {
		next := l.end.Load()
		if i+1 < len(segments) {
			next = segments[i+1].base
		}
		// An empty last segment stays; what is above the high watermark may still be cut by a leader.
		if next > l.hw.Load() || i == len(segments)-1 && s.size.Load() == 0 {
			break
		}
		yes, err := old(s, next)
		if err != nil {
			return 0, l.wrap(err)
		}
		if !yes {
			break
		}
		n++
	}
	if n == 0 {
		return 0, nil
	}
	if n == len(segments) {
		if err := l.roll(l.end.Load(), 0); err != nil {
			return 0, err
		}
		segments = *l.segments.Load()
	}
	// The start moves first: nobody finds a segment that is about to go.
	if err := l.advance(segments[n].base); err != nil {
		return 0, err
	}
	l.o.Logger.Info("deleting old segments", "topic", l.o.Topic, "partition", l.o.Partition, "why", why, "segments", n, "start", segments[n].base)
	l.setSegments(segments[n:])
	for _, s := range segments[:n] {
		remove, err := s.retire()
		if err != nil {
			return 0, l.fail(fmt.Errorf("delete segment %d: %w", s.base, err))
		}
		l.retired = append(l.retired, retired{s, remove})
	}
	first := segments[n].base
	err := l.dropSnapshots(func(_ int, offset int64) bool { return offset < first })
	if err != nil {
		return n, l.fail(errors.Join(errors.New("delete snapshots"), err))
	}
	return n, nil
}
