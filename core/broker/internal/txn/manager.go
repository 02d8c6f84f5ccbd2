package txn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Topic is the internal topic whose leaders coordinate transactions.
const Topic = "__transaction_state"

// Config is what the broker's properties say about transactions.
type Config struct {
	MaxTimeout      time.Duration // transaction.max.timeout.ms
	AbortInterval   time.Duration // transaction.abort.timed.out.transaction.cleanup.interval.ms
	Expiration      time.Duration // transactional.id.expiration.ms
	ExpirationCheck time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms
	Verify          bool          // transaction.partition.verification.enable
}

// Options are what a Manager is built from.
type Options struct {
	Config Config
	// Log is the log of Topic.
	Log offsets.Log
	// Codecs decompress what other brokers may have written there.
	Codecs record.Codecs
	// NewID gives a producer id that nobody had before. It doesn't wait: an error means that trying again will help.
	NewID func() (int64, error)
	// Leader says which broker leads a partition, -1 for none at the moment; exists is false for one that is gone.
	Leader func(partition.ID) (broker int32, exists bool)
	// Markers has markers written.
	Markers Markers
	// Coordinators asks other coordinators, in requests of VerifyVersion, whether producers may write to partitions of this
	// broker; Guards keep what they say, and are the Receiver's too. Nil, or version 0, when nobody is to be asked.
	Coordinators  Coordinators
	VerifyVersion int16
	Guards        *Guards
	Now           func() time.Time
	Logger        *slog.Logger
}

// Manager coordinates the transactions of all transactional ids of this broker. Its methods may be called from any goroutine.
//
// A shard, which is a partition of Topic, is loaded and unloaded by Lead and Resign. There is no goroutine per transaction,
// but for the short time in which markers are written.
type Manager struct {
	o      Options
	log    *slog.Logger
	verify atomic.Bool

	mu      sync.RWMutex
	shards  map[int32]*shard
	stopped bool
	expiry  *time.Timer

	aborts    aborts
	producers byProducer
	loads     chan struct{}   // one for each load that may run
	ctx       context.Context // ends with Stop
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
}

// New makes a manager that coordinates nothing yet.
func New(o Options) *Manager {
	m := &Manager{o: o, log: o.Logger, shards: map[int32]*shard{}, loads: make(chan struct{}, loadsAtOnce)}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if m.o.Guards == nil {
		m.o.Guards = NewGuards()
	}
	m.verify.Store(o.Config.Verify)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// SetVerify puts another transaction.partition.verification.enable in force.
func (m *Manager) SetVerify(on bool) { m.verify.Store(on) }

// Start begins to look for expired transactional ids, every Config.ExpirationCheck.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || m.expiry != nil || m.o.Config.ExpirationCheck <= 0 {
		return
	}
	m.expiry = time.AfterFunc(m.o.Config.ExpirationCheck, func() {
		m.background(m.Expire)
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.stopped {
			m.expiry.Reset(m.o.Config.ExpirationCheck)
		}
	})
}

// Stop unloads all shards. Markers that aren't written yet are for whoever coordinates next. Writes in flight are given up
// when ctx ends. It may be called twice.
func (m *Manager) Stop(ctx context.Context) error {
	m.mu.Lock()
	m.stopped = true
	if m.expiry != nil {
		m.expiry.Stop()
	}
	var ids []int32
	for id := range m.shards {
		ids = append(ids, id)
	}
	m.mu.Unlock()
	m.aborts.stop()
	for _, id := range ids {
		m.Resign(id)
	}
	done := make(chan struct{})
	go func() {
		m.tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
		m.cancel()
		return nil
	case <-ctx.Done():
		m.cancel()
		<-done // everything there waits with the context that has just ended
		return fmt.Errorf("stop the transaction coordinator: %w", ctx.Err())
	}
}

// background runs f on a goroutine that Stop waits for. Once Stop has begun f isn't run any more.
func (m *Manager) background(f func()) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.stopped {
		m.tasks.Go(f)
	}
}

// Prepare makes sure that transactions have somewhere to be kept. ErrUnavailable while they have not.
func (m *Manager) Prepare(ctx context.Context) error {
	if err := m.o.Log.Ensure(ctx, Topic); err != nil {
		return fmt.Errorf("%w: create topic %s: %w", ErrUnavailable, Topic, err)
	}
	return nil
}

// ShardOf is the partition of Topic that a transactional id belongs to; ErrUnavailable while the topic is missing.
func (m *Manager) ShardOf(id string) (int32, error) {
	n, err := m.o.Log.Shards(Topic)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return offsets.ShardOf(id, n), nil
}

// find gives the shard that coordinates a transactional id, if this broker does and is ready to.
func (m *Manager) find(id string) (*shard, error) {
	at, err := m.ShardOf(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCoordinator, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch s := m.shards[at]; {
	case m.stopped:
		return nil, ErrUnavailable
	case s == nil:
		return nil, ErrNotCoordinator
	case s.loading:
		return nil, ErrLoading
	default:
		return s, nil
	}
}

// Lead makes this broker the coordinator of a shard, under the leader epoch of its partition. It does not wait: until the
// shard is loaded, its transactional ids answer ErrLoading. Older epochs, and the one that is led already, are ignored; a
// newer one loads the shard anew.
func (m *Manager) Lead(id, epoch int32) {
	m.mu.Lock()
	old := m.shards[id]
	if m.stopped || old != nil && old.epoch >= epoch {
		m.mu.Unlock()
		return
	}
	s := &shard{id: id, epoch: epoch, loading: true, entries: map[string]*entry{}}
	s.ctx, s.cancel = context.WithCancel(m.ctx)
	m.shards[id] = s
	m.tasks.Go(func() { m.load(s) })
	m.mu.Unlock()
	if old != nil {
		m.drop(old)
	}
}

// Resign ends the coordination of a shard. It does not wait.
func (m *Manager) Resign(id int32) {
	m.mu.Lock()
	s := m.shards[id]
	delete(m.shards, id)
	m.mu.Unlock()
	if s != nil {
		m.drop(s)
	}
}

func (m *Manager) drop(s *shard) {
	s.cancel()
	s.mu.Lock()
	entries := s.entries
	s.entries, s.dropped = nil, true
	s.mu.Unlock()
	for _, e := range entries {
		e.mu.Lock()
		e.gone = true
		id := e.txn.Producer().ID
		e.mu.Unlock()
		m.producers.forget(id, e)
	}
}

// loadsAtOnce bounds how many shards are read at the same time, and with that the memory and the disk's time that it takes.
const loadsAtOnce = 2

// What failed is tried again after retryFirst, and then after twice as long each time, up to retryMax.
const (
	retryFirst = 50 * time.Millisecond
	retryMax   = 30 * time.Second
)

// pause waits before the next try; false when ctx ends.
func pause(ctx context.Context, wait *time.Duration) bool {
	t := time.NewTimer(*wait)
	defer t.Stop()
	*wait = min(2**wait, retryMax)
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// load reads a shard and then opens it. A load that fails is tried again, as long as this broker leads the shard.
func (m *Manager) load(s *shard) {
	for wait := retryFirst; ; {
		select {
		case m.loads <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		began := m.o.Now()
		l := loader{codecs: m.o.Codecs, records: map[string]Record{}}
		err := m.o.Log.Read(s.ctx, Topic, s.id, s.epoch, l.chunk)
		<-m.loads
		if err == nil {
			m.open(s, l.records)
			if len(l.records) > 0 {
				m.log.Info("loaded transactions", "shard", s.id, "epoch", s.epoch, "ids", len(l.records), "took", m.o.Now().Sub(began).Round(time.Millisecond))
			}
			return
		}
		if s.ctx.Err() != nil || errors.Is(err, offsets.ErrNotOwner) || errors.Is(err, offsets.ErrClosed) {
			return // others lead it now
		}
		m.log.Error("can't load transactions, will try again", "shard", s.id, "epoch", s.epoch, "in", wait, "err", err)
		if !pause(s.ctx, &wait) {
			return
		}
	}
}

// open lets requests in to a loaded shard, and goes on with what an earlier coordinator had decided.
func (m *Manager) open(s *shard, records map[string]Record) {
	entries := make(map[string]*entry, len(records))
	var ending []*entry
	var due time.Time
	for id, r := range records {
		e := &entry{shard: s, txn: Restore(id, r)}
		entries[id] = e
		if _, _, unfinished := e.txn.Ending(); unfinished {
			ending = append(ending, e)
		}
		if d := e.txn.Due(); !d.IsZero() && (due.IsZero() || d.Before(due)) {
			due = d
		}
	}
	s.mu.Lock()
	dropped := s.dropped
	if !dropped {
		s.entries = entries
	}
	s.mu.Unlock()
	if dropped {
		return
	}
	for _, e := range entries {
		e.mu.Lock()
		if !e.gone {
			m.producers.set(e.txn.Producer().ID, e)
		}
		e.mu.Unlock()
	}
	m.mu.Lock()
	s.loading = false
	m.mu.Unlock()
	for _, e := range ending {
		m.background(func() { m.complete(e) })
	}
	m.watch(due)
}
