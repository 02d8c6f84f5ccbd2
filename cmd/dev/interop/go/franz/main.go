// Command franz makes the interop checks with franz-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

func main() {
	os.Exit(probe.Main(func(bootstrap string) (probe.Client, probe.Quirks, error) {
		return franz{bootstrap}, probe.Quirks{}, nil
	}))
}

type franz struct{ bootstrap string }

func (franz) Version() string { return probe.ModuleVersion("github.com/twmb/franz-go") }

func (f franz) open(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts, kgo.SeedBrokers(f.bootstrap))...)
}

func (f franz) admin(do func(*kadm.Client) error) error {
	c, err := f.open()
	if err != nil {
		return err
	}
	defer c.Close()
	return do(kadm.NewClient(c))
}

func (f franz) CreateTopic(ctx context.Context, topic string, partitions int) error {
	return f.admin(func(a *kadm.Client) error {
		_, err := a.CreateTopic(ctx, int32(partitions), 1, nil, topic)
		return err
	})
}

func (f franz) Partitions(ctx context.Context, topic string) (n int, err error) {
	err = f.admin(func(a *kadm.Client) error {
		topics, err := a.ListTopics(ctx, topic)
		n = len(topics[topic].Partitions)
		return errors.Join(err, topics.Error())
	})
	return n, err
}

func (f franz) DeleteTopic(ctx context.Context, topic string) error {
	return f.admin(func(a *kadm.Client) error {
		_, err := a.DeleteTopic(ctx, topic)
		return err
	})
}

func codec(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, fmt.Errorf("no codec %q", name)
}

func (f franz) Produce(ctx context.Context, topic, codecName string, records []probe.Record) (int64, error) {
	compression, err := codec(codecName)
	if err != nil {
		return 0, err
	}
	c, err := f.open(kgo.ProducerBatchCompression(compression), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Timestamp: r.Time}
		if r.Sum != "" {
			out[i].Headers = []kgo.RecordHeader{{Key: probe.HeaderSum, Value: []byte(r.Sum)}}
		}
	}
	if err := c.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return 0, err
	}
	return out[0].Offset, nil
}

func record(r *kgo.Record) probe.Record {
	p := probe.Record{Key: r.Key, Value: r.Value, Time: r.Timestamp, Offset: r.Offset}
	for _, h := range r.Headers {
		if h.Key == probe.HeaderSum {
			p.Sum = string(h.Value)
		}
	}
	return p
}

// poll reads until n records are there.
func poll(ctx context.Context, c *kgo.Client, n int) ([]*kgo.Record, error) {
	var records []*kgo.Record
	for len(records) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", len(records), n, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records[:n], nil
}

func convert(in []*kgo.Record) []probe.Record {
	out := make([]probe.Record, len(in))
	for i, r := range in {
		out[i] = record(r)
	}
	return out
}

func (f franz) Consume(ctx context.Context, topic string, from int64, n int) ([]probe.Record, error) {
	offset := kgo.NewOffset().At(from)
	switch from {
	case probe.FromStart:
		offset = kgo.NewOffset().AtStart()
	case probe.FromEnd:
		offset = kgo.NewOffset().AtEnd()
	}
	c, err := f.open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: offset}}))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	records, err := poll(ctx, c, n)
	return convert(records), err
}

func (f franz) OffsetAt(ctx context.Context, topic string, at time.Time) (offset int64, err error) {
	err = f.admin(func(a *kadm.Client) error {
		listed, err := a.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topic)
		if err != nil {
			return err
		}
		o, ok := listed.Lookup(topic, 0)
		if !ok {
			return errors.New("no answer for partition 0")
		}
		offset = o.Offset
		if o.Timestamp == -1 { // kadm answers the end where Kafka answers that there is none
			offset = probe.NoOffset
		}
		return o.Err
	})
	return offset, err
}

func (f franz) group(group, topic string, more ...kgo.Opt) (*kgo.Client, error) {
	return f.open(append(more, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second))...)
}

func (f franz) GroupRead(ctx context.Context, group, topic string, n int) ([]probe.Record, error) {
	c, err := f.group(group, topic)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	records, err := poll(ctx, c, n)
	if err != nil {
		return nil, err
	}
	return convert(records), c.CommitRecords(ctx, records...)
}

func (f franz) Member(ctx context.Context, group, topic string, tell func(probe.Event)) error {
	var mu sync.Mutex // the callbacks come from the client's own goroutine
	owned := map[int32]bool{}
	change := func(partitions map[string][]int32, own bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range partitions[topic] {
			if own {
				owned[p] = true
			} else {
				delete(owned, p)
			}
		}
		all := make([]int32, 0, len(owned))
		for p := range owned {
			all = append(all, p)
		}
		slices.Sort(all)
		tell(probe.Event{Event: probe.EventAssigned, Partitions: all})
	}
	gain := func(_ context.Context, _ *kgo.Client, p map[string][]int32) { change(p, true) }
	lose := func(_ context.Context, _ *kgo.Client, p map[string][]int32) { change(p, false) }
	c, err := f.group(group, topic, kgo.OnPartitionsAssigned(gain), kgo.OnPartitionsRevoked(lose), kgo.OnPartitionsLost(lose))
	if err != nil {
		return err
	}
	defer c.Close() // leaves the group
	for ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		next := map[int32]int64{}
		fetches.EachRecord(func(r *kgo.Record) {
			tell(probe.Event{Event: probe.EventRecord, Partition: r.Partition, Offset: r.Offset, Value: string(r.Value)})
			next[r.Partition] = r.Offset + 1
		})
		if len(next) == 0 {
			continue
		}
		if err := c.CommitUncommittedOffsets(ctx); err != nil {
			continue // a rebalance is under way; what was not committed is read again by whoever gets it
		}
		for p, o := range next {
			tell(probe.Event{Event: probe.EventCommitted, Partition: p, Offset: o})
		}
	}
	return nil
}
