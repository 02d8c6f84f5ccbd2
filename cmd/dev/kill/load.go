package kill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// place is a partition.
type place struct {
	topic     string
	partition int32
}

// load is producers that write to all partitions until they are told to end. Each is one idempotent producer of acks=all
// that tries for ever: what it was asked to write is written exactly once, or it fails.
type load struct {
	clients []*kgo.Client
	stop    chan struct{}
	done    sync.WaitGroup
	once    sync.Once
	failed  chan struct{} // closed with the first error

	mu    sync.Mutex
	err   error
	sent  map[place][]int     // records given to each producer
	acked map[place][][]int64 // the offset of each producer's records, in their order; all are acknowledged
}

func startLoad(ctx context.Context, addr string) (*load, error) {
	l := &load{stop: make(chan struct{}), failed: make(chan struct{}), sent: map[place][]int{}, acked: map[place][][]int64{}}
	for _, topic := range []string{synced, unsynced} {
		for partition := range int32(partitions) {
			l.sent[place{topic, partition}] = make([]int, producers)
			l.acked[place{topic, partition}] = make([][]int64, producers)
		}
	}
	for number := range producers {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.StopProducerOnDataLossDetected(), // what the broker forgot must come out
			kgo.ProducerLinger(time.Millisecond), kgo.ProducerBatchMaxBytes(4<<10), kgo.MaxBufferedRecords(500),
			kgo.ProducerBatchCompression([]kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.GzipCompression()}[number%3]),
			kgo.MetadataMinAge(50*time.Millisecond), // how soon it sees that the broker is back
			kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))
		if err != nil {
			l.close()
			return nil, err
		}
		l.clients = append(l.clients, client)
		l.done.Add(1)
		go func() {
			defer l.done.Done()
			l.produce(ctx, number, client)
		}()
	}
	return l, nil
}

// pad makes records of a usual size.
const pad = 200

// produce writes a record to each partition in turn, some thousand a second.
func (l *load) produce(ctx context.Context, number int, client *kgo.Client) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		for at := range l.acked {
			for range 3 {
				l.one(ctx, number, client, at)
			}
		}
		select {
		case <-tick.C:
		case <-l.stop:
			return
		case <-l.failed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (l *load) one(ctx context.Context, number int, client *kgo.Client, at place) {
	l.mu.Lock()
	sequence := l.sent[at][number]
	l.sent[at][number]++
	l.mu.Unlock()
	r := &kgo.Record{Topic: at.topic, Partition: at.partition, Value: []byte(value(number, sequence))}
	client.Produce(ctx, r, func(r *kgo.Record, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil && len(l.acked[at][number]) != sequence {
			err = fmt.Errorf("%v: record %d of producer %d is acknowledged after %d others", at, sequence, number, len(l.acked[at][number]))
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.acked[at][number] = append(l.acked[at][number], r.Offset)
	})
}

// fail keeps the first error. The caller holds mu.
func (l *load) fail(err error) {
	if l.err == nil && !errors.Is(err, kgo.ErrClientClosed) {
		l.err = err
		close(l.failed)
	}
}

func (l *load) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// value is the content of a record: who wrote it, and which of its writer's in this partition it is.
func value(number, sequence int) string {
	return fmt.Sprintf("%d %d %s", number, sequence, strings.Repeat("x", pad))
}

// acknowledged counts.
func (l *load) acknowledged() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, all := range l.acked {
		for _, offsets := range all {
			n += len(offsets)
		}
	}
	return n
}

// goesOn waits until more is acknowledged than before.
func (l *load) goesOn(ctx context.Context, before int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for l.acknowledged() == before {
		select {
		case <-tick.C:
		case <-l.failed:
			return fmt.Errorf("a producer failed: %w", l.failure())
		case <-ctx.Done():
			return fmt.Errorf("the producers don't go on: %w", context.Cause(ctx))
		}
	}
	return nil
}

// snapshot copies what one partition has acknowledged.
func (l *load) snapshot(at place) [][]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	offsets := make([][]int64, producers)
	for i, o := range l.acked[at] {
		offsets[i] = o[:len(o):len(o)] // only appended to
	}
	return offsets
}

// finish ends the producers when everything they were given is acknowledged.
func (l *load) finish(ctx context.Context) error {
	l.once.Do(func() { close(l.stop) })
	l.done.Wait()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, client := range l.clients {
		if err := client.Flush(ctx); err != nil {
			return errors.Join(err, l.failure())
		}
	}
	return l.failure()
}

// close ends the producers whatever they still have.
func (l *load) close() {
	l.once.Do(func() { close(l.stop) })
	for _, client := range l.clients {
		client.Close()
	}
	l.done.Wait()
}
