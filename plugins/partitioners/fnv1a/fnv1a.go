// Package fnv1a is the hash partitioner of sarama, its default: the key's 32-bit FNV-1a, taken for a signed number, modulo the
// number of partitions, without its sign. An empty key is a key. Each record without one goes to a random partition that has a
// leader.
package fnv1a

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the options of the plug-in: it has none.
type Options struct{}

// NewFactory makes the partitioner from the YAML file.
func NewFactory() partitioner.Factory {
	return plugin.NewFactory("fnv1a", "by the key's FNV-1a hash, as sarama does; without a key at random, record by record",
		func() Options { return Options{} },
		func(Options, partitioner.Settings) (partitioner.Partitioner, error) { return New(), nil })
}

// New makes the partitioner.
func New() *Partitioner { return &Partitioner{} }

// Partitioner is a [partitioner.Partitioner].
type Partitioner struct{}

var _ partitioner.Partitioner = (*Partitioner)(nil)

// Start does nothing: there is nothing to start.
func (*Partitioner) Start(context.Context) error { return nil }

// Stop does nothing.
func (*Partitioner) Stop(context.Context) error { return nil }

// Keyed is true: see the package comment.
func (*Partitioner) Keyed() bool { return true }

// Partition implements the contract.
func (*Partitioner) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, fmt.Errorf("fnv1a: %w: topic %q has no partitions", partitioner.ErrInvalid, b.Topic)
	}
	for i := range b.Records {
		if key := b.Records[i].Key; key != nil {
			dst = append(dst, place(hash(key), b.Partitions))
		} else {
			dst = append(dst, b.Choose(rand.Uint32()))
		}
	}
	return dst, nil
}

// place takes the sign off the remainder and not off the hash, which is not the same: so sarama began, and so its users' records
// lie.
func place(hash uint32, partitions int32) int32 {
	p := int32(hash) % partitions
	if p < 0 {
		return -p
	}
	return p
}
