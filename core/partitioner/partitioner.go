// Package partitioner is the contract for whatever chooses the partition of a record.
//
// Kafka's clients choose the partition themselves, so the broker never partitions what they send. Partitioners serve those
// who don't: `barnabas produce`, the HTTP gateway, stream processors, and programs that use ours through an adapter. The
// contract is in whole batches, so that a partitioner in another process costs one call for many records.
//
// The suite for implementations is in core/partitioner/partitionertest; its sub-tests are named by the clause numbers below.
package partitioner

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Sentinel errors. Implementations wrap them with their name and what happened.
var (
	// ErrUnavailable says that the partitioner can't answer now; the caller may try the same batch again.
	ErrUnavailable = errors.New("partitioner is unavailable")
	// ErrInvalid says that the batch, or an answer to it, makes no sense: no partitions, an answer out of range. Trying again
	// won't help.
	ErrInvalid = errors.New("invalid partitioning")
)

// Settings is what the broker, or a command, gives every partitioner.
type Settings struct {
	plugin.Settings
}

// Factory makes a partitioner from its part of the YAML file.
type Factory = plugin.Factory[Settings, Partitioner]

// Batch is what is to be partitioned: some records for one topic.
type Batch struct {
	// Topic is the topic's name.
	Topic string
	// Partitions is the number of partitions of the topic, at least 1. Valid answers are 0 to Partitions-1.
	Partitions int32
	// Available lists, ascending, the partitions that have a leader. It may be empty, when nothing is known.
	Available []int32
	// Records are the records in the order in which they were given. The partitioner doesn't change or keep them.
	Records []Record
}

// Choose is the nth partition of those available, or of all when none is known to be, counted around: for records whose
// partition doesn't depend on a key.
func (b *Batch) Choose(n uint32) int32 {
	if len(b.Available) > 0 {
		return b.Available[n%uint32(len(b.Available))]
	}
	return int32(n % uint32(b.Partitions))
}

// Record is what a partitioner may look at.
type Record struct {
	Key     []byte // nil when the record has no key; empty is a key
	Value   []byte // nil for a tombstone
	Headers []Header
}

// Header is a header of a record.
type Header struct {
	Key   string
	Value []byte // nil when null
}

// Partitioner chooses partitions. Its methods may be called from any goroutine at the same time.
type Partitioner interface {
	plugin.Component

	// Partition appends to dst one partition for each record of the batch, in order, and returns the extended slice.
	//
	//  1.1  Each answer is at least 0 and below Partitions.
	//  1.2  Equal keys of one topic with the same number of partitions give equal answers, also in another process, when
	//       Keyed reports true. Whether a partition is available doesn't change the answer for a record with a key.
	//  1.3  Records without a key go to available partitions when there are any, unless the partitioner is [Bound]. [HasKey]
	//       says which these are.
	//  1.4  Neither the batch nor its records are changed or kept after return. dst's earlier elements stay.
	//  1.5  ErrInvalid when Partitions is below 1. After an error dst is returned as it was given.
	//  1.6  Returns early with the context's error when that ends, if it waits for anything.
	Partition(ctx context.Context, dst []int32, b *Batch) ([]int32, error)

	// Keyed says whether records with a key go to a partition that depends on the key alone (clause 1.2). It never changes.
	Keyed() bool
}

// EmptyKeys is implemented by keyed partitioners that may take an empty key for none, as librdkafka does. Others take it for a
// key like any other.
type EmptyKeys interface {
	// EmptyIsKey says whether a key of no bytes is one. It never changes.
	EmptyIsKey() bool
}

// Bound is implemented by partitioners that put records where they belong for another reason than their key alone, such as a
// header: they aren't keyed, and still no other partition will do, whether it has a leader or not.
type Bound interface {
	// Bound says whether it is so. It never changes.
	Bound() bool
}

// Fixed says whether the partition that p gives a record with this key has to be taken as it is, among all partitions of the
// topic. For other records the caller may offer only the partitions that have a leader, counted around.
func Fixed(p Partitioner, key []byte) bool {
	if b, ok := p.(Bound); ok && b.Bound() {
		return true
	}
	return HasKey(p, key)
}

// HasKey says whether p places a record with this key by it: p is keyed, and the key is one for p.
func HasKey(p Partitioner, key []byte) bool {
	if key == nil || !p.Keyed() {
		return false
	}
	if e, ok := p.(EmptyKeys); ok && len(key) == 0 {
		return e.EmptyIsKey()
	}
	return true
}
