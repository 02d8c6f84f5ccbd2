// Command kafkago makes the interop checks with segmentio/kafka-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

func main() {
	os.Exit(probe.Main(func(bootstrap string) (probe.Client, probe.Quirks, error) {
		return client{bootstrap}, probe.Quirks{}, nil
	}))
}

type client struct{ bootstrap string }

func (client) Version() string { return probe.ModuleVersion("github.com/segmentio/kafka-go") }

func (c client) api() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(c.bootstrap), Timeout: 20 * time.Second}
}

func (c client) CreateTopic(ctx context.Context, topic string, partitions int) error {
	r, err := c.api().CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	return r.Errors[topic]
}

func (c client) Partitions(ctx context.Context, topic string) (int, error) {
	r, err := c.api().Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, err
	}
	return len(r.Topics[0].Partitions), r.Topics[0].Error
}

func (c client) DeleteTopic(ctx context.Context, topic string) error {
	r, err := c.api().DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return r.Errors[topic]
}

// first sends everything to partition 0.
type first struct{}

func (first) Balance(kafka.Message, ...int) int { return 0 }

func (c client) Produce(ctx context.Context, topic, codec string, records []probe.Record) (int64, error) {
	var compression kafka.Compression
	if codec != "none" {
		if err := compression.UnmarshalText([]byte(codec)); err != nil {
			return 0, err
		}
	}
	w := &kafka.Writer{
		Addr: kafka.TCP(c.bootstrap), Topic: topic, Balancer: first{}, Compression: compression, RequiredAcks: kafka.RequireAll,
		BatchTimeout: 5 * time.Millisecond, BatchBytes: 900 << 10, BatchSize: 50,
	}
	msgs := make([]kafka.Message, len(records))
	for i, r := range records {
		msgs[i] = kafka.Message{Key: r.Key, Value: r.Value, Time: r.Time}
		if r.Sum != "" {
			msgs[i].Headers = []kafka.Header{{Key: probe.HeaderSum, Value: []byte(r.Sum)}}
		}
	}
	// The writer does not give offsets back; the topic's end and the number of records tell the first.
	if err := errors.Join(w.WriteMessages(ctx, msgs...), w.Close()); err != nil {
		return 0, err
	}
	r, err := c.list(ctx, topic, kafka.LastOffsetOf(0))
	if err != nil {
		return 0, err
	}
	return r.LastOffset - int64(len(records)), nil
}

func (c client) list(ctx context.Context, topic string, what kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
	r, err := c.api().ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {what}}})
	if err != nil {
		return kafka.PartitionOffsets{}, err
	}
	p := r.Topics[topic][0]
	return p, p.Error
}

func record(m kafka.Message) probe.Record {
	r := probe.Record{Key: m.Key, Value: m.Value, Time: m.Time, Offset: m.Offset}
	for _, h := range m.Headers {
		if h.Key == probe.HeaderSum {
			r.Sum = string(h.Value)
		}
	}
	return r
}

func (c client) reader(topic string, partition int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{Brokers: []string{c.bootstrap}, Topic: topic, Partition: partition, MaxWait: 500 * time.Millisecond, MaxBytes: 8 << 20})
}

func fetch(ctx context.Context, r *kafka.Reader, n int) ([]kafka.Message, error) {
	var out []kafka.Message
	for len(out) < n {
		m, err := r.FetchMessage(ctx)
		if err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", len(out), n, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func convert(in []kafka.Message) []probe.Record {
	out := make([]probe.Record, len(in))
	for i, m := range in {
		out[i] = record(m)
	}
	return out
}

func (c client) Consume(ctx context.Context, topic string, from int64, n int) ([]probe.Record, error) {
	r := c.reader(topic, 0)
	defer func() { _ = r.Close() }()
	switch from {
	case probe.FromStart:
		from = kafka.FirstOffset
	case probe.FromEnd:
		from = kafka.LastOffset
	}
	if err := r.SetOffset(from); err != nil {
		return nil, err
	}
	msgs, err := fetch(ctx, r, n)
	return convert(msgs), err
}

func (c client) OffsetAt(ctx context.Context, topic string, at time.Time) (int64, error) {
	p, err := c.list(ctx, topic, kafka.TimeOffsetOf(0, at))
	if err != nil {
		return 0, err
	}
	for offset := range p.Offsets {
		return offset, nil
	}
	return probe.NoOffset, nil
}

func (c client) GroupRead(ctx context.Context, group, topic string, n int) ([]probe.Record, error) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{c.bootstrap}, GroupID: group, Topic: topic, MaxWait: 500 * time.Millisecond, MaxBytes: 8 << 20,
		StartOffset: kafka.FirstOffset, SessionTimeout: 6 * time.Second, HeartbeatInterval: time.Second,
	})
	defer func() { _ = r.Close() }()
	msgs, err := fetch(ctx, r, n)
	if err != nil {
		return nil, err
	}
	return convert(msgs), r.CommitMessages(ctx, msgs...)
}

func (c client) Member(ctx context.Context, group, topic string, tell func(probe.Event)) error {
	g, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: group, Brokers: []string{c.bootstrap}, Topics: []string{topic}, StartOffset: kafka.FirstOffset,
		SessionTimeout: 6 * time.Second, HeartbeatInterval: time.Second,
	})
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }() // leaves the group
	for {
		gen, err := g.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		var mu sync.Mutex // commits of one generation go one after the other
		owned := []int32{}
		for _, a := range gen.Assignments[topic] {
			owned = append(owned, int32(a.ID))
			gen.Start(func(ctx context.Context) { c.follow(ctx, gen, &mu, topic, a, tell) })
		}
		tell(probe.Event{Event: probe.EventAssigned, Partitions: owned})
	}
}

// follow reads one partition for as long as the generation lasts.
func (c client) follow(ctx context.Context, gen *kafka.Generation, mu *sync.Mutex, topic string, a kafka.PartitionAssignment, tell func(probe.Event)) {
	r := c.reader(topic, a.ID)
	defer func() { _ = r.Close() }()
	if err := r.SetOffset(a.Offset); err != nil {
		fmt.Fprintln(os.Stderr, "set offset:", err)
		return
	}
	for {
		m, err := r.FetchMessage(ctx)
		if err != nil {
			return
		}
		tell(probe.Event{Event: probe.EventRecord, Partition: int32(a.ID), Offset: m.Offset, Value: string(m.Value)})
		mu.Lock()
		err = gen.CommitOffsets(map[string]map[int]int64{topic: {a.ID: m.Offset + 1}})
		mu.Unlock()
		if err == nil {
			tell(probe.Event{Event: probe.EventCommitted, Partition: int32(a.ID), Offset: m.Offset + 1})
		}
	}
}
