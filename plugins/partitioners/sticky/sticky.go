// Package sticky is the partitioner of Java's UniformStickyPartitioner (KIP-480): whatever their keys, records go to one random
// partition until a batch is full, and then to another one, so that batches are large and every partition gets its share.
package sticky

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the options of the plug-in.
type Options struct {
	BatchBytes config.ByteSize `yaml:"batch_bytes" doc:"bytes of keys, values and headers that go to one partition before another one is chosen"`
}

// DefaultOptions has the batch.size of the Java client.
func DefaultOptions() Options { return Options{BatchBytes: 16 << 10} }

// Validate refuses batches of nothing.
func (o *Options) Validate() error {
	if o.BatchBytes < 1 {
		return config.At("batch_bytes", errors.New("must be at least 1 byte"))
	}
	return nil
}

// NewFactory makes the partitioner from the YAML file.
func NewFactory() partitioner.Factory {
	return plugin.NewFactory("sticky", "one random partition until a batch is full, then another, whatever the keys, as Java's UniformStickyPartitioner does",
		DefaultOptions,
		func(o Options, _ partitioner.Settings) (partitioner.Partitioner, error) { return New(o), nil })
}

// New makes the partitioner.
func New(o Options) *Partitioner {
	return &Partitioner{batch: int64(o.BatchBytes), topics: map[string]stuck{}}
}

// maxTopics bounds the memory for those who partition for very many topics: beyond it all begin with a new partition.
const maxTopics = 10_000

// Partitioner is a [partitioner.Partitioner].
type Partitioner struct {
	batch int64

	mu     sync.Mutex
	topics map[string]stuck
}

// stuck is where the records of a topic go at present.
type stuck struct {
	partition int32
	room      int64 // bytes until its batch is full; not positive when it is
}

var _ partitioner.Partitioner = (*Partitioner)(nil)

// Start does nothing: there is nothing to start.
func (*Partitioner) Start(context.Context) error { return nil }

// Stop does nothing.
func (*Partitioner) Stop(context.Context) error { return nil }

// Keyed is false: the key plays no part.
func (*Partitioner) Keyed() bool { return false }

// Partition implements the contract.
func (p *Partitioner) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, fmt.Errorf("sticky: %w: topic %q has no partitions", partitioner.ErrInvalid, b.Topic)
	}
	if len(b.Records) == 0 {
		return dst, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.topics[b.Topic]
	switch {
	case !ok:
		if len(p.topics) >= maxTopics {
			clear(p.topics)
		}
		at = stuck{partition: -1}
	case at.partition >= b.Partitions, len(b.Available) > 0 && !contains(b.Available, at.partition):
		at.room = 0 // nothing can go there any more
	}
	for i := range b.Records {
		if at.room <= 0 {
			at = stuck{other(b, at.partition), p.batch}
		}
		at.room -= size(&b.Records[i])
		dst = append(dst, at.partition)
	}
	p.topics[b.Topic] = at
	return dst, nil
}

// other chooses a random partition, as Java's StickyPartitionCache does: of those that are available another one than the last
// if there is one, and any when none is known to be available.
func other(b *partitioner.Batch, last int32) int32 {
	n := uint32(len(b.Available))
	if n < 2 {
		return b.Choose(rand.Uint32())
	}
	at, found := slices.BinarySearch(b.Available, last)
	if !found {
		return b.Available[rand.Uint32N(n)]
	}
	next := rand.Uint32N(n - 1)
	if next >= uint32(at) {
		next++
	}
	return b.Available[next]
}

func contains(available []int32, partition int32) bool {
	_, found := slices.BinarySearch(available, partition)
	return found
}

// size is at least 1, so that records without content fill a batch, too.
func size(r *partitioner.Record) int64 {
	n := 1 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}
