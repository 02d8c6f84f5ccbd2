package log

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// ErrOffline says that the log directory of a partition has failed, or that all of them have.
var ErrOffline = errors.New("log directory is offline")

// ErrNoLog says that there is no log of that partition here.
var ErrNoLog = errors.New("no such log")

// ManagerOptions are what the logs of a broker have in common. Intervals of 0 mean never.
type ManagerOptions struct {
	Storage storage.Storage
	Codecs  record.Codecs
	Logger  *slog.Logger
	// Now is the clock that records and retention go by; nil means time.Now.
	Now func() time.Time
	// Config gives the configuration of a topic's logs when one is opened or made. It must not wait.
	Config func(topic string) Config
	// RecoveryThreads is num.recovery.threads.per.data.dir: how many logs of a directory are checked at once.
	RecoveryThreads int

	// InitialDelay is log.initial.task.delay.ms, RetentionInterval log.retention.check.interval.ms.
	InitialDelay, RetentionInterval time.Duration
	// FlushInterval is log.flush.scheduler.interval.ms: how often flush.ms is looked at.
	FlushInterval time.Duration
	// RecoveryPointInterval, StartOffsetInterval and HighWatermarkInterval are how long a change may wait to be written to
	// its checkpoint file: log.flush.offset.checkpoint.interval.ms, log.flush.start.offset.checkpoint.interval.ms and
	// replica.high.watermark.checkpoint.interval.ms.
	RecoveryPointInterval, StartOffsetInterval, HighWatermarkInterval time.Duration
	// ProducerExpiration is producer.id.expiration.ms at first, ProducerExpirationInterval how often it is looked at.
	ProducerExpiration, ProducerExpirationInterval time.Duration

	// Compaction is whether compacted logs are compacted at all (log.cleaner.enable), and Cleaner how.
	Compaction bool
	Cleaner    CleanerOptions

	// Flushed, when not nil, is told of each sync of a log and how long it took, by whoever synced it. It must be quick.
	Flushed func(took time.Duration)

	// DirFailed, when not nil, is called once for a directory that failed, from a goroutine of the manager's. Its logs take no
	// more writes by then.
	DirFailed func(d *Dir, err error)
}

// DefaultManagerOptions has the intervals of Kafka 3.9, and nothing else.
func DefaultManagerOptions() ManagerOptions {
	return ManagerOptions{
		RecoveryThreads:            1,
		InitialDelay:               30 * time.Second,
		RetentionInterval:          5 * time.Minute,
		RecoveryPointInterval:      time.Minute,
		StartOffsetInterval:        time.Minute,
		HighWatermarkInterval:      5 * time.Second,
		ProducerExpiration:         24 * time.Hour,
		ProducerExpirationInterval: 10 * time.Minute,
		Compaction:                 true,
		Cleaner:                    DefaultCleanerOptions(),
	}
}

// Manager has all logs of a broker, over all its log directories: it opens them, makes new ones, looks after them, and closes
// them. Methods may be called from any goroutine.
//
// It has one goroutine that waits for what is due next, one that waits for something to compact, and nothing per log.
type Manager struct {
	o         ManagerOptions
	dirs      []*dirState
	validator *record.Validator
	upkeep    *upkeep
	cleaner   *cleaner // nil when nothing is compacted

	producerExpiration atomic.Int64 // in milliseconds
	opened             atomic.Bool  // logs has all that the directories hold

	// logs is read without a lock; mu orders changes of it, and is held while a log is given up.
	logs   sync.Map // TopicPartition -> *Log
	mu     sync.Mutex
	in     map[*Log]*dirState
	making map[TopicPartition]chan struct{} // closed when that log is made, or can't be
	makers sync.WaitGroup                   // one for each of making; none begins when open is false
	open   bool
}

// dirState is what the manager knows of a directory.
type dirState struct {
	*Dir
	manager *Manager
	clean   bool // it was left in order
	logs    atomic.Int64
	files   [4]checkpoint // in the order of the constants below
}

// checkpoint is one checkpoint file of a directory. mu is held while it is written.
type checkpoint struct {
	name  string
	every time.Duration
	of    func(l *Log) (offset int64, write bool)

	due     atomic.Bool
	mu      sync.Mutex
	written map[TopicPartition]int64
}

const (
	recoveryPoints = iota
	startOffsets
	highWatermarks
	cleanerOffsets // written after each cleaning: no time has to pass
)

// NewManager makes a manager of these directories, which it closes in the end. Nothing happens before Open.
func NewManager(o ManagerOptions, dirs ...*Dir) *Manager {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{o: o, validator: record.NewValidator(o.Codecs), in: map[*Log]*dirState{}, making: map[TopicPartition]chan struct{}{}}
	m.SetProducerExpiration(o.ProducerExpiration)
	if o.Compaction {
		m.cleaner = newCleaner(m, o.Cleaner)
	}
	for _, d := range dirs {
		s := &dirState{Dir: d, manager: m}
		s.files[recoveryPoints].name, s.files[recoveryPoints].every = RecoveryPoints, o.RecoveryPointInterval
		s.files[recoveryPoints].of = func(l *Log) (int64, bool) { return l.RecoveryPoint(), true }
		s.files[startOffsets].name, s.files[startOffsets].every = StartOffsets, o.StartOffsetInterval
		s.files[startOffsets].of = func(l *Log) (int64, bool) {
			start := l.StartOffset()
			return start, start > (*l.segments.Load())[0].base
		}
		s.files[highWatermarks].name, s.files[highWatermarks].every = HighWatermarks, o.HighWatermarkInterval
		s.files[highWatermarks].of = func(l *Log) (int64, bool) { return l.HighWatermark(), true }
		s.files[cleanerOffsets].name = CleanerOffsets
		s.files[cleanerOffsets].of = func(l *Log) (int64, bool) {
			cleaned := l.cleaned.Load()
			return cleaned, cleaned > 0
		}
		m.dirs = append(m.dirs, s)
	}
	return m
}

// Open opens all logs of all directories, several at once, and starts the upkeep. Directories that were left in order are
// opened without a look at their records; others are checked, which may take long: progress is logged, and ctx ends it.
func (m *Manager) Open(ctx context.Context) error {
	m.upkeep = startUpkeep(max(2, runtime.NumCPU()))
	if err := m.openAll(ctx); err != nil {
		m.upkeep.end()
		m.logs.Range(func(_, l any) bool {
			_ = l.(*Log).release(false) // the reason is err
			return true
		})
		// Nothing was appended: what was in order still is.
		for _, d := range m.dirs {
			if d.clean {
				err = errors.Join(err, d.leaveMarker(-1))
			}
		}
		return err
	}
	m.opened.Store(true)
	m.mu.Lock()
	m.open = true
	m.mu.Unlock()
	// A log that was cut may be ahead of what it was compacted to again before the next cleaning.
	for _, d := range m.dirs {
		_ = d.write(cleanerOffsets) // an error takes the directory offline
	}
	if m.cleaner != nil {
		m.cleaner.start()
	}
	m.every(m.o.RetentionInterval, m.EnforceRetention)
	m.every(m.o.FlushInterval, m.flushOld)
	m.every(m.o.ProducerExpirationInterval, m.expireProducers)
	return nil
}

// every runs f again and again.
func (m *Manager) every(interval time.Duration, f func()) {
	if interval <= 0 {
		return
	}
	var again func()
	again = func() {
		f()
		m.upkeep.After(interval, again)
	}
	m.upkeep.After(m.o.InitialDelay, again)
}

// job is a log that is to be opened.
type job struct {
	dir     *dirState
	tp      TopicPartition
	options Options
}

func (m *Manager) openAll(ctx context.Context) error {
	var jobs []job
	where, here := map[TopicPartition]*dirState{}, map[*dirState][]TopicPartition{}
	dirty := false
	for _, d := range m.dirs {
		found, err := d.partitions()
		if err != nil {
			return err
		}
		here[d] = found
		for _, tp := range found {
			if other := where[tp]; other != nil {
				return fmt.Errorf("%w: partition %s is in both %s and %s: move one of them elsewhere", ErrDirFormat, tp, other.path, d.path)
			}
			where[tp] = d
		}
	}
	// All is where it should be: only now something is changed.
	for _, d := range m.dirs {
		found := here[d]
		err := d.finishDeletions()
		for i := range d.files {
			if err == nil {
				d.files[i].written, err = d.ReadCheckpoint(d.files[i].name)
			}
		}
		if err != nil {
			return err
		}
		clean, err := d.takeMarker()
		if err != nil {
			return fmt.Errorf("log directory %s: %w", d.path, err)
		}
		d.clean = clean
		dirty = dirty || !clean && len(found) > 0
		for _, tp := range found {
			o := m.options(d, tp)
			o.RecoveryPoint, o.StartOffset, o.HighWatermark = d.files[recoveryPoints].written[tp], d.files[startOffsets].written[tp], d.files[highWatermarks].written[tp]
			o.CleanedTo = d.files[cleanerOffsets].written[tp]
			o.CleanShutdown = clean
			jobs = append(jobs, job{d, tp, o})
		}
	}
	if dirty {
		m.o.Logger.Info("checking logs after an unclean stop", "logs", len(jobs))
	}
	began := time.Now()
	var done atomic.Int64
	var reported atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(m.o.RecoveryThreads*len(m.dirs), runtime.NumCPU()))
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			l, err := Open(ctx, j.options)
			if err != nil {
				return err
			}
			m.add(j.dir, j.tp, l)
			n, elapsed := done.Add(1), time.Since(began)
			if last := reported.Load(); elapsed.Milliseconds()-last > progressEvery.Milliseconds() && reported.CompareAndSwap(last, elapsed.Milliseconds()) {
				m.o.Logger.Info("opening logs", "done", n, "of", len(jobs), "elapsed", elapsed.Round(time.Second))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil && len(jobs) > int(done.Load()) {
		return err
	}
	if elapsed := time.Since(began); elapsed > progressEvery {
		m.o.Logger.Info("opened all logs", "logs", len(jobs), "elapsed", elapsed.Round(time.Millisecond))
	}
	return nil
}

func (m *Manager) options(d *dirState, tp TopicPartition) Options {
	return Options{
		Dir: filepath.Join(d.path, tp.String()), Topic: tp.Topic, Partition: tp.Partition,
		Storage: m.o.Storage, Codecs: m.o.Codecs, Validator: m.validator, Config: m.o.Config(tp.Topic),
		Logger: m.o.Logger, Now: m.o.Now, Scheduler: m.upkeep, Events: (*dirEvents)(d), Flushed: m.o.Flushed,
	}
}

func (m *Manager) add(d *dirState, tp TopicPartition, l *Log) {
	m.mu.Lock()
	m.in[l] = d
	m.mu.Unlock()
	d.logs.Add(1)
	m.logs.Store(tp, l)
}

// Dirs are the log directories, those that are offline included.
func (m *Manager) Dirs() []*Dir {
	out := make([]*Dir, len(m.dirs))
	for i, d := range m.dirs {
		out[i] = d.Dir
	}
	return out
}

// DirOf is the directory that a log is in.
func (m *Manager) DirOf(l *Log) *Dir {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.in[l]; d != nil {
		return d.Dir
	}
	return nil
}

// Get is the log of a partition: ErrNoLog when there is none. It takes no lock.
func (m *Manager) Get(tp TopicPartition) (*Log, error) {
	if l, ok := m.logs.Load(tp); ok {
		return l.(*Log), nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNoLog, tp)
}

// All walks over all logs, in no order.
func (m *Manager) All() iter.Seq[*Log] {
	return func(yield func(*Log) bool) {
		m.logs.Range(func(_, l any) bool { return yield(l.(*Log)) })
	}
}

// Delete gives the log of a partition up; its files go after file.delete.delay.ms. ErrNoLog when there is none.
func (m *Manager) Delete(tp TopicPartition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.Get(tp)
	if err != nil {
		return err
	}
	d := m.in[l]
	m.logs.Delete(tp)
	delete(m.in, l)
	d.logs.Add(-1)
	if err := l.Delete(); err != nil {
		d.failed(err)
		return err
	}
	for i := range d.files {
		d.changed(i)
	}
	return nil
}

// EnforceRetention deletes old segments of all logs, as it happens every RetentionInterval.
func (m *Manager) EnforceRetention() {
	for l := range m.All() {
		if _, err := l.DeleteOldSegments(m.o.Now()); err != nil && l.Err() == nil {
			m.o.Logger.Error("deleting old segments", "topic", l.Topic(), "partition", l.Partition(), "err", err)
		}
	}
}

// SetProducerExpiration sets how long a producer may be silent before it is forgotten, from the next look on.
func (m *Manager) SetProducerExpiration(d time.Duration) {
	m.producerExpiration.Store(d.Milliseconds())
}

func (m *Manager) expireProducers() {
	for l := range m.All() {
		l.ExpireProducers(m.o.Now(), m.producerExpiration.Load())
	}
}

// flushOld syncs the logs whose oldest record that isn't durable has waited for flush.ms.
func (m *Manager) flushOld() {
	now := time.Now()
	for l := range m.All() {
		ms := l.cfg.Load().FlushMs
		since := l.dirtySince.Load()
		if ms == math.MaxInt64 || since == 0 || now.UnixMilli()-since < ms {
			continue
		}
		if err := l.Flush(context.Background(), l.EndOffset()); err != nil && l.Err() == nil {
			m.o.Logger.Error("flush.ms", "topic", l.Topic(), "partition", l.Partition(), "err", err)
		}
	}
}

// Checkpoint writes all checkpoint files now.
func (m *Manager) Checkpoint() error {
	var err error
	for _, d := range m.dirs {
		for i := range d.files {
			if d.Err() == nil {
				err = errors.Join(err, d.write(i))
			}
		}
	}
	return err
}

// Close ends the upkeep, closes all logs, writes the checkpoint files, and leaves the clean-shutdown marker in each directory
// whose logs all closed in order. The directories are given back. ctx bounds it; what isn't closed in order by then is
// checked when it is opened again.
func (m *Manager) Close(ctx context.Context, brokerEpoch int64) error {
	m.mu.Lock()
	wasOpen := m.open
	m.open = false
	m.mu.Unlock()
	m.makers.Wait()
	var errs error
	if wasOpen {
		if m.cleaner != nil {
			m.cleaner.end()
		}
		m.upkeep.end()
		errs = m.closeLogs(ctx, brokerEpoch)
	}
	for _, d := range m.dirs {
		errs = errors.Join(errs, d.Dir.Close())
	}
	return errs
}

func (m *Manager) closeLogs(ctx context.Context, brokerEpoch int64) error {
	var mu sync.Mutex
	var errs error
	bad := map[*dirState]bool{}
	var group errgroup.Group
	group.SetLimit(16) // syncs, mostly
	m.mu.Lock()
	in := maps.Clone(m.in)
	m.mu.Unlock()
	for l, d := range in {
		group.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = l.Close(ctx)
			}
			if err != nil {
				_ = l.release(false) // the reason is err
				mu.Lock()
				defer mu.Unlock()
				bad[d], errs = true, errors.Join(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // each has put its error into errs
	for _, d := range m.dirs {
		if d.Err() != nil {
			continue
		}
		var err error
		for i := range d.files {
			err = errors.Join(err, d.write(i))
		}
		if err == nil && !bad[d] {
			err = d.leaveMarker(brokerEpoch)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}
