package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/log/producers"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Open opens the log in a directory, or makes a new one there. After an unclean stop it checks what lies above the
// recovery point, cuts the log at the first batch that isn't good, and says so in the log output; ctx ends that early, with
// nothing lost. What was interrupted (deletions, the replacement of segments) is completed.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Validator == nil {
		o.Validator = record.NewValidator(o.Codecs)
	}
	l := &Log{o: o, producers: producers.New()}
	l.dir.Store(&o.Dir)
	l.cfg.Store(&o.Config)
	l.unstable.Store(math.MaxInt64)
	if err := l.load(ctx); err != nil {
		if segments := l.segments.Load(); segments != nil {
			for _, s := range *segments {
				s.data.Close()
			}
		}
		return nil, l.wrap(fmt.Errorf("open %s: %w", o.Dir, err))
	}
	return l, nil
}

// found is what a partition's directory holds.
type found struct {
	logs      []int64
	snapshots []int64
	others    map[int64][]string // index files by base
	epochs    bool
	metadata  bool
}

func (l *Log) load(ctx context.Context) error {
	f, err := l.list()
	if err != nil {
		return err
	}
	if f.metadata {
		if err := l.readTopicID(); err != nil {
			return err
		}
	}
	if _, ok := l.TopicID(); f.metadata && !ok {
		l.o.Logger.Warn("the topic's id was not written out before a crash; it is to be set again", "topic", l.o.Topic, "partition", l.o.Partition)
	}
	path := filepath.Join(l.o.Dir, epochFile)
	l.epochs = &epochs{path: path}
	epochsLost := false
	if f.epochs {
		if l.epochs, err = openEpochs(path); err != nil {
			if epochsLost = errors.Is(err, errDamaged); !epochsLost {
				return err
			}
			l.o.Logger.Warn("leader epochs unreadable, finding them in the batches", "topic", l.o.Topic, "partition", l.o.Partition, "err", err)
		}
	}
	l.snapshots = f.snapshots
	if err := l.openSegments(f); err != nil {
		return err
	}
	if err := l.recover(ctx, epochsLost); err != nil {
		return err
	}
	if l.o.CleanedTo <= l.end.Load() {
		l.cleaned.Store(max(l.o.CleanedTo, 0))
	}
	l.o.HighWatermark = max(l.o.HighWatermark, 0)
	l.epoch.Store(l.epochs.latest())
	l.hw.Store(max(min(l.o.HighWatermark, l.end.Load()), l.start.Load()))
	l.producers.Replicated(l.hw.Load())
	l.unstable.Store(l.producers.FirstUnstable())
	return nil
}

const (
	epochFile    = "leader-epoch-checkpoint"
	metadataFile = "partition.metadata"
)

// list reads the directory, removes what is left of deletions and completes interrupted replacements.
func (l *Log) list() (found, error) {
	f := found{others: map[int64][]string{}}
	entries, err := os.ReadDir(l.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(l.o.Dir, 0o755); err != nil {
			return f, err
		}
		l.newFiles, l.newDir = true, true
		return f, nil
	}
	if err != nil {
		return f, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if names, err = l.finishSwaps(names); err != nil {
		return f, err
	}
	for _, name := range names {
		path := filepath.Join(l.o.Dir, name)
		switch {
		case name == epochFile:
			f.epochs = true
			continue
		case name == metadataFile:
			f.metadata = true
			continue
		case strings.HasSuffix(name, deletedSuffix), strings.HasSuffix(name, tmpSuffix):
			if err := os.Remove(path); err != nil {
				return f, err
			}
			continue
		}
		base, suffix, ok := parseSegmentName(name)
		switch {
		case !ok:
		case suffix == logSuffix:
			f.logs = append(f.logs, base)
		case suffix == snapshotSuffix:
			f.snapshots = append(f.snapshots, base)
		default:
			f.others[base] = append(f.others[base], path)
		}
	}
	slices.Sort(f.logs)
	slices.Sort(f.snapshots)
	for base, paths := range f.others {
		if _, ok := slices.BinarySearch(f.logs, base); ok {
			continue
		}
		l.o.Logger.Warn("removing an index without a segment", "topic", l.o.Topic, "partition", l.o.Partition, "segment", base)
		for _, p := range paths {
			if err := os.Remove(p); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// parseSegmentName splits the name of a segment's file; ok is false for any other.
func parseSegmentName(name string) (base int64, suffix string, ok bool) {
	const digits = 20
	if len(name) < digits {
		return 0, "", false
	}
	for _, c := range []byte(name[:digits]) {
		if c < '0' || c > '9' {
			return 0, "", false
		}
	}
	base, err := strconv.ParseInt(name[:digits], 10, 64)
	if err != nil {
		return 0, "", false
	}
	switch suffix = name[digits:]; suffix {
	case logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix:
		return base, suffix, true
	}
	return 0, "", false
}

// openSegments opens what was found, or makes the first segment.
func (l *Log) openSegments(f found) error {
	cfg := l.cfg.Load()
	now := l.o.Now()
	if len(f.logs) == 0 {
		return l.startOver(max(l.o.StartOffset, 0))
	}
	segments := make([]*segment, 0, len(f.logs))
	l.setSegments(segments)
	for i, base := range f.logs {
		last := i == len(f.logs)-1
		s, err := openSegment(l.o.Storage, l.o.Dir, base, cfg, now, last)
		if err != nil {
			return err
		}
		s.jitter = jitter(cfg)
		segments = append(segments, s)
		l.setSegments(segments)
	}
	for i, s := range segments[:len(segments)-1] {
		s.next.Store(segments[i+1].base)
		lost, err := s.lostEntries(cfg)
		if err != nil {
			return err
		}
		s.damaged = s.damaged || lost || !s.plausible()
	}
	return nil
}

// startOver makes an empty segment at offset the only one. The files of others are gone already.
func (l *Log) startOver(offset int64) error {
	cfg := l.cfg.Load()
	s, err := createSegment(l.o.Storage, l.Dir(), offset, "", 0, cfg, l.o.Now(), jitter(cfg))
	if err != nil {
		return err
	}
	l.newFiles = true
	l.setSegments([]*segment{s})
	return nil
}

// recover brings the log to a state that can be vouched for: segments, indexes, epochs, producers, and all offsets.
func (l *Log) recover(ctx context.Context, epochsLost bool) error {
	segments := *l.segments.Load()
	cfg := l.cfg.Load()
	// checked is the first segment that isn't believed.
	checked := len(segments)
	if !l.o.CleanShutdown {
		checked = max(0, segmentOf(segments, l.o.RecoveryPoint))
	}
	for i, s := range segments[:checked] {
		if s.damaged {
			if err := l.mend(s, errDamaged); err != nil {
				if i == len(segments)-1 && errors.Is(err, ErrCorrupt) {
					checked = i
					break
				}
				return err
			}
		}
	}
	if last := len(segments) - 1; checked == len(segments) {
		s := segments[last]
		err := s.settle(cfg)
		if errors.Is(err, errDamaged) {
			l.o.Logger.Warn("last segment isn't as it was left, checking it", "topic", l.o.Topic, "partition", l.o.Partition, "segment", s.base, "err", err)
			checked = last
		} else if err != nil {
			return err
		}
	}
	for _, s := range segments[:checked] {
		s.durable = s.sealed
	}
	if err := l.restoreProducers(segments, checked); err != nil {
		return err
	}
	if checked < len(segments) {
		if err := l.check(ctx, checked); err != nil {
			return err
		}
		segments = *l.segments.Load()
	}
	end := segments[len(segments)-1].next.Load()
	l.end.Store(end)
	if end < l.o.StartOffset {
		l.o.Logger.Warn("log ends before its start offset, dropping it", "topic", l.o.Topic, "partition", l.o.Partition, "end", end, "start", l.o.StartOffset)
		return l.dropAll(l.o.StartOffset)
	}
	l.start.Store(max(l.o.StartOffset, segments[0].base))
	recovery := min(l.o.RecoveryPoint, end)
	if l.o.CleanShutdown {
		recovery = end
	}
	l.recovery.Store(max(recovery, 0))
	if epochsLost {
		if err := l.findEpochs(); err != nil {
			return err
		}
	}
	l.epochs.entries = cutEpochs(l.epochs.entries, l.start.Load(), end)
	if checked < len(*l.segments.Load()) {
		if err := l.epochs.write(); err != nil {
			return err
		}
		if err := l.takeSnapshot(end, false); err != nil {
			return err
		}
	}
	return l.dropStraySnapshots()
}

// check scans the segments from one on, batch by batch, and rebuilds what belongs to them. At the first bytes that are no
// good batch the log ends.
func (l *Log) check(ctx context.Context, from int) error {
	segments := *l.segments.Load()
	cfg := l.cfg.Load()
	began := l.o.Now()
	bytes := int64(0)
	for i := from; i < len(segments); i++ {
		s := segments[i]
		limit := int64(math.MaxInt64)
		if i+1 < len(segments) {
			limit = segments[i+1].base
		}
		if i > from {
			if err := l.takeSnapshot(s.base, false); err != nil {
				return err
			}
		}
		length := s.data.Size()
		end, why, err := l.checkSegment(ctx, s, limit, cfg)
		if err != nil {
			return err
		}
		bytes += end
		if why == nil {
			continue
		}
		zeros, err := s.zerosFrom(end)
		if err != nil {
			return err
		}
		level := slog.LevelWarn
		if zeros && i == len(segments)-1 {
			level = slog.LevelDebug // preallocated and not used: nothing was lost
		}
		l.o.Logger.Log(ctx, level, "cutting the log after its last good batch", "topic", l.o.Topic, "partition", l.o.Partition,
			"segment", s.base, "position", end, "bytes", length-end, "end", s.next.Load(), "segments_dropped", len(segments)-1-i, "why", why)
		// What follows goes first: should this be interrupted, the bad bytes are still there to say where the log ends.
		if err := l.removeBehind(i); err != nil {
			return err
		}
		if err := s.data.Truncate(end); err != nil {
			return err
		}
		break
	}
	if took := l.o.Now().Sub(began); took > time.Second {
		l.o.Logger.Info("checked a log after an unclean stop", "topic", l.o.Topic, "partition", l.o.Partition, "bytes", bytes, "took", took)
	}
	return l.unseal()
}

// unseal makes the last segment one that can be appended to, if it was opened as another one.
func (l *Log) unseal() error {
	segments := slices.Clone(*l.segments.Load())
	last := len(segments) - 1
	old := segments[last]
	if !old.sealed {
		return nil
	}
	if err := old.data.Close(); err != nil {
		return err
	}
	if err := errors.Join(old.offsets.write(), old.times.write()); err != nil {
		return err
	}
	cfg := l.cfg.Load()
	s, err := openSegment(l.o.Storage, l.Dir(), old.base, cfg, l.o.Now(), true)
	if err != nil {
		return err
	}
	s.jitter = old.jitter
	segments[last] = s
	l.setSegments(segments)
	if s.damaged {
		err = errDamaged
	} else {
		err = s.settle(cfg)
	}
	if errors.Is(err, errDamaged) {
		s.publish(old.next.Load(), s.data.Size())
		err = l.mend(s, err)
	}
	return err
}

// progressEvery is how often something that takes long says how far it is.
const progressEvery = 5 * time.Second

// checkSegment scans one segment and makes its indexes anew. end is where its good bytes end, why what was found there.
func (l *Log) checkSegment(ctx context.Context, s *segment, limit int64, cfg *Config) (end int64, why, err error) {
	if err := errors.Join(s.offsets.reset(), s.times.reset(), s.txns.replace(nil)); err != nil {
		return 0, nil, err
	}
	s.maxTimestamp, s.maxOffset, s.sinceIndex, s.settled = -1, s.base, 0, true
	next := s.base
	since := 0
	said := time.Now()
	end, why, err = s.scan(0, s.base, limit, func(pos int64, b record.Batch) error {
		if since += len(b); since > 16<<20 {
			since = 0
			if err := ctx.Err(); err != nil {
				return err
			}
			if time.Since(said) > progressEvery {
				said = time.Now()
				l.o.Logger.Info("checking a log after an unclean stop", "topic", l.o.Topic, "partition", l.o.Partition, "segment", s.base, "position", pos, "of", s.data.Size())
			}
		}
		h := b.Header()
		if err := s.note(h, pos, cfg); err != nil {
			return err
		}
		next = h.LastOffset() + 1
		if h.LeaderEpoch > l.epochs.latest() {
			l.epochs.entries = assign(l.epochs.entries, EpochStart{h.LeaderEpoch, h.BaseOffset})
		}
		return l.replay(s, b, h)
	})
	s.publish(next, end)
	if err == nil && s.sealed {
		err = errors.Join(s.noteTime(), s.offsets.write(), s.times.write())
	}
	return end, why, err
}

// replay takes a batch that is in the log into the state of its producer.
func (l *Log) replay(s *segment, b record.Batch, h record.Header) error {
	if h.ProducerID < 0 {
		return nil
	}
	var marker *record.EndTxnMarker
	if h.Attributes.Control() {
		var err error
		if marker, err = l.marker(b, h); err != nil {
			l.o.Logger.Warn("unreadable control batch", "topic", l.o.Topic, "partition", l.o.Partition, "offset", h.BaseOffset, "err", err)
			return nil
		}
		if marker == nil {
			return nil
		}
	}
	return l.track(s, h, marker)
}

// zerosFrom reports whether nothing but zeros follows in the file.
func (s *segment) zerosFrom(pos int64) (bool, error) {
	buf := make([]byte, 64<<10)
	for size := s.data.Size(); pos < size; {
		n, err := s.data.ReadAt(buf[:min(int64(len(buf)), size-pos)], pos)
		if err != nil && err != io.EOF {
			return false, err
		}
		for _, b := range buf[:n] {
			if b != 0 {
				return false, nil
			}
		}
		pos += int64(n)
	}
	return true, nil
}

// findEpochs makes the epoch cache anew from the headers of all batches.
func (l *Log) findEpochs() error {
	l.epochs.entries = nil
	for _, s := range *l.segments.Load() {
		err := s.each(0, func(_ int64, h record.Header) error {
			if h.LeaderEpoch > l.epochs.latest() {
				l.epochs.entries = assign(l.epochs.entries, EpochStart{h.LeaderEpoch, h.BaseOffset})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return l.epochs.write()
}

// cutEpochs keeps the entries between start and end, in memory: the file may say more, and is read the same way next time.
func cutEpochs(entries []EpochStart, start, end int64) []EpochStart {
	for n := len(entries); n > 0 && entries[n-1].Start >= end; n-- {
		entries = entries[:n-1]
	}
	for len(entries) > 1 && entries[1].Start <= start {
		entries = entries[1:]
	}
	if len(entries) > 0 && entries[0].Start < start {
		entries[0].Start = start
	}
	return entries
}
