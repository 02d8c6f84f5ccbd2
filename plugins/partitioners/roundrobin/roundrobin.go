// Package roundrobin is the partitioner that gives one record to each available partition in turn, whatever its key, as the
// Java client's RoundRobinPartitioner does.
package roundrobin

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
	return plugin.NewFactory("roundrobin", "one record to each partition in turn, whatever its key",
		func() Options { return Options{} },
		func(Options, partitioner.Settings) (partitioner.Partitioner, error) { return New(), nil })
}

// New makes the partitioner.
func New() *Partitioner { return &Partitioner{} }

// Partitioner is a [partitioner.Partitioner].
type Partitioner struct {
	next atomic.Uint32 // counts records; one count for all topics keeps no state per topic
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
		return dst, fmt.Errorf("roundrobin: %w: topic %q has no partitions", partitioner.ErrInvalid, b.Topic)
	}
	n := uint32(len(b.Records))
	first := p.next.Add(n) - n
	for i := range n {
		dst = append(dst, b.Choose(first+i))
	}
	return dst, nil
}
