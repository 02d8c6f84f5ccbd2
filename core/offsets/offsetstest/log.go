package offsetstest

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Log is an [offsets.Log] in memory, for tests of stores: any number of brokers in one, each shard led under whatever epoch
// was used last.
type Log struct {
	// Count is the number of shards of a topic once it is ensured.
	Count int32
	// Fail, when set, is asked before an append; its error is the append's.
	Fail func(shard int32, batch []byte) error

	mu     sync.Mutex
	topics map[string]bool
	logs   map[int32][]byte
	epochs map[int32]int32
	next   map[int32]int64
}

// NewLog makes an empty log with so many shards, whose topic does not exist yet.
func NewLog(count int32) *Log {
	return &Log{Count: count, topics: map[string]bool{}, logs: map[int32][]byte{}, epochs: map[int32]int32{}, next: map[int32]int64{}}
}

// Ensure makes the topic exist.
func (l *Log) Ensure(ctx context.Context, topic string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.topics[topic] = true
	return ctx.Err()
}

// Shards is Count, once the topic exists.
func (l *Log) Shards(topic string) (int32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.topics[topic] {
		return 0, fmt.Errorf("%w: no topic %s", offsets.ErrUnavailable, topic)
	}
	return l.Count, nil
}

// fence takes the newest epoch that was used for the leader's.
func (l *Log) fence(shard, epoch int32) error {
	if known, ok := l.epochs[shard]; ok && epoch < known {
		return fmt.Errorf("%w: epoch %d, shard %d has %d", offsets.ErrNotOwner, epoch, shard, known)
	}
	l.epochs[shard] = epoch
	return nil
}

// Append appends a batch and stamps its offset.
func (l *Log) Append(ctx context.Context, _ string, shard, epoch int32, batch []byte) error {
	if l.Fail != nil {
		if err := l.Fail(shard, batch); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", offsets.ErrTimedOut, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fence(shard, epoch); err != nil {
		return err
	}
	first, rest, err := record.Next(batch)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("more than one batch")
	}
	record.SetBaseOffset(first, l.next[shard])
	record.SetLeaderEpoch(first, epoch)
	l.next[shard] += int64(first.Header().LastOffsetDelta) + 1
	l.logs[shard] = append(l.logs[shard], first...)
	return nil
}

// Read gives the batches one by one.
func (l *Log) Read(_ context.Context, _ string, shard, epoch int32, visit func([]byte) error) error {
	l.mu.Lock()
	if err := l.fence(shard, epoch); err != nil {
		l.mu.Unlock()
		return err
	}
	all := bytes.Clone(l.logs[shard])
	l.mu.Unlock()
	for len(all) > 0 {
		first, rest, err := record.Next(all)
		if err != nil {
			return err
		}
		if err := visit(first); err != nil {
			return err
		}
		clear(first) // a chunk is valid until visit returns
		all = rest
	}
	return nil
}

// Bytes is what the shard's log holds.
func (l *Log) Bytes(shard int32) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.logs[shard])
}

// Put appends raw batches, as another broker might have left them.
func (l *Log) Put(shard int32, batches []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logs[shard] = append(l.logs[shard], batches...)
}
