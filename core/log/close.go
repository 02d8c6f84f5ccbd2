package log

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Close ends the log: what was appended is durable, indexes and segment files have their exact lengths, and a snapshot of
// the producers lies at the end, so that the next Open with CleanShutdown reads next to nothing. Calls that come later give
// ErrClosed; views in use stay readable. After an error, or of a log that has failed, everything is given back as well, but
// the log must not be opened as clean. Closing twice is fine. ctx bounds how long is waited for a sync that already runs.
func (l *Log) Close(ctx context.Context) error {
	if l.closed.Load() {
		return nil
	}
	failed := l.failure.Load()
	if failed == nil {
		if err := l.Flush(ctx, l.end.Load()); err != nil {
			return errors.Join(err, l.release(false))
		}
	}
	if err := l.release(failed == nil); err != nil {
		return l.wrap(fmt.Errorf("close: %w", err))
	}
	if failed != nil {
		return *failed
	}
	return nil
}

// release gives all files back, after making them whole.
func (l *Log) release(whole bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Swap(true) {
		return nil
	}
	var err error
	segments := *l.segments.Load()
	if s := segments[len(segments)-1]; whole {
		err = l.finish(s)
	}
	for _, s := range segments {
		err = errors.Join(err, s.data.Close())
	}
	for _, r := range l.retired {
		err = errors.Join(err, r.segment.data.Close())
	}
	l.retired = nil
	return err
}

// finish makes the last segment and the snapshot at the end of the log durable. Nothing is written when nothing happened
// since the log was opened.
func (l *Log) finish(s *segment) error {
	end := l.end.Load()
	late := end > l.recovery.Load() // appended while Close waited for its sync
	if err := s.seal(); err != nil {
		return err
	}
	if late {
		for _, x := range *l.segments.Load() { // it may have been rolled, too
			if x.durable {
				continue
			}
			if err := x.sync(true); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(s.offsets.sync(), s.times.sync(), s.txns.sync()); err != nil {
		return err
	}
	before := len(l.snapshots)
	if err := l.takeSnapshot(end, true); err != nil {
		return err
	}
	for _, path := range l.unsynced {
		if err := syncFile(path); err != nil && !isNotExist(err) {
			return err
		}
	}
	// An epoch without records is not read back, so that a broker with a thousand idle partitions needn't sync each of them.
	renamed := false
	if n := len(l.epochs.entries); n > 0 && l.epochs.entries[n-1].Start < end {
		renamed = l.epochs.dirty
		if err := l.epochs.sync(); err != nil {
			return err
		}
	}
	if l.newFiles || renamed || len(l.snapshots) != before {
		if err := syncPath(l.Dir()); err != nil {
			return err
		}
	}
	if l.newDir {
		if err := syncPath(filepath.Dir(l.Dir())); err != nil {
			return err
		}
	}
	if end > l.recovery.Load() {
		l.recovery.Store(end)
		l.tell(Events.RecoveryPointMoved)
	}
	return nil
}

// Delete closes the log and gives it up: its directory is renamed, so that a log of the same name can be made at once, and
// removed after file.delete.delay.ms. What a crash leaves is removed when the log directory is opened.
func (l *Log) Delete() error {
	if err := l.release(false); err != nil {
		l.o.Logger.Warn("closing a log that is deleted", "topic", l.o.Topic, "partition", l.o.Partition, "err", err)
	}
	dir := l.Dir()
	to := filepath.Join(filepath.Dir(dir), deletedName(l.o.Topic, l.o.Partition, uuid.New()))
	if err := os.Rename(dir, to); err != nil {
		return l.wrap(fmt.Errorf("delete: %w", err))
	}
	l.dir.Store(&to)
	if err := syncPath(filepath.Dir(dir)); err != nil {
		return l.wrap(fmt.Errorf("delete: %w", err))
	}
	l.later(func() error { return os.RemoveAll(to) })
	return nil
}

// later runs f after file.delete.delay.ms, or at once without a scheduler. The caller doesn't hold mu.
func (l *Log) later(f func() error) {
	run := func() {
		if err := f(); err != nil {
			l.o.Logger.Warn("removing what was deleted", "topic", l.o.Topic, "partition", l.o.Partition, "err", err)
		}
	}
	if l.o.Scheduler == nil {
		run()
		return
	}
	l.o.Scheduler.After(time.Duration(l.cfg.Load().FileDeleteDelayMs)*time.Millisecond, run)
}

// maxName is how long the name of a file may be.
const maxName = 255

// deletedName is the name of a directory that is to be removed: topic-partition.<32 hex digits>-delete, the topic cut so
// that the name isn't too long.
func deletedName(topic string, partition int32, id uuid.UUID) string {
	suffix := fmt.Sprintf("-%d.%s%s", partition, hex.EncodeToString(id[:]), deleteSuffix)
	return topic[:min(len(topic), maxName-len(suffix))] + suffix
}

const deleteSuffix = "-delete"
