package log

import (
	"errors"
	"fmt"
	"math"

	"github.com/barnabas-mq/barnabas/core/record"
)

// AppendFollower appends batches as the leader has them, byte for byte. Their offsets must rise from the end of the log on;
// gaps are fine. A batch that isn't whole at the end is left out. Batches before the first one that is refused stay
// appended, and the info speaks of them.
//
// Errors: ErrUnexpectedOffset, record.ErrCorrupt, ErrFailed, ErrClosed.
func (l *Log) AppendFollower(batches []byte) (AppendInfo, error) {
	info := AppendInfo{BaseOffset: -1, LastOffset: -1, MaxTimestamp: record.NoTimestamp, LogAppendTime: record.NoTimestamp}
	if err := l.Err(); err != nil {
		return info, err
	}
	// Checked without the lock; offsets are checked under it.
	whole := 0
	var bad error
	for b, err := range record.All(batches) {
		if errors.Is(err, record.ErrShort) {
			break
		}
		if err == nil {
			err = record.CheckCRC(b)
		}
		if err != nil {
			bad = l.wrap(err)
			break
		}
		whole += len(b)
	}
	batches = batches[:whole]
	cfg := l.cfg.Load()

	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return info, err
	}
	for len(batches) > 0 {
		n, err := l.appendRun(batches, cfg, &info)
		if err != nil {
			bad = err
			break
		}
		batches = batches[n:]
	}
	info.StartOffset = l.start.Load()
	info.Flush = info.LastOffset >= 0 && l.flushDue(info.LastOffset, cfg)
	return info, bad
}

// appendRun appends the first of some whole batches, and as many of those behind it as go into the same segment, with one write: a
// follower gets hundreds of small ones at once. It returns how many bytes that were. The caller holds mu.
func (l *Log) appendRun(batches []byte, cfg *Config, info *AppendInfo) (int, error) {
	first, _, err := record.Next(batches)
	if err != nil {
		return 0, l.wrap(err)
	}
	h := first.Header()
	if err := follows(h, l.end.Load()); err != nil {
		return 0, l.wrap(err)
	}
	base := h.BaseOffset
	if h.Attributes.Control() {
		marker, err := l.marker(first, h)
		if err == nil {
			err = l.append(first, h, marker, cfg)
		} else {
			err = l.wrap(err)
		}
		if err != nil {
			return 0, err
		}
		info.took(base, h)
		return len(first), nil
	}
	s, err := l.room(int64(len(first)), h, cfg)
	if err != nil {
		return 0, err
	}
	run := batches[:l.runLength(s, batches, cfg)]
	for b := range record.All(run) {
		h := b.Header()
		l.assignEpoch(h.LeaderEpoch, h.BaseOffset)
	}
	if err := l.settle(s); err != nil {
		return 0, err
	}
	pos, err := s.data.Append(run)
	if err != nil {
		return 0, l.fail(fmt.Errorf("append: %w", err))
	}
	for b := range record.All(run) {
		h = b.Header()
		if err := s.note(h, pos, cfg); err != nil {
			return 0, l.fail(fmt.Errorf("append to index: %w", err))
		}
		if h.ProducerID >= 0 {
			if err := l.track(s, h, nil); err != nil {
				return 0, l.fail(fmt.Errorf("append to transaction index: %w", err))
			}
		}
		pos += int64(len(b))
		info.MaxTimestamp = max(info.MaxTimestamp, h.MaxTimestamp)
	}
	info.took(base, h)
	l.appended(s, h.LastOffset()+1, pos, cfg)
	return len(run), nil
}

// took notes batches that were appended: the offset of the first, and the header of the last.
func (i *AppendInfo) took(base int64, last record.Header) {
	if i.BaseOffset < 0 {
		i.BaseOffset = base
	}
	i.LastOffset, i.MaxTimestamp = last.LastOffset(), max(i.MaxTimestamp, last.MaxTimestamp)
}

// runLength is how many bytes of batches, the first of which goes into s, go there together: up to the first batch that needs a new
// segment, is a control batch, or has offsets that don't rise.
func (l *Log) runLength(s *segment, batches []byte, cfg *Config) int {
	size := s.size.Load()
	most := min(cfg.segmentBytes(), s.capacity) - size
	// As if each batch had an entry of its own.
	entries := min(cfg.offsetEntries()-s.offsets.len(), cfg.timeEntries()-s.times.len())
	firstTime := s.firstTime
	n, end := 0, int64(0)
	for b := range record.All(batches) {
		h := b.Header()
		if n == 0 {
			if size == 0 {
				firstTime = h.MaxTimestamp
			}
			n, end = len(b), h.LastOffset()+1
			continue
		}
		entries--
		late := firstTime >= 0 && max(h.MaxTimestamp, 0)-firstTime > cfg.segmentMs()-s.jitter
		if h.Attributes.Control() || follows(h, end) != nil || int64(n+len(b)) > most || h.LastOffset()-s.base > math.MaxInt32 || entries <= 0 || late {
			break
		}
		n, end = n+len(b), h.LastOffset()+1
	}
	return n
}

// follows says why a batch can't follow in a log that ends at end; nil when it can.
func follows(h record.Header, end int64) error {
	if h.BaseOffset < end || h.LastOffsetDelta < 0 || h.LastOffset() < h.BaseOffset || h.BaseOffset < 0 {
		return fmt.Errorf("%w: offsets %d to %d, the end is %d", ErrUnexpectedOffset, h.BaseOffset, h.LastOffset(), end)
	}
	return nil
}
