package log

import (
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/core/record"
)

// TimeOffset is a record found by its timestamp.
type TimeOffset struct {
	Offset    int64
	Timestamp int64
	// LeaderEpoch is that of the record's batch, -1 when it has none.
	LeaderEpoch int32
}

// OffsetForTimestamp finds the first record, by offset, whose timestamp is at least ts. It must lie below upTo.
func (l *Log) OffsetForTimestamp(ts, upTo int64) (at TimeOffset, found bool, err error) {
	return l.search(func(segments []*segment) (TimeOffset, bool, *segment, error) {
		start := l.start.Load()
		for i, s := range segments {
			if s.base >= upTo || i+1 < len(segments) && segments[i+1].base <= start {
				continue
			}
			if largest, _, err := l.largest(s); err != nil {
				return TimeOffset{}, false, s, err
			} else if largest < ts {
				continue
			}
			at, found, err := l.searchSegment(s, ts, max(start, s.base))
			if err != nil || found {
				return at, found && at.Offset < upTo, s, err
			}
		}
		return TimeOffset{}, false, nil, nil
	})
}

// MaxTimestamp finds the record with the largest timestamp of the log; the first one if there are several. There is none
// unless it lies below upTo.
func (l *Log) MaxTimestamp(upTo int64) (at TimeOffset, found bool, err error) {
	return l.search(func(segments []*segment) (TimeOffset, bool, *segment, error) {
		best, bestIn := int64(-1), -1
		for i, s := range segments {
			largest, _, err := l.largest(s)
			if err != nil {
				return TimeOffset{}, false, s, err
			}
			if largest > best {
				best, bestIn = largest, i
			}
		}
		if bestIn < 0 {
			return TimeOffset{}, false, nil, nil
		}
		s := segments[bestIn]
		at, found, err := l.searchSegment(s, best, max(l.start.Load(), s.base))
		return at, found && at.Offset < upTo, s, err
	})
}

// search runs a look-up again when an index turned out damaged or something was cut off meanwhile.
func (l *Log) search(look func([]*segment) (TimeOffset, bool, *segment, error)) (TimeOffset, bool, error) {
	for try := 0; ; try++ {
		if l.closed.Load() {
			return TimeOffset{}, false, l.wrap(ErrClosed)
		}
		cuts := l.cuts.Load()
		segments := *l.segments.Load()
		at, found, s, err := look(segments)
		again := l.cuts.Load() != cuts || err != nil && l.cutSince(cuts)
		if err != nil && s != nil && !again && try < maxTries {
			if errors.Is(err, errDamaged) {
				again = l.mendNow(s, err) == nil
			} else {
				again = l.gone(s)
			}
		}
		if again && try < maxTries {
			continue
		}
		if err != nil && l.closed.Load() {
			err = ErrClosed
		}
		if err != nil {
			return TimeOffset{}, false, l.wrap(err)
		}
		return at, found, nil
	}
}

// largest is a segment's largest timestamp, -1 for none, and the last offset of the batch that has it.
func (l *Log) largest(s *segment) (timestamp, offset int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := s.settleTimes(); err != nil {
		return 0, 0, err
	}
	return s.maxTimestamp, s.maxOffset, nil
}

// searchSegment finds the first record from an offset on whose timestamp is at least ts.
func (l *Log) searchSegment(s *segment, ts, from int64) (TimeOffset, bool, error) {
	e, ok, err := s.times.floor(func(e []byte) bool {
		t, _ := timeEntry(e)
		return t <= ts
	})
	if err != nil {
		return TimeOffset{}, false, err
	}
	r := newHeaders(s, s.size.Load())
	defer r.done()
	if ok {
		t, relative := timeEntry(e[:])
		_, h, err := s.locate(r, s.base+int64(relative))
		if err != nil && isIO(err) {
			return TimeOffset{}, false, err
		}
		if err != nil || relative < 0 || h.MaxTimestamp != t {
			return TimeOffset{}, false, fmt.Errorf("%w: entry of the time index of segment %d", errDamaged, s.base)
		}
		// Nothing before that batch has a larger timestamp than the entry's, which is at most ts.
		from = max(from, h.BaseOffset)
	}
	pos, h, err := s.locate(r, from)
	for ; err == nil; h, err = r.at(pos) {
		if h.MaxTimestamp >= ts {
			at, found, err := l.searchBatch(s, pos, h, ts, from)
			if err != nil || found {
				return at, found, err
			}
		}
		pos += int64(h.Size())
	}
	if err == io.EOF {
		err = nil
	}
	return TimeOffset{}, false, err
}

// searchBatch finds the first record of a batch, from an offset on, whose timestamp is at least ts.
func (l *Log) searchBatch(s *segment, pos int64, h record.Header, ts, from int64) (TimeOffset, bool, error) {
	if h.Attributes.LogAppendTime() && h.BaseOffset >= from && h.Count > 0 {
		return TimeOffset{h.BaseOffset, h.MaxTimestamp, h.LeaderEpoch}, true, nil
	}
	b, err := s.batch(pos, h)
	if err != nil {
		return TimeOffset{}, false, err
	}
	var at TimeOffset
	found := false
	err = l.o.Validator.Inflation().Do(record.DefaultPayloadLimit, func(limit int) error {
		for r, err := range b.Each(l.o.Codecs, limit) {
			if err != nil {
				return fmt.Errorf("records at %d: %w", h.BaseOffset, err)
			}
			if r.Timestamp >= ts && r.Offset >= from {
				at, found = TimeOffset{r.Offset, r.Timestamp, h.LeaderEpoch}, true
				return nil
			}
		}
		return nil
	})
	return at, found, err
}

// BatchTime is the time of the batch that holds an offset below upTo, or the first one behind it: the timestamp that the batch begins
// with, or its last one where the topic stamps batches or compaction has taken the first one's place. It reads a header and no records. ErrOffsetOutOfRange outside of the log.
func (l *Log) BatchTime(offset, upTo int64) (at TimeOffset, found bool, err error) {
	return l.search(func(segments []*segment) (TimeOffset, bool, *segment, error) {
		if start, end := l.start.Load(), l.end.Load(); offset < start || offset > end {
			return TimeOffset{}, false, nil, fmt.Errorf("%w: %d is not within %d and %d", ErrOffsetOutOfRange, offset, start, end)
		}
		for i := max(0, segmentOf(segments, offset)); i < len(segments) && segments[i].base < upTo; i++ {
			s := segments[i]
			r := newHeaders(s, s.size.Load())
			_, h, err := s.locate(r, offset)
			r.done()
			switch {
			case err == io.EOF:
				continue
			case err != nil:
				return TimeOffset{}, false, s, err
			case h.BaseOffset >= upTo:
				return TimeOffset{}, false, nil, nil
			}
			at := TimeOffset{Offset: h.BaseOffset, Timestamp: h.BaseTimestamp, LeaderEpoch: h.LeaderEpoch}
			if h.Attributes.LogAppendTime() || h.Attributes.DeleteHorizon() { // the latter takes the place of the first timestamp
				at.Timestamp = h.MaxTimestamp
			}
			return at, true, s, nil
		}
		return TimeOffset{}, false, nil, nil
	})
}
