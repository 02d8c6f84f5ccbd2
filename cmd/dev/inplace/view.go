package inplace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// view is all that clients can read of a broker.
type view struct {
	starts, ends map[string]int64    // by partition, as "topic-0"
	records      map[string][]string // by partition, aborted ones too; of a compacted topic the last of each key
	committed    map[string][]string // without those of transactions that aren't committed
	groups       map[string]int64    // committed offsets by partition
}

// look reads everything in the topics of the script, and what its group has committed.
func look(ctx context.Context, addr string) (view, error) {
	topics := []string{plainTopic, compactedTopic, exactTopic}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return view{}, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	v := view{starts: map[string]int64{}, ends: map[string]int64{}, groups: map[string]int64{}}
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err := listed(starts, v.starts, err); err != nil {
		return v, err
	}
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err := listed(ends, v.ends, err); err != nil {
		return v, err
	}
	stable, err := admin.ListCommittedOffsets(ctx, topics...)
	bounds := map[string]int64{}
	if err := listed(stable, bounds, err); err != nil {
		return v, err
	}
	offsets, err := admin.FetchOffsets(ctx, groupName)
	if err != nil {
		return v, fmt.Errorf("fetch the offsets of %s: %w", groupName, err)
	}
	offsets.Each(func(o kadm.OffsetResponse) { v.groups[partition(o.Topic, o.Partition)] = o.At })
	if v.records, err = read(ctx, addr, kgo.ReadUncommitted(), starts, v.ends); err != nil {
		return v, err
	}
	if v.committed, err = read(ctx, addr, kgo.ReadCommitted(), starts, bounds); err != nil {
		return v, err
	}
	return v, nil
}

func partition(topic string, number int32) string { return fmt.Sprintf("%s-%d", topic, number) }

// listed notes offsets by partition.
func listed(offsets kadm.ListedOffsets, into map[string]int64, err error) error {
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return fmt.Errorf("list offsets: %w", err)
	}
	offsets.Each(func(o kadm.ListedOffset) { into[partition(o.Topic, o.Partition)] = o.Offset })
	return nil
}

// read reads every partition from its start to a bound.
func read(ctx context.Context, addr string, isolation kgo.IsolationLevel, starts kadm.ListedOffsets, bounds map[string]int64) (map[string][]string, error) {
	from := map[string]map[int32]kgo.Offset{}
	open := map[string]int64{}
	starts.Each(func(o kadm.ListedOffset) {
		if from[o.Topic] == nil {
			from[o.Topic] = map[int32]kgo.Offset{}
		}
		from[o.Topic][o.Partition] = kgo.NewOffset().At(o.Offset)
		if p := partition(o.Topic, o.Partition); bounds[p] > o.Offset {
			open[p] = bounds[p]
		}
	})
	// Markers are kept, so that a partition that ends with one is seen to its end.
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	records := map[string][]string{}
	last := map[string]string{} // of each key of the compacted topic
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read to the end: %w; not reached: %v", ctx.Err(), open)
		}
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			p := partition(r.Topic, r.Partition)
			text := fmt.Sprintf("%d: %s=%s at %d %v", r.Offset, r.Key, r.Value, r.Timestamp.UnixMilli(), r.Headers)
			switch {
			case r.Attrs.IsControl():
			case r.Topic == compactedTopic:
				last[string(r.Key)] = text
			default:
				records[p] = append(records[p], text)
			}
			if r.Offset >= open[p]-1 {
				delete(open, p)
			}
		})
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		records[partition(compactedTopic, 0)] = append(records[partition(compactedTopic, 0)], last[key])
	}
	return records, nil
}

// differences lists how what is read now differs from what was read before.
func differences(before, now view) []string {
	all := compare("begins at", before.starts, now.starts)
	all = append(all, compare("ends at", before.ends, now.ends)...)
	all = append(all, compare("the group is at", before.groups, now.groups)...)
	all = append(all, compareRecords("all", before.records, now.records)...)
	return append(all, compareRecords("committed", before.committed, now.committed)...)
}

func compare(what string, before, now map[string]int64) (all []string) {
	for _, p := range keys(before, now) {
		if b, n := valueOf(before, p), valueOf(now, p); b != n {
			all = append(all, fmt.Sprintf("%s: %s %s, was %s", p, what, n, b))
		}
	}
	return all
}

func valueOf(m map[string]int64, key string) string {
	if n, ok := m[key]; ok {
		return fmt.Sprint(n)
	}
	return "nothing"
}

func compareRecords(what string, before, now map[string][]string) (all []string) {
	for _, p := range keys(before, now) {
		b, n := before[p], now[p]
		if slices.Equal(b, n) {
			continue
		}
		at := 0
		for at < len(b) && at < len(n) && b[at] == n[at] {
			at++
		}
		all = append(all, fmt.Sprintf("%s: %s records: %d, were %d; the first that differs: %q, was %q", p, what, len(n), len(b), nth(n, at), nth(b, at)))
	}
	return all
}

func nth(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

func keys[V any](a, b map[string]V) []string {
	both := maps.Clone(a)
	if both == nil {
		both = map[string]V{}
	}
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}
