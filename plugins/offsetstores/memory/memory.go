// Package memory keeps the offsets of consumer groups in memory only: for tests, demonstrations and brokers that shall
// forget everything at their end. It has one shard and no topic.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the options of the plug-in: it has none.
type Options struct{}

// NewFactory makes the store from the YAML file.
func NewFactory() offsets.Factory {
	return plugin.NewFactory("memory", "in memory only: committed offsets and groups are forgotten when the broker stops",
		func() Options { return Options{} },
		func(Options, offsets.Settings) (offsets.Store, error) { return New(), nil })
}

// Store is an [offsets.Store].
type Store struct {
	owners offsets.Owners

	mu      sync.Mutex
	entries map[offsets.Key]offsets.Entry
	pending map[int64]map[offsets.Key]offsets.Entry // by producer: entries of transactions that are open
}

var _ offsets.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	s := &Store{}
	s.owners.Close()
	return s
}

// Start makes the store usable. There is nothing in it.
func (s *Store) Start(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = map[offsets.Key]offsets.Entry{}
	s.pending = map[int64]map[offsets.Key]offsets.Entry{}
	s.owners.Open()
	return nil
}

// Stop forgets everything.
func (s *Store) Stop(context.Context) error {
	s.owners.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.pending = nil, nil
	return nil
}

// Topic is "": there is no topic.
func (*Store) Topic() string { return "" }

// Prepare has nothing to do.
func (*Store) Prepare(context.Context) error { return nil }

// Shard is 0: there is one shard.
func (*Store) Shard(string) (int32, error) { return 0, nil }

// Load implements the contract. Writes wait while visit runs.
func (s *Store) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	if shard != 0 {
		return fmt.Errorf("memory: %w: there is no shard %d", offsets.ErrNotOwner, shard)
	}
	if err := s.owners.Begin(shard, epoch); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return s.owners.Finish(shard, epoch, s.visitAll(ctx, visit))
}

func (s *Store) visitAll(ctx context.Context, visit func(offsets.Event) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	give := func(producer int64, entries map[offsets.Key]offsets.Entry) error {
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("memory: load: %w", err)
			}
			if err := visit(offsets.Event{Entry: clone(e), Producer: producer}); err != nil {
				return fmt.Errorf("memory: load: %w", err)
			}
		}
		return nil
	}
	if err := give(offsets.None, s.entries); err != nil {
		return err
	}
	for producer, entries := range s.pending {
		if err := give(producer, entries); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Unload implements the contract.
func (s *Store) Unload(shard, epoch int32) { s.owners.Drop(shard, epoch) }

// Write implements the contract.
func (s *Store) Write(ctx context.Context, shard, epoch int32, b offsets.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	for _, e := range b.Entries {
		if err := fits(e); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.owners.Check(shard, epoch); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if b.Producer == nil {
		s.apply(b.Entries)
		return nil
	}
	pending := s.pending[b.Producer.ID]
	if b.Ended != offsets.NotEnded {
		delete(s.pending, b.Producer.ID)
		if b.Ended == offsets.Committed {
			for _, e := range pending {
				s.apply([]offsets.Entry{e})
			}
		}
		return nil
	}
	if pending == nil {
		pending = map[offsets.Key]offsets.Entry{}
		s.pending[b.Producer.ID] = pending
	}
	for _, e := range b.Entries {
		pending[e.Key] = clone(e)
	}
	return nil
}

func (s *Store) apply(entries []offsets.Entry) {
	for _, e := range entries {
		if e.Tombstone() {
			delete(s.entries, e.Key)
			continue
		}
		s.entries[e.Key] = clone(e)
	}
}

// clone copies what an entry points to.
func clone(e offsets.Entry) offsets.Entry {
	if e.Offset != nil {
		o := *e.Offset
		e.Offset = &o
	}
	if e.Meta != nil {
		g := *e.Meta
		g.Members = append([]offsets.Member(nil), g.Members...)
		for i := range g.Members {
			m := &g.Members[i]
			m.Subscription, m.Assignment = bytes.Clone(m.Subscription), bytes.Clone(m.Assignment)
			m.InstanceID = copied(m.InstanceID)
		}
		g.Protocol, g.Leader = copied(g.Protocol), copied(g.Leader)
		e.Meta = &g
	}
	return e
}

func copied(s *string) *string {
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

// fits refuses what the record format could not hold, so that stores may be exchanged.
func fits(e offsets.Entry) error {
	check := func(texts ...*string) error {
		for _, s := range texts {
			if s != nil && len(*s) > math.MaxInt16 {
				return fmt.Errorf("%w: a string of %d bytes", offsets.ErrTooLarge, len(*s))
			}
		}
		return nil
	}
	if err := check(&e.Group, &e.Topic); err != nil {
		return err
	}
	if e.Offset != nil {
		return check(&e.Offset.Metadata)
	}
	if e.Meta != nil {
		for i := range e.Meta.Members {
			m := &e.Meta.Members[i]
			if err := check(&m.ID, m.InstanceID, &m.ClientID, &m.ClientHost); err != nil {
				return err
			}
		}
		return check(&e.Meta.ProtocolType, e.Meta.Protocol, e.Meta.Leader)
	}
	return nil
}
