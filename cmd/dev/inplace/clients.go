package inplace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What the script uses.
const (
	plainTopic     = "plain" // of several segments
	compactedTopic = "compacted"
	exactTopic     = "exact"
	groupName      = "readers"

	plainPartitions = 3
	compactedKeys   = 20
)

// topics are made by the first broker.
func topics(ctx context.Context, admin *kadm.Client) error {
	value := func(s string) *string { return &s }
	for _, t := range []struct {
		name       string
		partitions int32
		configs    map[string]*string
	}{
		{plainTopic, plainPartitions, map[string]*string{"segment.bytes": value("16384")}},
		{compactedTopic, 1, map[string]*string{
			"cleanup.policy": value("compact"), "segment.bytes": value("4096"), "min.cleanable.dirty.ratio": value("0.01"), "min.compaction.lag.ms": value("0"),
		}},
		{exactTopic, 1, nil},
	} {
		r, err := admin.CreateTopic(ctx, t.partitions, 1, t.configs, t.name)
		if err := errors.Join(err, r.Err); err != nil {
			return fmt.Errorf("create %s: %w", t.name, err)
		}
	}
	return nil
}

// clients outlive the brokers that they talk to.
type clients struct {
	addr     string
	producer *kgo.Client // idempotent: one id, and sequences that go on
	exact    *kgo.Client // transactional
	written  map[string]int
	seen     map[string]bool // what the group was given, "topic-0@17"
}

// newClients makes them; they connect when they are used.
func newClients(addr string) (*clients, error) {
	c := &clients{addr: addr, written: map[string]int{}, seen: map[string]bool{}}
	var err error
	if c.producer, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.StopProducerOnDataLossDetected(),
		kgo.ProducerBatchMaxBytes(2048), kgo.ProducerLinger(0)); err != nil {
		return nil, err
	}
	if c.exact, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("inplace"), kgo.TransactionTimeout(10*time.Minute), kgo.DefaultProduceTopic(exactTopic)); err != nil {
		c.producer.Close()
		return nil, err
	}
	return c, nil
}

func (c *clients) close() {
	c.producer.Close()
	c.exact.Close()
}

// produce writes records to all partitions of plain and to the compacted topic, through the producer whose sequences go on.
func (c *clients) produce(ctx context.Context, from string, n int) error {
	var records []*kgo.Record
	for i := range n {
		value := fmt.Appendf(nil, "%s-%d-%0100d", from, i, i)
		records = append(records,
			&kgo.Record{Topic: plainTopic, Partition: int32(i % plainPartitions), Key: fmt.Appendf(nil, "k%d", i), Value: value, Headers: []kgo.RecordHeader{{Key: "from", Value: []byte(from)}}},
			&kgo.Record{Topic: compactedTopic, Key: fmt.Appendf(nil, "key-%d", i%compactedKeys), Value: value})
	}
	if err := c.producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	for i, r := range records { // in the order in which they were given: nothing doubled, nothing lost
		p := partition(r.Topic, r.Partition)
		if want := int64(c.written[p]); r.Offset != want {
			return fmt.Errorf("record %d of %s has offset %d of %s, want %d", i, from, r.Offset, p, want)
		}
		c.written[p]++
	}
	return nil
}

// codecs writes a batch in each codec, through producers of their own.
func (c *clients) codecs(ctx context.Context) error {
	for _, codec := range []kgo.CompressionCodec{kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		client, err := kgo.NewClient(kgo.SeedBrokers(c.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec))
		if err != nil {
			return err
		}
		var records []*kgo.Record
		for range 10 {
			records = append(records, &kgo.Record{Topic: plainTopic, Partition: 0, Value: make([]byte, 200)})
		}
		err = client.ProduceSync(ctx, records...).FirstErr()
		client.Close()
		if err != nil {
			return fmt.Errorf("produce compressed: %w", err)
		}
		c.written[partition(plainTopic, 0)] += len(records)
	}
	return nil
}

// begin opens a transaction and writes into it.
func (c *clients) begin(ctx context.Context, value string) error {
	if err := c.exact.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	var records []*kgo.Record
	for i := range 5 {
		records = append(records, kgo.StringRecord(fmt.Sprintf("%s-%d", value, i)))
	}
	if err := c.exact.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("produce in a transaction: %w", err)
	}
	return nil
}

// end ends the transaction that is open.
func (c *clients) end(ctx context.Context, how kgo.TransactionEndTry) error {
	if err := c.exact.EndTransaction(ctx, how); err != nil {
		return fmt.Errorf("end a transaction: %w", err)
	}
	return nil
}

// consume reads some records as a member of the group, and commits. Nothing may come twice, for everything was committed before.
func (c *clients) consume(ctx context.Context, least int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.addr), kgo.ConsumerGroup(groupName), kgo.ConsumeTopics(plainTopic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	for n := 0; n < least; {
		fetches := client.PollRecords(ctx, 50)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("consume in a group: %w", err)
		}
		var twice error
		fetches.EachRecord(func(r *kgo.Record) {
			at := fmt.Sprintf("%s@%d", partition(r.Topic, r.Partition), r.Offset)
			if c.seen[at] {
				twice = fmt.Errorf("the group was given %s twice", at)
			}
			c.seen[at] = true
			n++
		})
		if twice != nil {
			return twice
		}
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}
