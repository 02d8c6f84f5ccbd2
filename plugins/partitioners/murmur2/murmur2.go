// Package murmur2 is the partitioner of Kafka's Java clients for records with a key: the key's MurmurHash2, made positive,
// modulo the number of partitions. Records without a key go, call by call, to one available partition after the other, so
// that they make full batches.
package murmur2

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the options of the plug-in: it has none.
type Options struct{}

// NewFactory makes the partitioner from the YAML file.
func NewFactory() partitioner.Factory {
	return plugin.NewFactory("murmur2", "by the key's murmur2 hash, as Kafka's Java clients do; without a key evenly, batch by batch",
		func() Options { return Options{} },
		func(Options, partitioner.Settings) (partitioner.Partitioner, error) { return New(), nil })
}

// New makes the partitioner.
func New() *Partitioner { return &Partitioner{} }

// Partitioner is a [partitioner.Partitioner].
type Partitioner struct {
	next atomic.Uint32 // counts calls, for records without a key
}

var _ partitioner.Partitioner = (*Partitioner)(nil)

// Start does nothing: there is nothing to start.
func (*Partitioner) Start(context.Context) error { return nil }

// Stop does nothing.
func (*Partitioner) Stop(context.Context) error { return nil }

// Keyed is true: see the package comment.
func (*Partitioner) Keyed() bool { return true }

// Partition implements the contract.
func (p *Partitioner) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, fmt.Errorf("murmur2: %w: topic %q has no partitions", partitioner.ErrInvalid, b.Topic)
	}
	unkeyed := int32(-1)
	for i := range b.Records {
		if key := b.Records[i].Key; key != nil {
			dst = append(dst, int32(hash(key)&0x7fffffff)%b.Partitions)
			continue
		}
		if unkeyed < 0 {
			unkeyed = b.Choose(p.next.Add(1) - 1)
		}
		dst = append(dst, unkeyed)
	}
	return dst, nil
}
