package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
)

// groupFamilies are about the consumer groups that this broker coordinates.
type groupFamilies struct {
	groups, loading, shards, members, rebalances, lag, seconds, unknown, leftOut family
	partitionLag, partitionSeconds, committed                                    family
}

func newGroupFamilies() groupFamilies {
	each := []string{"group", "topic", "partition"}
	return groupFamilies{
		groups:           gauge("barnabas_groups", "Groups that this broker coordinates, by state.", "state"),
		shards:           gauge("barnabas_group_shards", "Shards of groups that this broker coordinates: partitions of __consumer_offsets, where groups are kept there."),
		loading:          gauge("barnabas_group_shards_loading", "Shards of groups that are being read after this broker became their coordinator."),
		members:          gauge("barnabas_group_members", "Members of a group.", "group"),
		rebalances:       counter("barnabas_group_rebalances_total", "Rebalances of a group that began since this broker coordinates it.", "group"),
		lag:              gauge("barnabas_group_lag_records", "How far a group is behind in a topic, in offsets, over the partitions that it has committed offsets of.", "group", "topic"),
		seconds:          gauge("barnabas_group_lag_seconds", "How old the oldest record is that a group has not consumed of a topic, by the time of its batch.", "group", "topic"),
		unknown:          gauge("barnabas_group_lag_unknown_partitions", "Partitions with committed offsets of which the leader could not be asked where they end."),
		partitionLag:     gauge("barnabas_group_partition_lag_records", "How far a group is behind in a partition, in offsets.", each...),
		partitionSeconds: gauge("barnabas_group_partition_lag_seconds", "How old the oldest record is that a group has not consumed of a partition.", each...),
		committed:        gauge("barnabas_group_partition_committed_offset", "Offset that a group has committed.", each...),
		leftOut:          newTopicFamilies().leftOut,
	}
}

// maxGroupTopics bounds how many pairs of a group and a topic are shown, and maxGroups how many groups: clients can call groups whatever
// they want, and some call them something else each time. Those that are furthest behind are shown.
const (
	maxGroupTopics = 5000
	maxGroups      = 5000
)

// maxGroupName bounds the names of groups that are shown, in bytes.
const maxGroupName = 256

// oldGroups is the beginning of the names of the groups that OffsetCommit version 0 commits for, which no list shows.
const oldGroups = "/consumers/"

// shown says whether a group is one to be shown.
func shown(name string) bool { return len(name) <= maxGroupName && !strings.HasPrefix(name, oldGroups) }

// label is a name as the value of a label, which has to be UTF-8.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// topicLag is how far a group is behind in a topic.
type topicLag struct {
	group, topic string
	records      int64
	committed    int64 // of all partitions together
	behind       time.Duration
	aged         bool // behind is known of all partitions
}

// groupTopic is a pair that is shown.
type groupTopic struct{ group, topic string }

func pairsOf(shown []topicLag) map[groupTopic]bool {
	pairs := make(map[groupTopic]bool, len(shown))
	for i := range shown {
		pairs[groupTopic{shown[i].group, shown[i].topic}] = true
	}
	return pairs
}

// byTopic adds lags up, which are sorted. It gives those that are furthest behind first, and how many were left out.
func byTopic(lags []groupLag) (all []topicLag, leftOut int) {
	for i := range lags {
		g := &lags[i]
		if !shown(g.group) {
			leftOut++
			continue
		}
		if n := len(all); n == 0 || all[n-1].group != g.group || all[n-1].topic != g.partition.Topic {
			all = append(all, topicLag{group: g.group, topic: g.partition.Topic, aged: true})
		}
		t := &all[len(all)-1]
		t.records += g.records
		t.committed += g.committed
		t.behind = max(t.behind, g.behind)
		t.aged = t.aged && g.aged
	}
	if len(all) <= maxGroupTopics {
		return all, leftOut
	}
	slices.SortStableFunc(all, func(a, b topicLag) int { return cmp.Compare(b.records, a.records) })
	return all[:maxGroupTopics], leftOut + len(all) - maxGroupTopics
}

func (f *groupFamilies) show(o out, v *view, perPartition bool) {
	states := map[group.State]int{group.Empty: 0, group.PreparingRebalance: 0, group.CompletingRebalance: 0, group.Stable: 0}
	members := 0
	for _, g := range v.groups.Groups {
		if !shown(g.ID) {
			continue
		}
		states[g.State]++
		if members++; members <= maxGroups {
			o.put(f.members, float64(g.Members), label(g.ID))
			o.put(f.rebalances, float64(g.Rebalances), label(g.ID))
		}
	}
	for state, n := range states {
		o.put(f.groups, float64(n), string(state))
	}
	o.put(f.shards, float64(v.groups.Shards))
	o.put(f.loading, float64(v.groups.Loading))
	o.put(f.unknown, float64(v.unknownLags))
	all, leftOut := byTopic(v.lags)
	for _, t := range all {
		o.put(f.lag, float64(t.records), label(t.group), t.topic)
		if t.aged {
			o.put(f.seconds, t.behind.Seconds(), label(t.group), t.topic)
		}
	}
	o.put(f.leftOut, float64(leftOut), "group_topics")
	if !perPartition {
		return
	}
	there := pairsOf(all)
	for _, g := range v.lags {
		if !there[groupTopic{g.group, g.partition.Topic}] {
			continue
		}
		labels := []string{label(g.group), g.partition.Topic, strconv.Itoa(int(g.partition.Partition))}
		o.put(f.partitionLag, float64(g.records), labels...)
		o.put(f.committed, float64(g.committed), labels...)
		if g.aged {
			o.put(f.partitionSeconds, g.behind.Seconds(), labels...)
		}
	}
}
