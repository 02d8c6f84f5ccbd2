package log

import (
	"errors"
	"fmt"
	"slices"
)

// replace puts a cleaned segment, which is complete and durable, in the place of those that it was made of. done says whether
// the files of s may have other names by now: then they are the log's. ErrInterrupted when the log isn't what it was.
//
// Its files are called .cleaned up to here. Whatever moment a crash picks, the log is opened with the old segments or with
// the new one (see finishSwaps):
//
//  1. .cleaned becomes .swap. With one .cleaned left, what is called .swap counts for nothing.
//  2. The old segments become .deleted. All of them are found by the offsets in s, whichever still have their names.
//  3. .swap becomes the final name, the data first: before they have it, the indexes under the final names are the old ones.
//  4. The names are made durable. Only then CleanedTo may move.
func (l *Log) replace(old []*segment, s *segment, cuts int64) (done bool, err error) {
	gone, done, err := l.swap(old, s, cuts)
	if err != nil {
		return done, err
	}
	if err := syncPath(l.Dir()); err != nil {
		return true, l.fail(fmt.Errorf("compaction: %w", err))
	}
	l.bury(gone)
	return true, nil
}

// swap is the part of replace that appends wait for.
func (l *Log) swap(old []*segment, s *segment, cuts int64) (gone []retired, done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return nil, false, err
	}
	segments := *l.segments.Load()
	at := segmentOf(segments, s.base)
	end := at + len(old)
	if at < 0 || l.cuts.Load() != cuts || end >= len(segments) || !slices.Equal(segments[at:end], old) {
		return nil, false, ErrInterrupted
	}
	if err := l.unretire(old); err != nil {
		return nil, false, err
	}
	published := false
	fail := func(err error) ([]retired, bool, error) {
		if !published {
			err = errors.Join(err, s.data.Close())
		}
		return nil, true, l.fail(fmt.Errorf("compaction of segment %d: %w", s.base, err))
	}
	// Earlier snapshots may know of transactions whose markers are cleaned away, and nothing would end them any more. What the log
	// holds from its beginning on is enough to tell who produced what.
	next := segments[end].base
	if err := l.dropSnapshots(func(_ int, offset int64) bool { return offset < next }); err != nil {
		return fail(err)
	}
	if err := s.rename(swapSuffix); err != nil {
		return fail(err)
	}
	if err := syncPath(l.Dir()); err != nil {
		return fail(err)
	}
	for _, o := range old {
		remove, err := o.retire()
		if err != nil {
			return fail(err)
		}
		gone = append(gone, retired{o, remove})
	}
	if err := s.rename(""); err != nil {
		return fail(err)
	}
	s.next.Store(next)
	l.retired = append(l.retired, gone...)
	published = true
	l.setSegments(slices.Concat(segments[:at], []*segment{s}, segments[end:]))
	return gone, true, nil
}

// unretire removes what was retired from earlier cleanings under the names that the files of old are about to get.
func (l *Log) unretire(old []*segment) error {
	var err error
	for _, o := range old {
		l.retired = slices.DeleteFunc(l.retired, func(r retired) bool {
			if r.segment.base != o.base {
				return false
			}
			err = errors.Join(err, r.remove())
			return true
		})
	}
	return err
}
