package log

import (
	"errors"
	"fmt"
	"io"
)

// TruncateTo removes all records from an offset on, with the whole batch that holds it if that begins below. High
// watermark, start and recovery point move back with the end. Views of what was cut hold undefined bytes. An offset at or
// behind the end removes nothing but leader epochs that begin there or later.
func (l *Log) TruncateTo(offset int64) error {
	if offset < 0 {
		return l.wrap(fmt.Errorf("%w: %d", ErrOffsetOutOfRange, offset))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if segments := *l.segments.Load(); offset < segments[0].base {
		return l.failUnless(l.beginAnew(offset))
	}
	if offset < l.end.Load() {
		if err := l.truncate(offset); err != nil {
			return l.fail(fmt.Errorf("truncate: %w", err))
		}
	}
	return l.failUnless(l.cutEpochs(offset))
}

// cutEpochs removes the leader epochs from an offset on. The caller holds mu.
func (l *Log) cutEpochs(offset int64) error {
	err := l.epochs.cutEnd(offset)
	l.epoch.Store(l.epochs.latest())
	return err
}

func (l *Log) failUnless(err error) error {
	if err == nil {
		return nil
	}
	return l.fail(err)
}

// truncate cuts the log within its segments. The caller holds mu; readers start over.
func (l *Log) truncate(offset int64) error {
	defer l.cuts.Add(1)
	segments := *l.segments.Load()
	at := segmentOf(segments, offset)
	s := segments[at]
	r := newHeaders(s, s.size.Load())
	pos, h, err := s.locate(r, offset)
	if errors.Is(err, errDamaged) {
		if err = l.mend(s, err); err == nil {
			pos, h, err = s.locate(r, offset)
		}
	}
	r.done()
	end := offset
	switch {
	case err == io.EOF:
		pos = s.size.Load()
	case err != nil:
		return err
	case h.BaseOffset < offset:
		end = h.BaseOffset // its batch goes whole
	}
	l.cuts.Add(1)
	l.uncleaned(end)
	if l.start.Load() > end {
		l.start.Store(end)
		l.tell(Events.StartOffsetMoved)
	}
	l.end.Store(end)
	l.clampHighWatermark()
	if err := l.removeBehind(at); err != nil {
		return err
	}
	if err := s.truncate(pos, end); err != nil {
		return err
	}
	s.publish(end, pos)
	if s.sealed {
		err = l.unseal()
	} else if err = s.settle(l.cfg.Load()); errors.Is(err, errDamaged) {
		err = l.mend(s, err)
	}
	if err != nil {
		return err
	}
	l.active().next.Store(end)
	l.moveRecoveryPointBack(end)
	if err := l.restoreProducers(*l.segments.Load(), len(*l.segments.Load())); err != nil {
		return err
	}
	l.producers.Replicated(l.hw.Load())
	l.unstable.Store(l.producers.FirstUnstable())
	return nil
}

// removeBehind removes the segments behind one of them: from the end backwards, so that whatever moment a crash picks, what is left is a
// beginning of the log. The caller holds mu or is the only one, and cuts that segment afterwards.
func (l *Log) removeBehind(at int) error {
	segments := *l.segments.Load()
	if at == len(segments)-1 {
		return nil
	}
	for j := len(segments) - 1; j > at; j-- {
		if err := segments[j].remove(); err != nil {
			return err
		}
		l.setSegments(segments[:j:j])
	}
	return syncPath(l.Dir())
}

// moveRecoveryPointBack moves it to the end of what is left, if it is behind. The caller holds mu, or is the only one.
func (l *Log) moveRecoveryPointBack(end int64) {
	if l.recovery.Load() > end {
		l.recovery.Store(end)
		l.tell(Events.RecoveryPointMovedBack)
	}
}

// truncate cuts the segment's files at a position, where offset end is next.
func (s *segment) truncate(pos, end int64) error {
	s.size.Store(pos)
	s.firstTime = unknownTime
	if err := s.data.Truncate(pos); err != nil {
		return err
	}
	err := s.offsets.keep(func(e []byte) bool {
		_, position := offsetEntry(e)
		return int64(position) < pos
	})
	if err == nil {
		err = s.times.keep(func(e []byte) bool {
			_, relative := timeEntry(e)
			return s.base+int64(relative) < end
		})
	}
	if errors.Is(err, errDamaged) {
		err = errors.Join(s.offsets.reset(), s.times.reset())
	}
	return errors.Join(err, s.txns.cut(end))
}

// TruncateFully drops everything: the log is empty then, and the next record gets the offset start.
func (l *Log) TruncateFully(start int64) error {
	if start < 0 {
		return l.wrap(fmt.Errorf("%w: %d", ErrOffsetOutOfRange, start))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	return l.failUnless(l.beginAnew(start))
}

// beginAnew is TruncateFully for who holds mu. What the checkpoints say before the first file goes makes it safe to be interrupted: a log
// that ends before its start offset is begun there when it is opened (see recover), and what is left of one that doesn't is a beginning of
// it, of which nothing counts as durable that may not be.
func (l *Log) beginAnew(start int64) error {
	if start > l.end.Load() {
		l.start.Store(start)
		l.tell(Events.BeginsAnew)
	}
	l.moveRecoveryPointBack(min(start, (*l.segments.Load())[0].base))
	if err := l.Err(); err != nil { // a checkpoint could not be written
		return err
	}
	if start > 0 { // where it begins is more than an empty log has to say
		if err := l.syncTopicID(); err != nil {
			return err
		}
	}
	return l.dropAll(start)
}

// dropAll does it. The caller holds mu or is the only one.
func (l *Log) dropAll(start int64) error {
	segments := *l.segments.Load()
	l.cuts.Add(1)
	defer l.cuts.Add(1)
	l.uncleaned(start)
	for j := len(segments) - 1; j >= 0; j-- {
		if err := segments[j].remove(); err != nil {
			return err
		}
	}
	if err := l.dropSnapshots(func(int, int64) bool { return true }); err != nil {
		return err
	}
	l.producers.Clear()
	l.unstable.Store(l.producers.FirstUnstable())
	// In this order also after a power failure: no file of before may be there beside the new one.
	if err := syncPath(l.Dir()); err != nil {
		return err
	}
	if err := l.startOver(start); err != nil {
		return err
	}
	l.end.Store(start)
	l.start.Store(start)
	l.hw.Store(start)
	l.moveRecoveryPointBack(start)
	l.recovery.Store(start)
	l.tell(Events.RecoveryPointMoved)
	l.tell(Events.StartOffsetMoved)
	return l.cutEpochs(0)
}

// AdvanceStartOffset makes what lies below an offset unreadable (DeleteRecords, or a follower whose leader did): segments
// wholly below it are deleted with the next DeleteOldSegments. It returns the log's start, which doesn't move back.
// ErrOffsetOutOfRange above the high watermark.
func (l *Log) AdvanceStartOffset(offset int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return l.start.Load(), err
	}
	if hw := l.hw.Load(); offset > hw {
		return l.start.Load(), l.wrap(fmt.Errorf("%w: %d is above the high watermark %d", ErrOffsetOutOfRange, offset, hw))
	}
	err := l.advance(offset)
	return l.start.Load(), err
}

// advance moves the start. The caller holds mu.
func (l *Log) advance(offset int64) error {
	if offset <= l.start.Load() {
		return nil
	}
	l.start.Store(offset)
	l.tell(Events.StartOffsetMoved)
	return l.failUnless(l.epochs.cutStart(offset))
}

func (l *Log) tell(what func(Events, *Log)) {
	if l.o.Events != nil {
		what(l.o.Events, l)
	}
}
