package log

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/log/producers"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Options are what a log is opened with.
type Options struct {
	// Dir is the partition's own directory; it is made when it doesn't exist.
	Dir       string
	Topic     string
	Partition int32
	Storage   storage.Storage
	// Codecs reads compressed batches, and writes them when the topic asks for another codec.
	Codecs record.Codecs
	// Validator may be shared by many logs; nil makes one from Codecs.
	Validator *record.Validator
	Config    Config
	Logger    *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Scheduler runs what can wait; nil means that files are removed at once and rolled segments synced with the next flush.
	Scheduler Scheduler
	// Events, when not nil, is told of what its owner may have to write down.
	Events Events
	// Flushed, when not nil, is told of each sync and how long it took, by whoever synced. It must be quick.
	Flushed func(took time.Duration)

	// RecoveryPoint, StartOffset and HighWatermark are what the checkpoint files say, 0 for nothing.
	RecoveryPoint int64
	StartOffset   int64
	HighWatermark int64
	// CleanedTo is the offset up to which the log was compacted, 0 for nothing.
	CleanedTo int64
	// CleanShutdown says that the log was closed in order, so that nothing of it needs to be checked.
	CleanShutdown bool
}

// Scheduler runs f once, after d, on a goroutine of its own. It may drop f when it is stopped: what a log leaves to it is
// done anew, or no longer needed, when the log is opened again.
type Scheduler interface {
	After(d time.Duration, f func())
}

// Events is told of changes. The methods are called from the goroutine that made the change, some under the log's lock:
// they must be quick, and call nothing of the log.
type Events interface {
	// HighWatermarkMoved, RecoveryPointMoved and StartOffsetMoved say that a checkpoint is no longer what the log has.
	HighWatermarkMoved(l *Log)
	RecoveryPointMoved(l *Log)
	StartOffsetMoved(l *Log)
	// RecoveryPointMovedBack says that records below the recovery point were cut off. It returns when the checkpoint says so, too:
	// others may take their place and not be durable yet, and after a crash they must be checked.
	RecoveryPointMovedBack(l *Log)
	// BeginsAnew says that the log is about to be dropped, to begin at its start offset, which is behind its end. It returns when the
	// checkpoint of start offsets says so: should a crash come in between, the log is begun there.
	BeginsAnew(l *Log)
	// CompactionDue says that a compacted log may have more to clean than before.
	CompactionDue(l *Log)
	// CleanedToMovedBack says that records behind the offset up to which the log was compacted are going to be replaced by
	// others. It returns when the checkpoint says so, too: after a crash the new ones must not count as compacted.
	CleanedToMovedBack(l *Log)
	// Failed says that a write or sync failed; the log takes no more writes. It is called once.
	Failed(l *Log, err error)
}

// Log is the log of one partition. All methods may be called from any goroutine.
type Log struct {
	o   Options
	dir atomic.Pointer[string]
	cfg atomic.Pointer[Config]

	segments atomic.Pointer[[]*segment] // by base, never empty; replaced whole, under mu
	start    atomic.Int64
	end      atomic.Int64
	hw       atomic.Int64
	recovery atomic.Int64
	unstable atomic.Int64 // first offset of the earliest undecided transaction, math.MaxInt64 for none
	cleaned  atomic.Int64 // up to where, exclusively, the log was compacted; what lies behind is dirty
	epoch    atomic.Int32
	cuts     atomic.Int64 // how often bytes were taken away: what was found before may be elsewhere since
	topicID  atomic.Pointer[[16]byte]
	failure  atomic.Pointer[error]
	closed   atomic.Bool
	// dirtySince is when the oldest append that isn't durable came, in milliseconds; 0 for none. Kept for flush.ms only.
	dirtySince atomic.Int64

	mu        sync.Mutex // appends, truncations, and everything below
	epochs    *epochs
	producers *producers.Table
	snapshots []int64  // offsets of the snapshot files, rising
	unsynced  []string // small files that may not be on the device
	newFiles  bool     // the directory may not be on the device …
	newDir    bool     // … nor its own name
	retired   []retired

	flushMu  sync.Mutex
	flushing chan struct{} // closed when the sync that runs ends; nil when none runs
}

// Topic and Partition are what the log is of.
func (l *Log) Topic() string    { return l.o.Topic }
func (l *Log) Partition() int32 { return l.o.Partition }

// Dir is the log's directory. It changes when the log is deleted.
func (l *Log) Dir() string { return *l.dir.Load() }

// Config is the configuration in force.
func (l *Log) Config() Config { return *l.cfg.Load() }

// Configure puts another configuration in force, from the next append, read or upkeep on.
func (l *Log) Configure(c Config) {
	l.cfg.Store(&c)
	l.mayClean(&c)
}

// StartOffset is the first offset that may be read.
func (l *Log) StartOffset() int64 { return l.start.Load() }

// EndOffset is the offset that the next record gets.
func (l *Log) EndOffset() int64 { return l.end.Load() }

// HighWatermark is the offset up to which, exclusively, consumers may read.
func (l *Log) HighWatermark() int64 { return l.hw.Load() }

// LastStableOffset is the offset up to which, exclusively, all transactions are decided; at most the high watermark.
func (l *Log) LastStableOffset() int64 {
	// In this order: a transaction that begins is in unstable before the high watermark can pass it.
	hw := l.hw.Load()
	return max(min(hw, l.unstable.Load()), l.start.Load())
}

// RecoveryPoint is the offset up to which, exclusively, the log is durable.
func (l *Log) RecoveryPoint() int64 { return l.recovery.Load() }

// CleanedTo is the offset up to which, exclusively, the log was compacted.
func (l *Log) CleanedTo() int64 { return max(l.cleaned.Load(), l.start.Load()) }

// LatestEpoch is the last leader epoch that the log has seen, -1 for none.
func (l *Log) LatestEpoch() int32 { return l.epoch.Load() }

// Err is nil, or why the log takes no more writes: ErrClosed, or ErrFailed with its cause.
func (l *Log) Err() error {
	if p := l.failure.Load(); p != nil {
		return *p
	}
	if l.closed.Load() {
		return l.wrap(ErrClosed)
	}
	return nil
}

// SetHighWatermark moves the high watermark to hw and returns where it is then: never above the end or below the start, and
// not back. It takes no lock unless a transaction waits for it.
func (l *Log) SetHighWatermark(hw int64) int64 {
	for {
		now := l.hw.Load()
		cuts := l.cuts.Load()
		next := max(min(hw, l.end.Load()), l.start.Load())
		if next <= now {
			return now
		}
		if !l.hw.CompareAndSwap(now, next) {
			continue
		}
		if l.cuts.Load() != cuts {
			// A truncation ran meanwhile and may have looked before the swap.
			l.mu.Lock()
			l.clampHighWatermark()
			next = l.hw.Load()
			l.mu.Unlock()
		}
		if l.unstable.Load() < next {
			l.mu.Lock()
			l.producers.Replicated(l.hw.Load())
			l.unstable.Store(l.producers.FirstUnstable())
			l.mu.Unlock()
		}
		if l.o.Events != nil {
			l.o.Events.HighWatermarkMoved(l)
		}
		return next
	}
}

// clampHighWatermark puts the high watermark between start and end. The caller holds mu.
func (l *Log) clampHighWatermark() {
	for {
		now := l.hw.Load()
		next := max(min(now, l.end.Load()), l.start.Load())
		if next == now || l.hw.CompareAndSwap(now, next) {
			return
		}
	}
}

// active is the segment that is appended to.
func (l *Log) active() *segment {
	s := *l.segments.Load()
	return s[len(s)-1]
}

// segmentOf gives the place of the last segment whose base is at most offset, -1 for none.
func segmentOf(segments []*segment, offset int64) int {
	return sort.Search(len(segments), func(i int) bool { return segments[i].base > offset }) - 1
}

// Size is the number of bytes of all segments, without their indexes.
func (l *Log) Size() int64 {
	n := int64(0)
	for _, s := range *l.segments.Load() {
		n += s.size.Load()
	}
	return n
}

// SegmentCount is the number of segments, the active one included.
func (l *Log) SegmentCount() int { return len(*l.segments.Load()) }

// SegmentInfo describes one segment.
type SegmentInfo struct {
	BaseOffset int64
	Bytes      int64
	Path       string
}

// Segments describes the log's segments, oldest first. The last one is the active one.
func (l *Log) Segments() []SegmentInfo {
	segments := *l.segments.Load()
	out := make([]SegmentInfo, len(segments))
	for i, s := range segments {
		out[i] = SegmentInfo{s.base, s.size.Load(), segmentPath(l.Dir(), s.base, logSuffix)}
	}
	return out
}

// ProducerState is what DescribeProducers tells of one producer.
type ProducerState struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32 // -1 for none
	LastTimestamp    int64
	CoordinatorEpoch int32 // -1 for none
	TxnStartOffset   int64 // -1 without an open transaction
}

// Producers lists the producers that the log remembers, by id.
func (l *Log) Producers() []ProducerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.producers.All()
	out := make([]ProducerState, len(all))
	for i := range all {
		p := &all[i]
		out[i] = ProducerState{p.ID, p.Epoch, p.LastSequence(), p.LastTimestamp, p.CoordinatorEpoch, p.TxnFirst}
	}
	return out
}

// TransactionOpen reports whether a producer has a transaction open on this partition, under that epoch: then further
// records of it need no verification with the coordinator.
func (l *Log) TransactionOpen(id int64, epoch int16) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.producers.Get(id)
	return ok && p.TxnFirst >= 0 && p.Epoch == epoch
}

// ExpireProducers forgets producers without an open transaction whose last record is at least age milliseconds old, and
// says how many.
func (l *Log) ExpireProducers(now time.Time, age int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Expire(now.UnixMilli(), age)
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest epoch up to the one asked for, and the offset where it ends;
// (-1, -1) when the log doesn't know.
func (l *Log) EndOffsetForEpoch(epoch int32) (int32, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.endOf(epoch, l.end.Load())
}

// EpochAt is the leader epoch that an offset was written under, -1 when that isn't known.
func (l *Log) EpochAt(offset int64) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.at(offset)
}

// AssignEpoch notes that a new leader's epoch begins at the end of the log. An epoch that isn't newer changes nothing. It is
// written with the first record, and forgotten when the log is closed before.
func (l *Log) AssignEpoch(epoch int32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	l.assignEpoch(epoch, l.end.Load())
	return nil
}

// assignEpoch notes that an epoch begins at an offset. The caller holds mu, and calls settle before it appends.
func (l *Log) assignEpoch(epoch int32, start int64) {
	l.epochs.assign(epoch, start)
	l.epoch.Store(l.epochs.latest())
}

// settle writes what must be in files before records are, of which the next one goes into s: under which epochs they come. It makes
// the segment's indexes, too, which tools expect beside records. The caller holds mu.
func (l *Log) settle(s *segment) error {
	var err error
	if s.size.Load() == 0 {
		l.newFiles = true
		if err = s.offsets.touch(); err == nil {
			err = s.times.touch()
		}
	}
	if err == nil {
		err = l.epochs.settle()
	}
	return l.failUnlessFull(err)
}

// failUnlessFull fails the log with err, unless there is none, or it says that files can't be opened just now: nothing has happened
// then, and it may be over soon.
func (l *Log) failUnlessFull(err error) error {
	switch {
	case err == nil:
		return nil
	case noDescriptors(err):
		return l.wrap(err)
	}
	return l.fail(fmt.Errorf("before the first record: %w", err))
}

// fail makes the log take no more writes, and tells.
func (l *Log) fail(cause error) error {
	err := l.wrap(fmt.Errorf("%w: %w", ErrFailed, cause))
	if !l.failure.CompareAndSwap(nil, &err) {
		return *l.failure.Load()
	}
	l.o.Logger.Error("log failed", "topic", l.o.Topic, "partition", l.o.Partition, "dir", l.Dir(), "err", cause)
	if l.o.Events != nil {
		l.o.Events.Failed(l, err)
	}
	return err
}

// Fail makes the log take no more writes because its directory failed elsewhere. Reads go on as long as they can.
func (l *Log) Fail(cause error) { _ = l.fail(cause) }

func (l *Log) wrap(err error) error {
	return fmt.Errorf("%s-%d: %w", l.o.Topic, l.o.Partition, err)
}

// jitter draws what is taken off segment.ms, up to segment.jitter.ms.
func jitter(cfg *Config) int64 {
	if cfg.SegmentJitterMs <= 0 {
		return 0
	}
	return rand.Int64N(min(cfg.SegmentJitterMs, math.MaxInt64-1) + 1)
}

// roll seals the active segment and begins a new one at base. The caller holds mu.
func (l *Log) roll(base, least int64) error {
	segments := *l.segments.Load()
	old := segments[len(segments)-1]
	cfg := l.cfg.Load()
	if err := l.mend(old, old.seal()); err != nil {
		return l.fail(fmt.Errorf("roll: %w", err))
	}
	if err := l.takeSnapshot(base, false); err != nil {
		return l.fail(fmt.Errorf("roll: %w", err))
	}
	if l.recovery.Load() >= l.end.Load() {
		// All of it counts as durable, so its indexes have to be, too.
		if err := old.sync(true); err != nil {
			return l.fail(fmt.Errorf("roll: %w", err))
		}
		old.durable = true
	}
	s, err := createSegment(l.o.Storage, l.Dir(), base, "", least, cfg, l.o.Now(), jitter(cfg))
	if err != nil {
		return l.fail(fmt.Errorf("roll: %w", err))
	}
	l.newFiles = true
	l.setSegments(append(segments[:len(segments):len(segments)], s))
	l.mayClean(cfg)
	if l.o.Scheduler != nil && base > l.recovery.Load() {
		l.o.Scheduler.After(0, func() {
			if err := l.Flush(context.Background(), base); err != nil && !errors.Is(err, ErrClosed) {
				l.o.Logger.Error("sync after roll", "topic", l.o.Topic, "partition", l.o.Partition, "err", err)
			}
		})
	}
	return nil
}

// widen replaces the active segment, which is empty, by one that takes at least that many bytes. The caller holds mu.
//
// There is a file of that name all the time: it may be the only one that says where the log's offsets go on.
func (l *Log) widen(least int64) error {
	segments := *l.segments.Load()
	old := segments[len(segments)-1]
	cfg := l.cfg.Load()
	defer l.cuts.Add(1)
	path := segmentPath(l.Dir(), old.base, logSuffix)
	if err := removeFile(path + tmpSuffix); err != nil {
		return l.fail(err)
	}
	s, err := createSegment(l.o.Storage, l.Dir(), old.base, tmpSuffix, least, cfg, l.o.Now(), old.jitter)
	if err != nil {
		return l.fail(err)
	}
	if err := s.data.Rename(path); err != nil {
		return l.fail(errors.Join(err, s.data.Remove()))
	}
	s.next.Store(old.next.Load())
	l.newFiles = true
	l.setSegments(append(segments[:len(segments)-1:len(segments)-1], s))
	if err := old.data.Close(); err != nil {
		return l.fail(err)
	}
	return nil
}

// mend rebuilds a segment's indexes when err says that they are damaged, and gives other errors back.
func (l *Log) mend(s *segment, err error) error {
	if !errors.Is(err, errDamaged) {
		return err
	}
	l.o.Logger.Warn("index damaged, rebuilding it from the segment", "topic", l.o.Topic, "partition", l.o.Partition, "segment", s.base, "err", err)
	return s.rebuild(l.cfg.Load())
}

func (l *Log) setSegments(s []*segment) { l.segments.Store(&s) }
