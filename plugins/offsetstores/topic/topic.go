// Package topic keeps the offsets of consumer groups as Kafka does: in the compacted topic `__consumer_offsets`, in Kafka's
// own record formats. Whoever leads one of its partitions coordinates the groups that hash to it.
package topic

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Name is the name of the topic, which clients and tools know.
const Name = "__consumer_offsets"

// Options are the options of the plug-in: it has none. How the topic is made is a matter of the broker's own properties
// (offsets.topic.num.partitions, offsets.topic.replication.factor, offsets.topic.segment.bytes).
type Options struct{}

// NewFactory makes the store from the YAML file.
func NewFactory() offsets.Factory {
	return plugin.NewFactory("topic", "in the compacted topic __consumer_offsets, in Kafka's own record formats",
		func() Options { return Options{} },
		func(_ Options, s offsets.Settings) (offsets.Store, error) { return New(s) })
}

// Store is an [offsets.Store].
type Store struct {
	log    offsets.Log
	codecs record.Codecs
	logger *slog.Logger
	owners offsets.Owners
	pool   sync.Pool // of *scratch
}

var _ offsets.Store = (*Store)(nil)

// scratch is the memory that a write needs.
type scratch struct {
	builder *record.Builder
	key     []byte
	value   []byte
	batch   []byte
}

// keepScratch bounds what the pool holds on to.
const keepScratch = 256 << 10

// New makes the store over the host's log.
func New(s offsets.Settings) (*Store, error) {
	if s.Log == nil {
		return nil, fmt.Errorf("the store needs the log of a broker")
	}
	st := &Store{log: s.Log, codecs: s.Codecs, logger: s.Logger}
	if st.logger == nil {
		st.logger = slog.New(slog.DiscardHandler)
	}
	st.pool.New = func() any { return &scratch{builder: record.NewBuilder(record.Options{})} }
	st.owners.Close()
	return st, nil
}

// Start makes the store usable.
func (s *Store) Start(context.Context) error {
	s.owners.Open()
	return nil
}

// Stop ends all ownership. The log is the host's.
func (s *Store) Stop(context.Context) error {
	s.owners.Close()
	return nil
}

// Topic names the topic.
func (*Store) Topic() string { return Name }

// Prepare creates the topic when it is missing.
func (s *Store) Prepare(ctx context.Context) error {
	if err := s.log.Ensure(ctx, Name); err != nil {
		return fmt.Errorf("create topic %s: %w", Name, err)
	}
	return nil
}

// Shard implements the contract. The topic's real number of partitions counts, whatever the broker's settings say.
func (s *Store) Shard(group string) (int32, error) {
	n, err := s.log.Shards(Name)
	if err != nil {
		return 0, fmt.Errorf("count partitions of %s: %w", Name, err)
	}
	if n < 1 {
		return 0, fmt.Errorf("%w: topic %s has no partitions", offsets.ErrUnavailable, Name)
	}
	return offsets.ShardOf(group, n), nil
}

// Load implements the contract.
func (s *Store) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	if err := s.owners.Begin(shard, epoch); err != nil {
		return err
	}
	l := loader{codecs: s.codecs, visit: visit}
	err := s.log.Read(ctx, Name, shard, epoch, func(chunk []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return l.chunk(chunk)
	})
	if err == nil {
		err = ctx.Err()
	}
	if l.foreign > 0 {
		s.logger.Warn("passed over records of newer kinds of groups, or without a key", "topic", Name, "partition", shard, "records", l.foreign)
	}
	if err = s.owners.Finish(shard, epoch, err); err != nil {
		return fmt.Errorf("load %s-%d: %w", Name, shard, err)
	}
	return nil
}

// Unload implements the contract.
func (s *Store) Unload(shard, epoch int32) { s.owners.Drop(shard, epoch) }

// Write implements the contract: one batch of records.
func (s *Store) Write(ctx context.Context, shard, epoch int32, b offsets.Batch) error {
	if err := s.owners.Check(shard, epoch); err != nil {
		return fmt.Errorf("write to %s-%d: %w", Name, shard, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write to %s-%d: %w", Name, shard, err)
	}
	if len(b.Entries) == 0 && b.Ended == offsets.NotEnded {
		return nil
	}
	sc := s.pool.Get().(*scratch)
	defer func() {
		if cap(sc.batch)+cap(sc.value) <= keepScratch && sc.builder.Size() <= keepScratch {
			s.pool.Put(sc)
		}
	}()
	if err := sc.encode(b); err != nil {
		return fmt.Errorf("write to %s-%d: %w", Name, shard, err)
	}
	if err := s.log.Append(ctx, Name, shard, epoch, sc.batch); err != nil {
		return fmt.Errorf("write to %s-%d: %w", Name, shard, err)
	}
	return nil
}

// encode makes the batch.
func (sc *scratch) encode(b offsets.Batch) error {
	o := record.Options{LeaderEpoch: record.NoLeaderEpoch}
	if b.Producer != nil {
		o.Producer = &record.Producer{ID: b.Producer.ID, Epoch: b.Producer.Epoch, Sequence: record.NoSequence}
		o.Transactional, o.Control = true, b.Ended != offsets.NotEnded
	}
	sc.builder.Reset(o)
	var err error
	if o.Control {
		marker := record.EndTxnMarker{Commit: b.Ended == offsets.Committed, CoordinatorEpoch: b.CoordinatorEpoch}
		err = sc.builder.Append(marker.Record(0, b.Timestamp))
	} else {
		err = sc.records(b)
	}
	if err == nil {
		sc.batch, err = sc.builder.Build(sc.batch[:0], nil)
	}
	return err
}

func (sc *scratch) records(b offsets.Batch) (err error) {
	for i, e := range b.Entries {
		if sc.key, err = offsets.AppendKey(sc.key[:0], e.Key); err != nil {
			return err
		}
		r := record.Record{Offset: int64(i), Timestamp: b.Timestamp, Key: sc.key}
		if !e.Tombstone() {
			if sc.value, err = offsets.AppendValue(sc.value[:0], e); err != nil {
				return err
			}
			r.Value = sc.value
		}
		if err = sc.builder.Append(r); err != nil {
			return fmt.Errorf("%w: %w", offsets.ErrTooLarge, err)
		}
	}
	return nil
}
