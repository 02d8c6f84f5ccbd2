package txn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/record"
)

// shard is the transactional ids of one partition of Topic that this broker coordinates.
type shard struct {
	id, epoch int32
	loading   bool // guarded by the manager's lock
	ctx       context.Context
	cancel    context.CancelFunc

	mu      sync.RWMutex
	entries map[string]*entry
	dropped bool
}

// entry is a transaction with its lock.
type entry struct {
	shard *shard

	mu   sync.Mutex
	txn  *Transaction
	gone bool // not among the shard's entries any more
}

func (s *shard) get(id string) *entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.entries[id]
}

// all gives all entries.
func (s *shard) all() []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		list = append(list, e)
	}
	return list
}

// add puts a new entry in, unless there is one already, which it gives then.
func (s *shard) add(id string, producerID int64) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return nil, ErrNotCoordinator
	}
	if e := s.entries[id]; e != nil {
		return e, nil
	}
	e := &entry{shard: s, txn: NewTransaction(id, producerID)}
	s.entries[id] = e
	return e, nil
}

// remove takes an entry out. The caller holds the entry's lock.
func (s *shard) remove(e *entry) {
	e.gone = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[e.txn.ID()] == e {
		delete(s.entries, e.txn.ID())
	}
}

// lock finds a transactional id and locks it; ErrProducerMapping when there is none.
func (m *Manager) lock(id string) (*entry, error) {
	if id == "" {
		return nil, ErrInvalidRequest
	}
	s, err := m.find(id)
	if err != nil {
		return nil, err
	}
	e := s.get(id)
	if e == nil {
		return nil, ErrProducerMapping
	}
	e.mu.Lock()
	if e.gone {
		e.mu.Unlock()
		return nil, ErrNotCoordinator
	}
	return e, nil
}

// writeTimeout is how long a change of a transaction may wait for the replicas of Topic.
const writeTimeout = 30 * time.Second

// store stores a change and tells the transaction. What was decided is carried out from then on. It isn't bound to the
// request that asked for it: a client that goes away must not leave the change half done.
func (m *Manager) store(e *entry, c *Change) error {
	err := m.append(e, c)
	if err != nil && !errors.Is(err, offsets.ErrNotOwner) {
		m.log.Warn("can't store the state of a transaction", "id", e.txn.ID(), "shard", e.shard.id, "epoch", e.shard.epoch, "state", c.State.String(), "err", err)
	}
	e.mu.Lock()
	before := e.txn.Producer().ID
	e.txn.Stored(err)
	after := e.txn.Producer().ID
	due := e.txn.Due()
	_, _, ending := e.txn.Ending()
	gone := e.gone
	if !gone && (err == nil && c.State == Dead || err != nil && e.txn.Unborn()) {
		e.shard.remove(e) // expired, or never came into being
		gone = true
	}
	if before != after || gone {
		m.producers.forget(before, e)
	}
	if !gone {
		m.producers.set(after, e)
	}
	e.mu.Unlock()
	if err != nil {
		return storeError(err)
	}
	switch {
	case ending:
		m.background(func() { m.complete(e) })
	case !due.IsZero():
		m.watch(due)
	}
	return nil
}

func (m *Manager) append(e *entry, c *Change) error {
	key, err := AppendKey(nil, e.txn.ID())
	if err != nil {
		return err
	}
	r := record.Record{Timestamp: m.o.Now().UnixMilli(), Key: key}
	if c.State != Dead {
		r.Value = AppendValue(nil, c.Record)
	}
	b := record.NewBuilder(record.Options{LeaderEpoch: record.NoLeaderEpoch})
	if err := b.Append(r); err != nil {
		return err
	}
	batch, err := b.Build(nil, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(m.ctx, writeTimeout)
	defer cancel()
	return m.o.Log.Append(ctx, Topic, e.shard.id, e.shard.epoch, batch)
}

// byProducer finds transactions by their producer ids, for appends that know no more.
type byProducer struct {
	mu sync.RWMutex
	by map[int64]*entry
}

func (p *byProducer) get(id int64) *entry {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.by[id]
}

func (p *byProducer) set(id int64, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[int64]*entry{}
	}
	p.by[id] = e
}

func (p *byProducer) forget(id int64, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[id] == e {
		delete(p.by, id)
	}
}

// Verify says with nil that a producer may write to a partition as part of the open transaction of a transactional id. It
// does not wait, and a log may call it under its lock: nothing that it says is outdated before that lock is let go, for the
// markers of the transaction need it, too (KIP-890's guard against transactions that nobody ends). Where another broker
// coordinates, it says what Permit was told.
func (m *Manager) Verify(id string, p Producer, to partition.ID) error {
	if !m.verify.Load() {
		return nil
	}
	if _, elsewhere := m.Elsewhere(id); elsewhere {
		if known, err := m.o.Guards.verify(p, to); known {
			return err
		}
		return ErrConcurrent // not asked, or ended meanwhile: to be tried again
	}
	e, err := m.lock(id)
	if errors.Is(err, ErrNotCoordinator) && m.blind() {
		return nil
	}
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	return e.txn.Verify(p, to)
}

// VerifyProducer is Verify for who knows the producer and not the transactional id.
func (m *Manager) VerifyProducer(p Producer, to partition.ID) error {
	if !m.verify.Load() {
		return nil
	}
	e := m.producers.get(p.ID)
	if e == nil {
		if known, err := m.o.Guards.verify(p, to); known {
			return err
		}
		if m.blind() {
			return nil
		}
		return m.unknownProducer()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return ErrNotCoordinator
	}
	return e.txn.Verify(p, to)
}

// unknownProducer says why a producer isn't known: it may be in a shard that is loading.
func (m *Manager) unknownProducer() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, s := range m.shards {
		if s.loading {
			return ErrLoading
		}
	}
	return ErrProducerMapping
}
