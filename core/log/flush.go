package log

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Flush makes the log durable up to an offset, exclusively. All who wait at the same time share one sync. After an error the
// log is failed for good, except when it is ctx's: then somebody else's sync goes on.
func (l *Log) Flush(ctx context.Context, upTo int64) error {
	for {
		if p := l.failure.Load(); p != nil {
			return *p
		}
		if l.recovery.Load() >= min(upTo, l.end.Load()) {
			return nil
		}
		if l.closed.Load() {
			return l.wrap(ErrClosed)
		}
		l.flushMu.Lock()
		wait := l.flushing
		if wait == nil && l.recovery.Load() >= min(upTo, l.end.Load()) {
			l.flushMu.Unlock()
			return nil // by a sync that ended between the two looks
		}
		if wait == nil {
			done := make(chan struct{})
			l.flushing = done
			l.flushMu.Unlock()
			err := l.sync()
			l.flushMu.Lock()
			l.flushing = nil
			l.flushMu.Unlock()
			close(done)
			if err != nil {
				return err
			}
			continue
		}
		l.flushMu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sync makes all that was appended before durable, and moves the recovery point there. One runs at a time.
func (l *Log) sync() error {
	began := time.Now()
	l.mu.Lock()
	end, cuts := l.end.Load(), l.cuts.Load()
	var segments []*segment
	sealed := 0
	for _, s := range *l.segments.Load() {
		if s.sealed && !s.durable {
			sealed++
		}
		if !s.durable {
			segments = append(segments, s)
		}
	}
	small, newFiles, newDir, epochs := l.unsynced, l.newFiles, l.newDir, l.epochs.dirty
	l.unsynced, l.newFiles, l.newDir, l.epochs.dirty = nil, false, false, false
	l.mu.Unlock()

	err := func() error {
		for i, s := range segments {
			if err := s.sync(i < sealed); err != nil && !l.goneByNow(s) {
				return fmt.Errorf("sync segment %d: %w", s.base, err)
			}
		}
		for _, path := range small {
			if err := syncFile(path); err != nil && !isNotExist(err) {
				return err
			}
		}
		if epochs {
			if err := syncFile(l.epochs.path); err != nil {
				return err
			}
		}
		var err error
		if newFiles || epochs { // a rename is in the directory
			err = syncPath(l.Dir())
		}
		if newDir {
			err = errors.Join(err, syncPath(filepath.Dir(l.Dir())))
		}
		return err
	}()

	if err == nil && l.o.Flushed != nil {
		l.o.Flushed(time.Since(began))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if l.closed.Load() {
			return l.wrap(ErrClosed)
		}
		return l.fail(err)
	}
	if l.cuts.Load() != cuts {
		return nil // what was synced isn't what is there now: whoever waits syncs again
	}
	for _, s := range segments[:sealed] {
		s.durable = true
	}
	// A segment that was sealed meanwhile may lack its indexes on the device, and is not checked after a crash once the
	// recovery point has passed it.
	for _, s := range *l.segments.Load() {
		if s.sealed && !s.durable {
			end = min(end, s.base)
		}
	}
	if end == l.end.Load() {
		l.dirtySince.Store(0)
	} else if l.dirtySince.Load() != 0 {
		l.dirtySince.Store(began.UnixMilli())
	}
	if end > l.recovery.Load() {
		l.recovery.Store(end)
		l.tell(Events.RecoveryPointMoved)
	}
	return nil
}

// goneByNow is gone for who doesn't hold mu. It waits for a truncation that is under way: that one removes files before it shows what is
// left of the log.
func (l *Log) goneByNow(s *segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone(s)
}

// gone reports whether a segment has left the log, so that its files may be gone, too.
func (l *Log) gone(s *segment) bool {
	for _, x := range *l.segments.Load() {
		if x == s {
			return false
		}
	}
	return true
}
