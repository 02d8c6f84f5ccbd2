package scale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	many       = "many"
	restartOf  = 4000 // partitions of the start that Kafka was measured with
	atOnce     = 1000 // partitions of one request
	recordSize = 1000
)

// partitions puts many partitions on one broker.
func partitions(ctx context.Context, f *field) (err error) {
	n, err := f.start(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { n.Kill() }()
	empty, err := n.settled(ctx)
	if err != nil {
		return err
	}
	first := min(atOnce, f.Partitions)
	begin := time.Now()
	if err := n.create(ctx, many, first, 1, nil); err != nil {
		return err
	}
	f.atMost(1, time.Since(begin).Seconds(), "s: %d partitions created in one request", first)
	for have := first; have < f.Partitions; {
		have = min(have+atOnce, f.Partitions)
		if err := n.grow(ctx, many, have); err != nil {
			return err
		}
		if have == restartOf {
			if err := n.restarts(ctx, have, 1.28, 2.2); err != nil {
				return err
			}
		}
	}
	f.atMost(float64(f.Partitions)/1000, time.Since(begin).Seconds(), "s: %d partitions in all, a thousand a request", f.Partitions)
	acknowledged, err := n.writeToAll(ctx, f.Partitions)
	if err != nil {
		return err
	}
	if err := n.idle(ctx, empty); err != nil {
		return err
	}
	most := float64(f.Partitions) / 1000
	if err := n.restarts(ctx, f.Partitions, most/4, most/2); err != nil {
		return err
	}
	if err := n.compare(ctx, acknowledged, "a clean stop"); err != nil {
		return err
	}
	again, err := n.writeToAll(ctx, f.Partitions)
	if err != nil {
		return err
	}
	n.Kill()
	took, err := n.again(ctx)
	if err != nil {
		return err
	}
	f.atMost(most/2, took.Seconds(), "s: start after kill -9, until the first answer")
	if err := n.compare(ctx, again, "kill -9"); err != nil {
		return err
	}
	return n.deleteAll(ctx, empty)
}

// restarts stops the broker cleanly and starts it again.
func (n *node) restarts(ctx context.Context, partitions int, most, mostCPU float64) error {
	begin := time.Now()
	if err := n.Stop(); err != nil {
		return err
	}
	n.f.atMost(most*4, time.Since(begin).Seconds(), "s: clean stop with %d partitions", partitions)
	took, err := n.again(ctx)
	if err != nil {
		return err
	}
	h, err := n.holds(ctx)
	if err != nil {
		return err
	}
	n.f.atMost(most, took.Seconds(), "s: start with %d partitions after a clean stop", partitions)
	n.f.atMost(mostCPU, h.CPU.Seconds(), "CPU-s: of that start")
	return nil
}

// idle measures what partitions cost that nobody uses.
func (n *node) idle(ctx context.Context, empty holdings) error {
	before, err := n.settled(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, 15*time.Second); err != nil {
		return err
	}
	after, err := n.holds(ctx)
	if err != nil {
		return err
	}
	f, of := n.f, float64(n.f.Partitions)
	f.atMost(2, 100*(after.CPU-before.CPU).Seconds()/after.at.Sub(before.at).Seconds(), "%% of a core, idle")
	f.atMost(16, float64(after.RSSAnon-empty.RSSAnon)/of/1e3, "KB of RssAnon for each partition")
	f.atMost(1.1, float64(after.descriptors-empty.descriptors)/of, "file descriptors for each partition")
	f.atMost(0.1, float64(after.maps-empty.maps)/of, "memory maps for each partition")
	f.atMost(0, float64(after.goroutines-empty.goroutines)-50, "goroutines more than without partitions, beyond 50")
	return nil
}

// deleteAll deletes the topic and sees that nothing of it stays.
func (n *node) deleteAll(ctx context.Context, empty holdings) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	defer client.Close()
	begin := time.Now()
	deleted, err := kadm.NewClient(client).DeleteTopics(ctx, many)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return err
	}
	n.f.atMost(float64(n.f.Partitions)/1000, time.Since(begin).Seconds(), "s: all deleted in one request")
	var h holdings
	err = await(ctx, time.Minute, "the files of deleted partitions are closed", func() (bool, error) {
		var err error
		h, err = n.holds(ctx)
		return h.descriptors <= empty.descriptors+10 && h.maps <= empty.maps+50, err
	})
	if err != nil {
		n.f.say("%v", err)
	}
	n.f.atMost(10, float64(h.descriptors-empty.descriptors), "descriptors left after it")
	n.f.atMost(50, float64(h.maps-empty.maps), "memory maps left after it")
	return nil
}

// create creates a topic in one request, and waits until it can be used.
func (n *node) create(ctx context.Context, topic string, partitions int, replicas int16, configs map[string]string) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	defer client.Close()
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = &v
	}
	_, err = kadm.NewClient(client).CreateTopic(ctx, int32(partitions), replicas, values, topic)
	if err != nil {
		return fmt.Errorf("create %s: %w", topic, err)
	}
	return n.usable(ctx, client, topic, partitions)
}

// grow gives a topic more partitions, and waits until they can be used.
func (n *node) grow(ctx context.Context, topic string, to int) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	defer client.Close()
	grown, err := kadm.NewClient(client).UpdatePartitions(ctx, to, topic)
	if err == nil {
		err = grown.Error()
	}
	if err != nil {
		return fmt.Errorf("give %s %d partitions: %w", topic, to, err)
	}
	return n.usable(ctx, client, topic, to)
}

// usable waits until all partitions have a leader.
func (n *node) usable(ctx context.Context, client *kgo.Client, topic string, partitions int) error {
	return await(ctx, time.Minute, topic+" has leaders", func() (bool, error) {
		m, err := kadm.NewClient(client).Metadata(ctx, topic)
		if err != nil {
			return false, err
		}
		led := 0
		for _, p := range m.Topics[topic].Partitions {
			if p.Leader >= 0 && p.Err == nil {
				led++
			}
		}
		return led == partitions, nil
	})
}

// writeToAll writes one record into every partition, and gives the offsets behind them.
func (n *node) writeToAll(ctx context.Context, partitions int) (ends map[int32]int64, err error) {
	client, err := n.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(partitions), kgo.ProducerLinger(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := make([]*kgo.Record, partitions)
	for p := range records {
		records[p] = &kgo.Record{Topic: many, Partition: int32(p), Key: []byte(strconv.Itoa(p)), Value: make([]byte, recordSize)}
	}
	begin := time.Now()
	results := client.ProduceSync(ctx, records...)
	if err := results.FirstErr(); err != nil {
		return nil, fmt.Errorf("write to %d partitions: %w", partitions, err)
	}
	n.f.atMost(float64(partitions)/1000, time.Since(begin).Seconds(), "s: a record written into each of %d partitions", partitions)
	ends = map[int32]int64{}
	for _, r := range results {
		ends[r.Record.Partition] = r.Record.Offset + 1
	}
	return ends, nil
}

// compare sees that all partitions end where the last record that was acknowledged says.
func (n *node) compare(ctx context.Context, ends map[int32]int64, after string) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewPtrListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = many
	for p := range ends {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p, -1
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.ReplicaID, request.Topics = -1, append(request.Topics, topic)
	answer, err := client.Broker(1).RetriableRequest(ctx, request)
	if err != nil {
		return err
	}
	wrong, answered := 0, 0
	var errs error
	for _, t := range answer.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			answered++
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				wrong++
				errs = errors.Join(errs, fmt.Errorf("partition %d: %w", p.Partition, err))
			} else if p.Offset != ends[p.Partition] {
				wrong++
			}
		}
	}
	if errs != nil {
		n.f.say("after %s: %.300v", after, errs)
	}
	n.f.atMost(0, float64(wrong+len(ends)-answered), "partitions that don't end where they did, after %s", after)
	return nil
}
