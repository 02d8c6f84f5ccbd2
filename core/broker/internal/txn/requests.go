package txn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// Init gives the producer of a transactional id an id and an epoch that fence those before it. An open transaction is aborted
// first: ErrConcurrent, and the producer asks again. FreshID is filled in here.
func (m *Manager) Init(id string, r Init) (Producer, error) {
	nobody := noProducer()
	if id == "" || len(id) > maxID {
		return nobody, ErrInvalidRequest
	}
	if r.Timeout <= 0 || r.Timeout > m.o.Config.MaxTimeout {
		return nobody, ErrInvalidTimeout
	}
	s, err := m.find(id)
	if err != nil {
		return nobody, err
	}
	e, err := m.obtain(s, id)
	if err != nil {
		return nobody, err
	}
	r.FreshID = none
	e.mu.Lock()
	needs := e.txn.NeedsID()
	e.mu.Unlock()
	if needs {
		if r.FreshID, err = m.newID(); err != nil {
			return nobody, err
		}
	}
	e.mu.Lock()
	if e.gone {
		e.mu.Unlock()
		return nobody, ErrNotCoordinator
	}
	c, err := e.txn.Init(m.o.Now(), r)
	e.mu.Unlock()
	if c == nil {
		return nobody, err
	}
	if failed := m.store(e, c); failed != nil {
		return nobody, failed
	}
	if err != nil {
		return nobody, err
	}
	return Producer{ID: c.ProducerID, Epoch: c.Epoch}, nil
}

// obtain finds a transactional id, or makes it.
func (m *Manager) obtain(s *shard, id string) (*entry, error) {
	if e := s.get(id); e != nil {
		return e, nil
	}
	fresh, err := m.newID()
	if err != nil {
		return nil, err
	}
	return s.add(id, fresh)
}

func (m *Manager) newID() (int64, error) {
	id, err := m.o.NewID()
	if err != nil {
		return none, fmt.Errorf("%w: %w", ErrLoading, err)
	}
	return id, nil
}

// change decides an event and stores what it changes.
func (m *Manager) change(id string, event func(*Transaction, time.Time) (*Change, error)) error {
	e, err := m.lock(id)
	if err != nil {
		return err
	}
	c, err := event(e.txn, m.o.Now())
	e.mu.Unlock()
	if c == nil {
		return err
	}
	return m.store(e, c)
}

// Add adds partitions to the open transaction of a producer, or begins one. On nil that is stored.
func (m *Manager) Add(id string, p Producer, partitions []partition.ID) error {
	return m.change(id, func(t *Transaction, now time.Time) (*Change, error) { return t.Add(now, p, partitions) })
}

// End commits or aborts the open transaction of a producer. On nil that is decided and stored; the markers are written soon
// after.
func (m *Manager) End(id string, p Producer, commit bool) error {
	return m.change(id, func(t *Transaction, now time.Time) (*Change, error) { return t.End(now, p, commit) })
}

// InTransaction says for each partition whether it is part of the open transaction of a producer (KIP-890); with an error for
// none of them.
func (m *Manager) InTransaction(id string, p Producer, partitions []partition.ID) ([]error, error) {
	e, err := m.lock(id)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	errs := make([]error, len(partitions))
	for i, to := range partitions {
		errs[i] = e.txn.Verify(p, to)
	}
	return errs, nil
}

// Description is what there is to say about a transactional id.
type Description struct {
	ID string
	Record
}

// Describe describes a transactional id; ErrNotFound when there is none.
func (m *Manager) Describe(id string) (Description, error) {
	e, err := m.lock(id)
	switch {
	case err == ErrProducerMapping:
		return Description{ID: id}, ErrNotFound
	case err != nil:
		return Description{ID: id}, err
	}
	defer e.mu.Unlock()
	if e.txn.Unborn() {
		return Description{ID: id}, ErrNotFound
	}
	return Description{id, e.txn.Record()}, nil
}

// List lists the transactional ids that this broker coordinates, in their order. ErrLoading while not all are known.
func (m *Manager) List() ([]Description, error) {
	m.mu.RLock()
	var err error
	var shards []*shard
	for _, s := range m.shards {
		if s.loading {
			err = ErrLoading
		}
		shards = append(shards, s)
	}
	if m.stopped {
		err = ErrUnavailable
	}
	m.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	var list []Description
	for _, s := range shards {
		for _, e := range s.all() {
			e.mu.Lock()
			if !e.gone && !e.txn.Unborn() {
				list = append(list, Description{e.txn.ID(), e.txn.Record()})
			}
			e.mu.Unlock()
		}
	}
	slices.SortFunc(list, func(a, b Description) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}
