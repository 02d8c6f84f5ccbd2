// Package crc32 is the partitioner `consistent_random` of librdkafka, its default, for records with a key: the key's CRC-32
// (IEEE), unsigned, modulo the number of partitions. An empty key is none there, and so it is here. The records of one call
// that have no key go together to a random partition that has a leader, so that they make full batches.
package crc32

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the options of the plug-in: it has none.
type Options struct{}

// NewFactory makes the partitioner from the YAML file.
func NewFactory() partitioner.Factory {
	return plugin.NewFactory("crc32", "by the key's CRC-32, as librdkafka's consistent_random does; without a key at random, batch by batch",
		func() Options { return Options{} },
		func(Options, partitioner.Settings) (partitioner.Partitioner, error) { return New(), nil })
}

// New makes the partitioner.
func New() *Partitioner { return &Partitioner{} }

// Partitioner is a [partitioner.Partitioner].
type Partitioner struct{}

var (
	_ partitioner.Partitioner = (*Partitioner)(nil)
	_ partitioner.EmptyKeys   = (*Partitioner)(nil)
)

// Start does nothing: there is nothing to start.
func (*Partitioner) Start(context.Context) error { return nil }

// Stop does nothing.
func (*Partitioner) Stop(context.Context) error { return nil }

// Keyed is true: see the package comment.
func (*Partitioner) Keyed() bool { return true }

// EmptyIsKey is false: librdkafka spreads records with an empty key at random.
func (*Partitioner) EmptyIsKey() bool { return false }

// Partition implements the contract.
func (*Partitioner) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, fmt.Errorf("crc32: %w: topic %q has no partitions", partitioner.ErrInvalid, b.Topic)
	}
	unkeyed := int32(-1)
	for i := range b.Records {
		if key := b.Records[i].Key; len(key) > 0 {
			dst = append(dst, int32(crc32.ChecksumIEEE(key)%uint32(b.Partitions)))
			continue
		}
		if unkeyed < 0 {
			unkeyed = b.Choose(rand.Uint32())
		}
		dst = append(dst, unkeyed)
	}
	return dst, nil
}
