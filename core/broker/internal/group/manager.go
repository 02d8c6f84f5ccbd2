package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// Options are what a Manager is built from.
type Options struct {
	Config Config
	Store  offsets.Store // started, and stopped, by whoever made it
	Logger *slog.Logger
	// Journal remembers why groups rebalanced; nil for none.
	Journal *journal.Journal
}

// Manager coordinates all groups of this broker. Its methods may be called from any goroutine.
//
// A shard is loaded and unloaded by Lead and Resign. Each group has a lock of its own, held while an event is decided and
// never while anything waits. Writes of a group are stored one after another, in the order in which they were asked for;
// those that come up while one runs go together in the next. Groups that have deadlines have one timer each; there is no
// goroutine per group.
type Manager struct {
	cfg     Config
	store   offsets.Store
	log     *slog.Logger
	journal *journal.Journal

	mu      sync.RWMutex
	shards  map[int32]*shard
	stopped bool

	loads  chan struct{}   // one for each load that may run
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	expiry *time.Timer
}

// New makes a manager that coordinates nothing yet.
func New(o Options) *Manager {
	m := &Manager{cfg: o.Config, store: o.Store, log: o.Logger, journal: o.Journal, shards: map[int32]*shard{},
		loads: make(chan struct{}, loadsAtOnce)}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Start begins to look for expired offsets, every Config.RetentionCheck.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || m.expiry != nil || m.cfg.RetentionCheck <= 0 {
		return
	}
	m.expiry = time.AfterFunc(m.cfg.RetentionCheck, func() {
		m.background(func() { m.Expire(m.ctx) })
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.stopped {
			m.expiry.Reset(m.cfg.RetentionCheck)
		}
	})
}

// Stop unloads all shards: who waits is told that this broker is no coordinator any more. Writes in flight are given up
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
		return fmt.Errorf("stop the group coordinator: %w", ctx.Err())
	}
}

// background runs f on a goroutine that Stop waits for. Once Stop has begun it runs f at once, which fails then.
func (m *Manager) background(f func()) {
	m.mu.RLock()
	stopped := m.stopped
	if !stopped {
		m.tasks.Go(f)
	}
	m.mu.RUnlock()
	if stopped {
		f()
	}
}

// Prepare makes sure that groups have somewhere to be kept. See offsets.Store.
func (m *Manager) Prepare(ctx context.Context) error { return m.store.Prepare(ctx) }

// Topic is the internal topic whose leaders coordinate groups, "" when there is none.
func (m *Manager) Topic() string { return m.store.Topic() }

// ShardOf is the partition of Topic that a group belongs to; ErrUnavailable while the topic is missing.
func (m *Manager) ShardOf(group string) (int32, error) {
	id, err := m.store.Shard(group)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return id, nil
}

// find gives the shard that coordinates a group, if this broker does and is ready to.
func (m *Manager) find(group string) (*shard, error) {
	id, err := m.store.Shard(group)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCoordinator, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch s := m.shards[id]; {
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

// findValid is find for requests that need a group id.
func (m *Manager) findValid(group string) (*shard, error) {
	if group == "" {
		return nil, ErrInvalidGroupID
	}
	return m.find(group)
}

// Lead makes this broker the coordinator of a shard, under the leader epoch of its partition. It does not wait: until the
// shard is loaded its groups answer ErrLoading. Older epochs, and the one that is led already, are ignored; a newer one loads
// the shard anew. With a store that has no topic, somebody has to say who leads its one shard, 0.
func (m *Manager) Lead(id, epoch int32) {
	m.mu.Lock()
	old := m.shards[id]
	if m.stopped || old != nil && old.epoch >= epoch {
		m.mu.Unlock()
		return
	}
	s := &shard{id: id, epoch: epoch, loading: true, groups: map[string]*entry{}}
	s.ctx, s.cancel = context.WithCancel(m.ctx)
	m.shards[id] = s
	m.tasks.Go(func() { m.load(s) })
	m.mu.Unlock()
	if old != nil {
		m.drop(old)
	}
}

// Resign ends the coordination of a shard: its groups are forgotten here, and whoever waits for one of them is sent to
// look for the coordinator again. It does not wait.
func (m *Manager) Resign(id int32) {
	m.mu.Lock()
	s := m.shards[id]
	delete(m.shards, id)
	m.mu.Unlock()
	if s != nil {
		m.store.Unload(id, s.epoch)
		m.drop(s)
		m.journal.Record(journal.ShardLeft{Shard: id, Epoch: s.epoch})
	}
}

func (m *Manager) drop(s *shard) {
	s.cancel()
	s.mu.Lock()
	groups := s.groups
	s.groups, s.dropped = nil, true
	s.mu.Unlock()
	for _, e := range groups {
		e.mu.Lock()
		e.gone = true
		e.deliver(e.group.Unload(time.Now()))
		e.wake()
		e.mu.Unlock()
	}
}

// loadsAtOnce bounds how many shards are read at the same time, and with that the memory and the disk's time that it takes.
const loadsAtOnce = 2

// A load that failed is tried again after retryLoad, and then after twice as long each time, up to retryLoadMax.
const (
	retryLoad    = time.Second
	retryLoadMax = time.Minute
)

// load reads a shard and then opens it. A load that fails is tried again, as long as this broker leads the shard: the
// groups can't be served without what was committed.
func (m *Manager) load(s *shard) {
	for wait := retryLoad; ; wait = min(2*wait, retryLoadMax) {
		select {
		case m.loads <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		began := time.Now()
		r := newRestorer()
		err := m.store.Load(s.ctx, s.id, s.epoch, r.apply)
		<-m.loads
		if err == nil {
			m.open(s, r)
			m.journal.Record(journal.ShardLoaded{Shard: s.id, Epoch: s.epoch, Groups: len(r.groups), Took: journal.Millis(time.Since(began))})
			m.log.Log(s.ctx, levelOf(len(r.groups)), "loaded groups", "shard", s.id, "epoch", s.epoch, "groups", len(r.groups), "took", time.Since(began).Round(time.Millisecond))
			return
		}
		if s.ctx.Err() != nil || errors.Is(err, offsets.ErrClosed) {
			return
		}
		if errors.Is(err, offsets.ErrNotOwner) {
			m.log.Warn("can't load groups: another broker has them", "shard", s.id, "epoch", s.epoch, "err", err)
			return
		}
		m.journal.Record(journal.ShardFailed{Shard: s.id, Epoch: s.epoch, Err: err.Error()})
		m.log.Error("can't load groups, will try again", "shard", s.id, "epoch", s.epoch, "in", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
			return
		}
	}
}

// levelOf keeps the loading of empty shards out of the log.
func levelOf(groups int) slog.Level {
	if groups == 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// open makes the groups of a loaded shard and lets requests in.
func (m *Manager) open(s *shard, r *restorer) {
	now := time.Now()
	groups := make(map[string]*entry, len(r.groups))
	for id, g := range r.groups {
		if g.gone() {
			continue
		}
		e := newEntry(m, s)
		e.group = g.restore(id, &m.cfg, now)
		groups[id] = e
		for producer := range e.group.txn {
			s.note(producer, e)
		}
	}
	s.mu.Lock()
	if !s.dropped {
		s.groups = groups
	}
	s.mu.Unlock()
	for _, e := range groups {
		e.mu.Lock()
		if !s.isDropped() {
			e.wake()
		}
		e.mu.Unlock()
	}
	m.mu.Lock()
	s.loading = false
	m.mu.Unlock()
}

// newMemberID makes the id of a new member: what it is called, and something unique.
func newMemberID(clientID string, instance *string) string {
	if instance != nil {
		return *instance + "-" + uuid.NewString()
	}
	return clientID + "-" + uuid.NewString()
}
