package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// check reads all partitions and compares them with what the producers know. Of each, as many offsets and timestamps are
// looked up as lookups says, at random, or all of them.
func (r *run) check(ctx context.Context, lookups int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.options.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, topic := range []string{synced, unsynced} {
		for partition := range int32(partitions) {
			at := place{topic, partition}
			acked := r.load.snapshot(at) // before the end is asked for
			records, err := readAll(ctx, client, r.options.Addr, at)
			if err == nil {
				err = compare(records, acked)
			}
			if err == nil {
				err = r.lookUp(ctx, client, at, records, lookups)
			}
			if err != nil {
				return fmt.Errorf("%s-%d: %w", topic, partition, err)
			}
		}
	}
	return nil
}

// readAll reads a partition from its start to what is its end now.
func readAll(ctx context.Context, client *kgo.Client, addr string, at place) ([]*kgo.Record, error) {
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, at.topic)
	if err != nil {
		return nil, err
	}
	end, ok := ends.Lookup(at.topic, at.partition)
	if !ok || end.Err != nil {
		return nil, fmt.Errorf("its end: %w", end.Err)
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		at.topic: {at.partition: kgo.NewOffset().At(0)},
	}))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var records []*kgo.Record
	for int64(len(records)) < end.Offset {
		fetches := consumer.PollFetches(ctx)
		if err := errors.Join(fetches.Err0(), ctx.Err()); err != nil {
			return nil, fmt.Errorf("read behind %d records: %w", len(records), err)
		}
		for _, f := range fetches.Errors() {
			return nil, f.Err
		}
		records = append(records, fetches.Records()...)
	}
	return records, nil
}

// compare holds a partition's records against what was acknowledged: per producer, the offsets of its first, second, … record.
func compare(records []*kgo.Record, acked [][]int64) error {
	next := make([]int, len(acked))
	for i, r := range records {
		if r.Offset != int64(i) {
			return fmt.Errorf("offset %d where %d should be", r.Offset, i)
		}
		var number, sequence int
		if _, err := fmt.Sscanf(string(r.Value), "%d %d ", &number, &sequence); err != nil || number >= len(next) || string(r.Value) != value(number, sequence) {
			return fmt.Errorf("offset %d: nobody wrote %q", i, r.Value)
		}
		if sequence != next[number] {
			return fmt.Errorf("offset %d: record %d of producer %d where its %d should be: a gap or a duplicate", i, sequence, number, next[number])
		}
		if sequence < len(acked[number]) && acked[number][sequence] != r.Offset {
			return fmt.Errorf("offset %d: record %d of producer %d was acknowledged at %d", i, sequence, number, acked[number][sequence])
		}
		next[number]++
	}
	for number, offsets := range acked {
		if next[number] < len(offsets) {
			return fmt.Errorf("producer %d: %d records were acknowledged, %d are there", number, len(offsets), next[number])
		}
	}
	return nil
}

// lookUp fetches at offsets, and lists the offsets of timestamps.
func (r *run) lookUp(ctx context.Context, client *kgo.Client, at place, records []*kgo.Record, most int) error {
	largest := make([]int64, len(records)) // up to and including each record
	for i, record := range records {
		largest[i] = record.Timestamp.UnixMilli()
		if i > 0 {
			largest[i] = max(largest[i], largest[i-1])
		}
	}
	chosen := rand.Perm(len(records))
	for _, i := range chosen[:min(most, len(chosen))] {
		r.result.Lookups++
		if err := fetchAt(ctx, client, at, records[i]); err != nil {
			return err
		}
		timestamp := records[i].Timestamp.UnixMilli()
		want := int64(sort.Search(len(records), func(k int) bool { return largest[k] >= timestamp }))
		got, err := offsetOf(ctx, client, at, timestamp)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("timestamp %d is found at offset %d, but is at %d", timestamp, got, want)
		}
	}
	return nil
}

func fetchAt(ctx context.Context, client *kgo.Client, at place, want *kgo.Record) error {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = at.partition, want.Offset, 1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = at.topic, append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.SessionEpoch, req.MaxBytes, req.Topics = -1, 1, append(req.Topics, t)
	pinned := client.Broker(1)
	resp, err := pinned.Request(ctx, limited{req})
	if err != nil {
		return err
	}
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: want.Offset, Topic: at.topic},
		&resp.(*kmsg.FetchResponse).Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	switch {
	case got.Err != nil:
		return fmt.Errorf("fetch at %d: %w", want.Offset, got.Err)
	case len(got.Records) == 0 || got.Records[0].Offset != want.Offset || string(got.Records[0].Value) != string(want.Value):
		return fmt.Errorf("fetch at %d brings %d records, and not that one first", want.Offset, len(got.Records))
	}
	return nil
}

// limited keeps a fetch to the versions that name topics.
type limited struct{ *kmsg.FetchRequest }

// MaxVersion makes limited a request of at most version 12.
func (limited) MaxVersion() int16 { return 12 }

func offsetOf(ctx context.Context, client *kgo.Client, at place, timestamp int64) (int64, error) {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = at.partition, timestamp
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = at.topic, append(t.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	got := resp.Topics[0].Partitions[0]
	return got.Offset, kerr.ErrorForCode(got.ErrorCode)
}
