package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/core/log/compact"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// cleanable is what can be cleaned of a log at one moment: closed segments, from the first one on, that lie below the last
// stable offset and are old enough for min.compaction.lag.ms.
type cleanable struct {
	segments []*segment
	// Records within [from, to) were not cleaned before.
	from, to int64
	// Bytes of the segments with such records, and of those before them.
	dirty, clean int64
	// overdue says that max.compaction.lag.ms has passed for one of those records.
	overdue bool
	cuts    int64
}

// ratio is the dirty share, which min.cleanable.dirty.ratio is compared with.
func (c *cleanable) ratio() float64 {
	if c.dirty == 0 {
		return 0
	}
	return float64(c.dirty) / float64(c.clean+c.dirty)
}

// due reports whether it is worth the work.
func (c *cleanable) due(cfg *Config) bool {
	return c.dirty > 0 && (c.overdue || c.ratio() > cfg.MinCleanableDirtyRatio)
}

// mayClean tells who compacts, when the log is one that is compacted.
func (l *Log) mayClean(cfg *Config) {
	if cfg.Compact {
		l.tell(Events.CompactionDue)
	}
}

// uncleaned says that records from an offset on are going to be replaced by others, before they are. The caller holds mu.
func (l *Log) uncleaned(offset int64) {
	if l.cleaned.Load() > offset {
		l.cleaned.Store(offset)
		l.tell(Events.CleanedToMovedBack)
	}
}

// dirty reports whether there are closed segments with records that were not cleaned. It costs next to nothing.
func (l *Log) dirty() bool { return l.active().base > l.CleanedTo() }

// cleanable finds what can be cleaned now.
func (l *Log) cleanable(now time.Time) (cleanable, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := cleanable{from: l.CleanedTo(), cuts: l.cuts.Load()}
	if err := l.Err(); err != nil {
		return c, err
	}
	cfg := l.cfg.Load()
	stable := l.LastStableOffset()
	segments := *l.segments.Load()
	for i, s := range segments[:len(segments)-1] {
		next := segments[i+1].base
		if next > stable {
			break
		}
		if next > c.from {
			if cfg.MinCompactionLagMs > 0 {
				if ts, err := l.lastTime(s); err != nil {
					return c, err
				} else if ts > now.UnixMilli()-cfg.MinCompactionLagMs {
					break
				}
			}
			first, err := s.firstTimestamp()
			if err != nil {
				return c, damagedUnlessIO(err)
			}
			c.overdue = c.overdue || first > 0 && first < now.UnixMilli()-cfg.MaxCompactionLagMs
			c.dirty += s.size.Load()
		} else {
			c.clean += s.size.Load()
		}
		c.to = next
		c.segments = segments[:i+1]
	}
	return c, nil
}

// CompactOptions are how one log is compacted.
type CompactOptions struct {
	// Now is the time that tombstones and min.compaction.lag.ms go by.
	Now time.Time
	// Memory is how many bytes the table of keys may have, Load how full it may get; 0 means package compact's.
	Memory int64
	Load   float64
	// Buffer is how many bytes are read, and written, at a time.
	Buffer int
	// Pace, when not nil, is told of bytes that were read or written, and waits as long as it has to.
	Pace func(ctx context.Context, n int) error
}

// Compacted is what a compaction did.
type Compacted struct {
	// To is the offset up to which, exclusively, the log is compacted now.
	To int64
	// Read and Written count the bytes of the segments that were gone through, and of those that took their place; Dropped the
	// records that are gone, Before and After the segments.
	Read, Written int64
	Dropped       int64
	Before, After int
}

// Compact compacts what can be compacted now, however small its share is: closed segments below the last stable offset. When
// the table of keys is full it does as much as that allows, which is at least one record. Reads and appends go on meanwhile.
//
// Errors: ErrInterrupted, ctx's, those of record batches and of the system. The log is as good as before then, and partly
// compacted.
func (l *Log) Compact(ctx context.Context, o CompactOptions) (Compacted, error) {
	c, err := l.cleanable(o.Now)
	if err != nil {
		return Compacted{}, l.wrap(err)
	}
	if c.dirty == 0 {
		return Compacted{To: c.from}, nil
	}
	return l.clean(ctx, c, o)
}

// clean compacts what was found cleanable: in two walks, as package compact has it, the second one segment by segment.
func (l *Log) clean(ctx context.Context, c cleanable, o CompactOptions) (res Compacted, err error) {
	defer func() {
		if err == nil {
			return
		}
		if ctx.Err() == nil && !l.still(c) && !errors.Is(err, ErrInterrupted) {
			err = fmt.Errorf("%w: %w", ErrInterrupted, err)
		}
		err = l.wrap(err)
	}()
	w := cleaning{l: l, o: o, cfg: l.cfg.Load(), cuts: c.cuts}
	aborted, err := w.findAborted(c)
	if err != nil {
		return res, err
	}
	keys := compact.NewOffsetMap(o.Memory, o.Load, c.to-c.from)
	if res.To, err = w.index(ctx, c, keys, aborted); err != nil {
		return res, err
	}
	w.filter = compact.NewFilter(compact.Rules{
		Keys: keys, To: res.To, Now: o.Now.UnixMilli(), DeleteRetentionMs: w.cfg.DeleteRetentionMs,
		Producers: l.lastWords(), Aborted: aborted, Codecs: l.o.Codecs,
	})
	todo := c.segments[:max(0, segmentOf(c.segments, res.To-1)+1)]
	for _, n := range w.groups(todo, c.to) {
		if err := w.group(ctx, todo[:n]); err != nil {
			return w.res(res), err
		}
		todo = todo[n:]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts.Load() != c.cuts {
		return w.res(res), ErrInterrupted
	}
	l.cleaned.Store(max(l.cleaned.Load(), res.To))
	return w.res(res), nil
}

// still reports whether the log is what it was when c was found: nothing was cut, and none of those segments was deleted.
func (l *Log) still(c cleanable) bool {
	if l.Err() != nil || l.cuts.Load() != c.cuts {
		return false
	}
	return (*l.segments.Load())[0].base == c.segments[0].base
}

// lastWords are the producers that the log remembers, and where each was heard last.
func (l *Log) lastWords() map[int64]compact.Producer {
	l.mu.Lock()
	all := l.producers.All()
	l.mu.Unlock()
	out := make(map[int64]compact.Producer, len(all))
	for i := range all {
		p := compact.Producer{LastOffset: -1, Epoch: all[i].Epoch}
		if batches := all[i].Batches(); len(batches) > 0 {
			p.LastOffset = batches[len(batches)-1].LastOffset
		}
		out[all[i].ID] = p
	}
	return out
}

// cleaning is a log that is being cleaned, on one goroutine.
type cleaning struct {
	l       *Log
	o       CompactOptions
	cfg     *Config
	cuts    int64
	filter  *compact.Filter
	entries map[int64]txnEntry // of aborted transactions, by their markers
	buf     []byte             // read into
	out     []byte             // to be written
	result  Compacted
}

func (w *cleaning) res(to Compacted) Compacted {
	w.result.To = to.To
	if w.filter != nil {
		w.result.Dropped = w.filter.Dropped
	}
	return w.result
}

// findAborted collects the aborted transactions that overlap the segments: their markers may lie behind those.
func (w *cleaning) findAborted(c cleanable) ([]compact.Aborted, error) {
	w.entries = map[int64]txnEntry{}
	var out []compact.Aborted
	segments := *w.l.segments.Load()
	for _, s := range segments {
		entries, err := s.txns.all(c.segments[0].base)
		if err != nil {
			return nil, err
		}
		done := false
		for _, e := range entries {
			if e.firstOffset < c.to {
				w.entries[e.lastOffset] = e
				out = append(out, compact.Aborted{ProducerID: e.producerID, First: e.firstOffset, Marker: e.lastOffset})
			}
			done = done || e.lastStable >= c.to
		}
		if done {
			break
		}
	}
	return out, nil
}

// index is the first walk. It gives the offset that it came to.
func (w *cleaning) index(ctx context.Context, c cleanable, keys *compact.OffsetMap, aborted []compact.Aborted) (int64, error) {
	x := compact.NewIndexer(keys, c.from, aborted, w.l.o.Codecs)
	full := errors.New("full")
	for i, s := range c.segments {
		if next := nextOf(c.segments, i, c.to); next <= c.from {
			continue
		}
		err := w.read(ctx, s, func(b record.Batch) error {
			more, err := x.Batch(b)
			if err == nil && !more {
				err = full
			}
			return err
		})
		if err == full {
			return x.To(), nil
		}
		if err != nil {
			return 0, err
		}
	}
	return c.to, nil
}

// nextOf is the base of the segment behind segments[i]; to is that of the one behind all.
func nextOf(segments []*segment, i int, to int64) int64 {
	if i+1 < len(segments) {
		return segments[i+1].base
	}
	return to
}

// read gives the batches of a closed segment to visit. Anything in it that is no good batch is an error: what can't be read
// must not be dropped.
func (w *cleaning) read(ctx context.Context, s *segment, visit func(b record.Batch) error) error {
	if w.buf == nil {
		w.buf = make([]byte, max(w.o.Buffer, record.HeaderSize))
	}
	_, why, err := s.scanWith(w.buf, 0, s.base, s.next.Load(), func(_ int64, b record.Batch) error {
		if err := w.pace(ctx, len(b)); err != nil {
			return err
		}
		return visit(b)
	})
	if err == nil && why != nil {
		err = fmt.Errorf("%w: segment %d: %w", ErrCorrupt, s.base, why)
	}
	return err
}

func (w *cleaning) pace(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.o.Pace == nil {
		return nil
	}
	return w.o.Pace(ctx, n)
}

// groups divides the segments into those that become one each, and gives how many segments each has.
func (w *cleaning) groups(segments []*segment, to int64) []int {
	sizes := make([]compact.Segment, len(segments))
	for i, s := range segments {
		sizes[i] = compact.Segment{Base: s.base, Next: nextOf(segments, i, to), Bytes: s.size.Load(), IndexEntries: max(s.offsets.len(), s.times.len())}
	}
	return compact.Group(sizes, compact.Limits{Bytes: w.cfg.segmentBytes(), IndexEntries: min(w.cfg.offsetEntries(), w.cfg.timeEntries())})
}

// group is the second walk over one group, which is replaced by one segment of what is left of it.
func (w *cleaning) group(ctx context.Context, group []*segment) (err error) {
	bytes := int64(0)
	for _, s := range group {
		bytes += s.size.Load()
	}
	// A little more than there was: batches that are compressed anew, or get a delete horizon, may grow.
	s, err := w.l.createCleaned(group[0].base, min(bytes+bytes/4+1<<20, MaxSegmentBytes))
	if err != nil {
		return err
	}
	replaced := false
	defer func() {
		if !replaced {
			err = errors.Join(err, w.l.discardCleaned(s))
		}
	}()
	changed, err := w.fill(ctx, s, group)
	if err != nil {
		return err
	}
	var entries []txnEntry
	for _, a := range w.filter.TakeAborted() {
		entries = append(entries, w.entries[a.Marker])
	}
	w.result.Read += bytes
	w.result.Before += len(group)
	w.result.After++
	if len(group) == 1 && !changed {
		if before, err := group[0].txns.all(0); err != nil || slices.Equal(before, entries) {
			return err // it is clean already
		}
	}
	if err := w.finish(s, entries, group[len(group)-1]); err != nil {
		return err
	}
	w.result.Written += s.size.Load()
	replaced, err = w.l.replace(group, s, w.cuts)
	return err
}

// fill writes what is left of a group into a segment, and says whether that is anything else than what there was.
func (w *cleaning) fill(ctx context.Context, to *segment, group []*segment) (changed bool, err error) {
	w.out = w.out[:0]
	size := int64(0) // of what was handed to the storage
	flush := func() error {
		if len(w.out) == 0 {
			return nil
		}
		if _, err := to.data.Append(w.out); err != nil {
			return fmt.Errorf("write cleaned segment %d: %w", to.base, err)
		}
		size += int64(len(w.out))
		err := w.pace(ctx, len(w.out))
		w.out = w.out[:0]
		return err
	}
	note := func(from int) error {
		h, err := record.ParseHeader(w.out[from:])
		if err != nil {
			return err
		}
		return to.note(h, size+int64(from), w.cfg)
	}
	var last record.Header // of the last batch, if nothing is left of it
	var lastBytes []byte
	for _, s := range group {
		err := w.read(ctx, s, func(b record.Batch) error {
			from := len(w.out)
			if w.out, err = w.filter.Batch(w.out, b); err != nil {
				return err
			}
			if len(lastBytes) > 0 {
				changed = true
			}
			last, lastBytes = b.Header(), lastBytes[:0]
			if len(w.out) == from {
				lastBytes = append(lastBytes, b[:record.HeaderSize]...)
				return nil
			}
			changed = changed || !bytes.Equal(w.out[from:], b)
			if err := note(from); err != nil {
				return err
			}
			if len(w.out) >= w.o.Buffer {
				return flush()
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	if len(lastBytes) > 0 {
		// The segment has to say how far it reaches: after a crash in the middle of the replacement that tells which segments
		// it replaces.
		from := len(w.out)
		w.out = compact.AppendEnd(w.out, last.LastOffset(), last.LeaderEpoch)
		changed = changed || last.Size() > record.HeaderSize || !bytes.Equal(w.out[from:], lastBytes)
		if err := note(from); err != nil {
			return false, err
		}
	}
	if err := flush(); err != nil {
		return false, err
	}
	to.size.Store(size)
	return changed, nil
}

// finish makes a cleaned segment complete and durable.
func (w *cleaning) finish(s *segment, entries []txnEntry, last *segment) error {
	s.settled = true
	if err := errors.Join(s.seal(), s.txns.replace(entries)); err != nil {
		return err
	}
	// Without timestamps, retention goes by the time of the file.
	path := segmentPath(w.l.Dir(), last.base, logSuffix)
	st, err := os.Stat(path)
	if err == nil {
		err = os.Chtimes(segmentPath(s.dir, s.base, logSuffix)+cleanedSuffix, time.Time{}, st.ModTime())
	}
	if err != nil {
		return err
	}
	if err := s.sync(true); err != nil {
		return fmt.Errorf("sync cleaned segment %d: %w", s.base, err)
	}
	s.durable = true
	return nil
}

// createCleaned makes a segment whose files are called .cleaned.
func (l *Log) createCleaned(base, capacity int64) (*segment, error) {
	// Under the lock: it can't be closed in between, and its directory given to another log of the same name.
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return nil, err
	}
	dir := l.Dir()
	path := func(suffix string) string { return segmentPath(dir, base, suffix) + cleanedSuffix }
	s := newSegment(dir, base)
	s.capacity = capacity
	s.offsets, s.times = newIndex(path(indexSuffix), offsetWidth, true), newIndex(path(timeSuffix), timeWidth, true)
	s.txns = newTxnIndex(path(txnSuffix))
	s.txns.loaded = true
	// An earlier attempt may have failed to remove them.
	for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix} {
		if err := removeFile(path(suffix)); err != nil {
			return nil, err
		}
	}
	var err error
	if s.data, err = l.o.Storage.Create(path(logSuffix), storage.Options{Capacity: capacity}); err != nil {
		return nil, err
	}
	return s, nil
}

// discardCleaned gives a segment up that replaced nothing.
func (l *Log) discardCleaned(s *segment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() || l.Err() != nil {
		return s.data.Close() // the files may be somebody else's by now; Open removes them
	}
	err := s.data.Remove()
	for _, suffix := range s.suffixes() {
		err = errors.Join(err, removeFile(segmentPath(s.dir, s.base, suffix)+cleanedSuffix))
	}
	return err
}
