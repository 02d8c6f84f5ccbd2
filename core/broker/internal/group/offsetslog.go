package group

import (
	"context"
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Partitions finds the replicas of this broker; partition.Manager does.
type Partitions interface {
	Get(partition.ID) (*partition.Partition, error)
}

// Log is the log that a broker keeps for its offsets store: the partitions of an internal topic, of which this broker leads
// some.
type Log struct {
	Partitions Partitions
	// Snapshot gives what is known about the cluster; metadata.Cache does.
	Snapshot func() *metadata.Snapshot
	// EnsureTopic creates an internal topic when it is missing.
	EnsureTopic func(ctx context.Context, topic string) error
	// Verify says whether a producer may open a transaction in a partition; txn.Manager does. Nil: it may.
	Verify func(producerID int64, epoch int16, to partition.ID) error
}

var _ offsets.Log = (*Log)(nil)

// Ensure creates the topic when it is missing.
func (l *Log) Ensure(ctx context.Context, topic string) error {
	if _, ok := l.Snapshot().Topic(topic); ok {
		return nil
	}
	if err := l.EnsureTopic(ctx, topic); err != nil {
		return fmt.Errorf("%w: %w", offsets.ErrUnavailable, err)
	}
	return nil
}

// Shards is the number of partitions that the topic has.
func (l *Log) Shards(topic string) (int32, error) {
	t, ok := l.Snapshot().Topic(topic)
	if !ok || len(t.Partitions) == 0 {
		return 0, fmt.Errorf("%w: there is no topic %s", offsets.ErrUnavailable, topic)
	}
	return int32(len(t.Partitions)), nil
}

// leading finds a partition that this broker leads under exactly that epoch.
func (l *Log) leading(topic string, shard, epoch int32) (*partition.Partition, error) {
	p, err := l.Partitions.Get(partition.ID{Topic: topic, Partition: shard})
	if err != nil {
		return nil, logError(err)
	}
	if _, current := p.Leader(); !p.IsLeader() || current != epoch {
		return nil, fmt.Errorf("%w: the leader epoch of %s is %d", offsets.ErrNotOwner, p.ID(), current)
	}
	return p, nil
}

// Append appends as acks=all does, and waits until it is acknowledged.
func (l *Log) Append(ctx context.Context, topic string, shard, epoch int32, batch []byte) error {
	p, err := l.leading(topic, shard, epoch)
	if err != nil {
		return err
	}
	in := partition.Append{Batches: batch, Acks: -1, Coordinator: true}
	if h, err := record.ParseHeader(batch); l.Verify != nil && err == nil && h.Attributes.Transactional() {
		in.Verify = func(id int64, epoch int16) error { return l.Verify(id, epoch, p.ID()) }
	}
	a, err := p.Append(in)
	if err != nil {
		return logError(err)
	}
	acknowledged := make(chan error, 1)
	done, err, cancel := p.Committed(a, -1, func(err error) { acknowledged <- err })
	if !done {
		select {
		case err = <-acknowledged:
		case <-ctx.Done():
			if cancel() {
				return fmt.Errorf("%w: %s offset %d: %w", offsets.ErrTimedOut, p.ID(), a.LastOffset, ctx.Err())
			}
			err = <-acknowledged
		}
	}
	if err == nil && a.LeaderEpoch != epoch {
		// Leadership went and came back in between: it is stored, but who loaded the shard since may not have seen it.
		return fmt.Errorf("%w: appended to %s under leader epoch %d", offsets.ErrNotOwner, p.ID(), a.LeaderEpoch)
	}
	return logError(err)
}

// readChunk is how much of the log is read at once.
const readChunk = 1 << 20

// Read reads everything from the log's start to its end, which for a leader is what counts: what lies above the high
// watermark was written by earlier leaders and will be committed.
func (l *Log) Read(ctx context.Context, topic string, shard, epoch int32, visit func(chunk []byte) error) error {
	p, err := l.leading(topic, shard, epoch)
	if err != nil {
		return err
	}
	var scratch []byte
	next, end := p.Log().StartOffset(), p.Log().EndOffset()
	for next < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := p.Log().Read(log.ReadRequest{Offset: next, MaxBytes: readChunk, MinOneBatch: true, UpTo: end})
		if errors.Is(err, log.ErrOffsetOutOfRange) && next < p.Log().StartOffset() {
			next = p.Log().StartOffset() // deleted in the meantime
			continue
		}
		if err != nil {
			return logError(err)
		}
		if r.View == nil {
			break // compaction left nothing up to the end
		}
		if size := int(r.View.Len()); cap(scratch) < size {
			scratch = make([]byte, max(size, readChunk))
		}
		chunk, err := r.View.Bytes(scratch)
		if err == nil {
			next, err = l.give(chunk, next, visit)
		}
		r.View.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// give hands a chunk over and returns the offset behind it.
func (l *Log) give(chunk []byte, next int64, visit func([]byte) error) (int64, error) {
	before := next
	for b, err := range record.All(chunk) {
		if err != nil {
			return 0, fmt.Errorf("%w: at offset %d: %w", offsets.ErrCorrupt, next, err)
		}
		next = b.Header().LastOffset() + 1
	}
	if next <= before {
		return 0, fmt.Errorf("%w: batches at offset %d lead nowhere", offsets.ErrCorrupt, before)
	}
	return next, visit(chunk)
}

// logError gives what a log or partition says the store's words (Kafka's GroupMetadataManager has the same groups).
func logError(err error) error {
	var kind error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, partition.ErrNotLeader), errors.Is(err, partition.ErrOffline), errors.Is(err, log.ErrFailed), errors.Is(err, log.ErrClosed):
		kind = offsets.ErrNotOwner
	case errors.Is(err, partition.ErrUnknownPartition), errors.Is(err, partition.ErrNotEnoughReplicas),
		errors.Is(err, partition.ErrNotEnoughReplicasAfterAppend):
		kind = offsets.ErrUnavailable
	case errors.Is(err, record.ErrTooLarge), errors.Is(err, record.ErrLargerThanSegment):
		kind = offsets.ErrTooLarge
	default:
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}
