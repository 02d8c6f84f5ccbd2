package metrics

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/log"
)

// Leaders asks other brokers about partitions that they lead. Its methods may be called from any goroutine, and give up when ctx ends.
type Leaders interface {
	// Bounds gives the log start offset and the high watermark of partitions, those that the broker could tell.
	Bounds(ctx context.Context, broker int32, of []partition.ID) map[partition.ID]Bounds
	// BatchTime gives the time, in milliseconds, of the first batch from an offset on; see log.BatchTime.
	BatchTime(ctx context.Context, broker int32, of partition.ID, offset int64) (ms int64, found bool)
}

// Bounds are the offsets that consumers can read, the second one exclusively.
type Bounds struct{ Start, End int64 }

// The time that others are given to answer, together, and how many times of batches are asked of them at most for one scrape: who asks
// for metrics waits for it.
const (
	leadersPatience = 2 * time.Second
	mostAsked       = 200
)

// groupLag is how far a group is behind in a partition.
type groupLag struct {
	group     string
	partition partition.ID
	committed int64
	records   int64         // never negative
	behind    time.Duration // how old the first record is that it hasn't consumed, 0 when there is none
	aged      bool          // behind is known
}

// lags computes how far groups are behind. What a group has committed is read before the end of any partition: ends only grow, so
// that no group can be ahead. Records that are deleted already count for nobody; a group that commits nothing more because there is
// nothing more is not behind.
//
// Each broker does so for the groups that it coordinates. The ends of partitions that others lead are asked for, all of a leader's at
// once. A partition whose leader doesn't answer is left out: no value is better than an old one.
type lags struct {
	now func() time.Time

	mu    sync.Mutex
	times map[timeKey]int64 // of batches, in milliseconds: those that the last scrape needed
}

// timeKey is a place in a partition. What lies there doesn't change its time, unless the topic is another one of the same name.
type timeKey struct {
	partition partition.ID
	topic     [16]byte
	offset    int64
}

func newLags(now func() time.Time) *lags { return &lags{now: now} }

// of lists the lags of groups by group, topic and partition, and how many partitions couldn't be told.
func (l *lags) of(r *Rooms, cluster *metadata.Snapshot, groups []group.Standing) (all []groupLag, unknown int) {
	ctx, cancel := context.WithTimeout(context.Background(), leadersPatience)
	defer cancel()
	bounds := l.bounds(ctx, r, cluster, groups)
	all = make([]groupLag, 0, countCommitted(groups))
	for i := range groups {
		for tp, committed := range groups[i].Committed {
			id := partition.ID{Topic: tp.Topic, Partition: tp.Partition}
			t, ok := cluster.Topic(id.Topic)
			if !ok {
				continue // deleted: there is nothing to be behind of
			}
			if _, ok := t.Partition(id.Partition); !ok {
				continue
			}
			b, ok := bounds[id]
			if !ok {
				unknown++
				continue
			}
			all = append(all, groupLag{group: groups[i].ID, partition: id, committed: committed, records: max(0, b.End-max(committed, b.Start))})
		}
	}
	slices.SortFunc(all, func(a, b groupLag) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.partition.Topic, b.partition.Topic), cmp.Compare(a.partition.Partition, b.partition.Partition))
	})
	l.age(ctx, r, cluster, bounds, all)
	return all, unknown
}

// countCommitted counts the offsets that groups have committed.
func countCommitted(groups []group.Standing) (n int) {
	for i := range groups {
		n += len(groups[i].Committed)
	}
	return n
}

// bounds finds out where the partitions begin and end that groups have committed offsets of.
func (l *lags) bounds(ctx context.Context, r *Rooms, cluster *metadata.Snapshot, groups []group.Standing) map[partition.ID]Bounds {
	found := make(map[partition.ID]Bounds, min(countCommitted(groups), r.Partitions.Len()))
	elsewhere := map[int32][]partition.ID{}
	seen := map[partition.ID]bool{} // of those that aren't led here
	for i := range groups {
		for tp := range groups[i].Committed {
			id := partition.ID{Topic: tp.Topic, Partition: tp.Partition}
			if _, ok := found[id]; ok || seen[id] {
				continue
			}
			if p, err := r.Partitions.Get(id); err == nil && p.IsLeader() {
				end := p.Log().HighWatermark() // before the start, which can't pass it
				found[id] = Bounds{Start: min(p.Log().StartOffset(), end), End: end}
				continue
			}
			seen[id] = true
			if t, ok := cluster.Topic(id.Topic); ok {
				if p, ok := t.Partition(id.Partition); ok && p.Leader >= 0 && p.Leader != r.BrokerID {
					elsewhere[p.Leader] = append(elsewhere[p.Leader], id)
				}
			}
		}
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for broker, ids := range elsewhere {
		asked.Go(func() {
			answer := r.Leaders.Bounds(ctx, broker, ids)
			mu.Lock()
			defer mu.Unlock()
			for id, b := range answer {
				found[id] = b
			}
		})
	}
	asked.Wait()
	return found
}

// age fills in how old the first unconsumed records are.
func (l *lags) age(ctx context.Context, r *Rooms, cluster *metadata.Snapshot, bounds map[partition.ID]Bounds, all []groupLag) {
	l.mu.Lock()
	known := l.times
	l.mu.Unlock()
	times := map[timeKey]int64{}
	var wanted []timeKey // of others
	keyOf := func(g *groupLag) timeKey {
		k := timeKey{partition: g.partition, offset: max(g.committed, bounds[g.partition].Start)}
		if t, ok := cluster.Topic(g.partition.Topic); ok {
			k.topic = t.ID
		}
		return k
	}
	for i := range all {
		g := &all[i]
		if g.records == 0 {
			g.aged = true
			continue
		}
		k := keyOf(g)
		if _, ok := times[k]; ok {
			continue
		}
		if ms, ok := known[k]; ok {
			times[k] = ms
			continue
		}
		if p, err := r.Partitions.Get(k.partition); err == nil && p.IsLeader() {
			if ms, ok := batchTime(p.Log(), k.offset); ok {
				times[k] = ms
			}
			continue
		}
		wanted = append(wanted, k)
	}
	l.ask(ctx, r, cluster, wanted, times)
	now := l.now()
	for i := range all {
		if g := &all[i]; g.records > 0 {
			var ms int64
			if ms, g.aged = times[keyOf(g)]; g.aged {
				g.behind = max(0, now.Sub(time.UnixMilli(ms))) // a producer's clock may be ahead
			}
		}
	}
	l.mu.Lock()
	l.times = times
	l.mu.Unlock()
}

// batchTime is the time of the first batch from an offset on. Where the clock of a producer was never set, there is none.
func batchTime(l *log.Log, offset int64) (int64, bool) {
	at, found, err := l.BatchTime(offset, l.HighWatermark())
	return at.Timestamp, err == nil && found && at.Timestamp >= 0
}

// ask asks other leaders for the times of batches, one after the other for each leader.
func (l *lags) ask(ctx context.Context, r *Rooms, cluster *metadata.Snapshot, wanted []timeKey, times map[timeKey]int64) {
	byLeader := map[int32][]timeKey{}
	for i, k := range wanted {
		if i == mostAsked {
			break // the others' turn comes with the next scrape: these are known then
		}
		if t, ok := cluster.Topic(k.partition.Topic); ok {
			if p, ok := t.Partition(k.partition.Partition); ok && p.Leader >= 0 {
				byLeader[p.Leader] = append(byLeader[p.Leader], k)
			}
		}
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for broker, keys := range byLeader {
		asked.Go(func() {
			for _, k := range keys {
				ms, ok := r.Leaders.BatchTime(ctx, broker, k.partition, k.offset)
				if ctx.Err() != nil {
					return
				}
				if ok && ms >= 0 {
					mu.Lock()
					times[k] = ms
					mu.Unlock()
				}
			}
		})
	}
	asked.Wait()
}
