// Command sarama makes the interop checks with IBM/sarama.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

func main() {
	os.Exit(probe.Main(func(bootstrap string) (probe.Client, probe.Quirks, error) {
		return client{bootstrap}, probe.Quirks{}, nil
	}))
}

type client struct{ bootstrap string }

func (client) Version() string { return probe.ModuleVersion("github.com/IBM/sarama") }

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Return.Errors = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = time.Second
	return c
}

func (c client) brokers() []string { return []string{c.bootstrap} }

func (c client) admin(do func(sarama.ClusterAdmin) error) error {
	a, err := sarama.NewClusterAdmin(c.brokers(), config())
	if err != nil {
		return err
	}
	return errors.Join(do(a), a.Close())
}

func (c client) CreateTopic(_ context.Context, topic string, partitions int) error {
	return c.admin(func(a sarama.ClusterAdmin) error {
		return a.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}, false)
	})
}

func (c client) Partitions(_ context.Context, topic string) (n int, err error) {
	err = c.admin(func(a sarama.ClusterAdmin) error {
		topics, err := a.DescribeTopics([]string{topic})
		if err != nil {
			return err
		}
		n = len(topics[0].Partitions)
		if topics[0].Err != sarama.ErrNoError {
			return topics[0].Err
		}
		return nil
	})
	return n, err
}

func (c client) DeleteTopic(_ context.Context, topic string) error {
	return c.admin(func(a sarama.ClusterAdmin) error { return a.DeleteTopic(topic) })
}

func (c client) Produce(_ context.Context, topic, codec string, records []probe.Record) (int64, error) {
	cfg := config()
	if err := cfg.Producer.Compression.UnmarshalText([]byte(codec)); err != nil {
		return 0, err
	}
	cfg.Producer.Idempotent = true
	cfg.Net.MaxOpenRequests = 1
	cfg.Producer.Flush.Bytes = 256 << 10
	cfg.Producer.Flush.Frequency = 5 * time.Millisecond
	p, err := sarama.NewSyncProducer(c.brokers(), cfg)
	if err != nil {
		return 0, err
	}
	msgs := make([]*sarama.ProducerMessage, len(records))
	for i, r := range records {
		msgs[i] = &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(r.Key), Value: sarama.ByteEncoder(r.Value), Timestamp: r.Time}
		if r.Sum != "" {
			msgs[i].Headers = []sarama.RecordHeader{{Key: []byte(probe.HeaderSum), Value: []byte(r.Sum)}}
		}
	}
	if err := errors.Join(p.SendMessages(msgs), p.Close()); err != nil {
		return 0, err
	}
	return msgs[0].Offset, nil
}

func record(m *sarama.ConsumerMessage) probe.Record {
	r := probe.Record{Key: m.Key, Value: m.Value, Time: m.Timestamp, Offset: m.Offset}
	for _, h := range m.Headers {
		if string(h.Key) == probe.HeaderSum {
			r.Sum = string(h.Value)
		}
	}
	return r
}

func (c client) Consume(ctx context.Context, topic string, from int64, n int) ([]probe.Record, error) {
	switch from {
	case probe.FromStart:
		from = sarama.OffsetOldest
	case probe.FromEnd:
		from = sarama.OffsetNewest
	}
	consumer, err := sarama.NewConsumer(c.brokers(), config())
	if err != nil {
		return nil, err
	}
	defer func() { _ = consumer.Close() }()
	p, err := consumer.ConsumePartition(topic, 0, from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	var records []probe.Record
	for len(records) < n {
		select {
		case m := <-p.Messages():
			records = append(records, record(m))
		case err := <-p.Errors():
			return nil, err
		case <-ctx.Done():
			return nil, fmt.Errorf("after %d of %d records: %w", len(records), n, ctx.Err())
		}
	}
	return records, nil
}

func (c client) OffsetAt(_ context.Context, topic string, at time.Time) (int64, error) {
	cl, err := sarama.NewClient(c.brokers(), config())
	if err != nil {
		return 0, err
	}
	offset, err := cl.GetOffset(topic, 0, at.UnixMilli())
	return offset, errors.Join(err, cl.Close())
}

// handler adapts functions to sarama's interface; claims run in one goroutine a partition.
type handler struct {
	setup func(sarama.ConsumerGroupSession)
	claim func(sarama.ConsumerGroupSession, *sarama.ConsumerMessage)
}

func (h handler) Setup(s sarama.ConsumerGroupSession) error {
	if h.setup != nil {
		h.setup(s)
	}
	return nil
}

func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h handler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			h.claim(s, m)
		case <-s.Context().Done():
			return nil
		}
	}
}

// consume takes part in the group until ctx ends.
func (c client) consume(ctx context.Context, group, topic string, h handler) error {
	g, err := sarama.NewConsumerGroup(c.brokers(), group, config())
	if err != nil {
		return err
	}
	go func() { // ends when the group is closed
		for err := range g.Errors() {
			fmt.Fprintln(os.Stderr, "group:", err)
		}
	}()
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{topic}, h); err != nil && ctx.Err() == nil {
			return errors.Join(err, g.Close())
		}
	}
	return g.Close()
}

func (c client) GroupRead(ctx context.Context, group, topic string, n int) ([]probe.Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var records []probe.Record
	err := c.consume(ctx, group, topic, handler{claim: func(s sarama.ConsumerGroupSession, m *sarama.ConsumerMessage) {
		if len(records) == n {
			return
		}
		records = append(records, record(m))
		if len(records) == n {
			s.MarkMessage(m, "")
			s.Commit()
			cancel()
		}
	}})
	if err == nil && len(records) < n {
		err = fmt.Errorf("%d of %d records", len(records), n)
	}
	return records, err
}

func (c client) Member(ctx context.Context, group, topic string, tell func(probe.Event)) error {
	return c.consume(ctx, group, topic, handler{
		setup: func(s sarama.ConsumerGroupSession) {
			tell(probe.Event{Event: probe.EventAssigned, Partitions: s.Claims()[topic]})
		},
		claim: func(s sarama.ConsumerGroupSession, m *sarama.ConsumerMessage) {
			tell(probe.Event{Event: probe.EventRecord, Partition: m.Partition, Offset: m.Offset, Value: string(m.Value)})
			s.MarkMessage(m, "")
			s.Commit() // does not say how it went, so no committed event: the runner asks the broker
		},
	})
}
