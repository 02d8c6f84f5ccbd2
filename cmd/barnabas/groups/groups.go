package groups

import (
	"cmp"
	"slices"
)

// Unknown stands for an offset that nobody committed, or that couldn't be asked for.
const Unknown = -1

// The states of groups that matter here, as Kafka's protocol names them; there are more.
const (
	Empty = "Empty" // it has commits and no members
	Dead  = "Dead"  // it isn't there
)

// Group is what a cluster says of one group.
type Group struct {
	Name        string
	State       string // by Kafka's names: Stable, Empty, ...
	Type        string // "classic", or "consumer" for the groups of KIP-848
	Protocol    string // the protocol's type: "consumer", "connect", ...; "" for a group that only has commits
	Assignor    string // "" without members
	Coordinator int32  // the broker
	Epoch       int32  // of groups of KIP-848, as the next; -1 for others
	TargetEpoch int32  // of the assignment that the members move to
	Members     []Member
	Offsets     []Offset // of each partition that is assigned to a member or has a commit, by topic and partition
}

// Member is a member of a group.
type Member struct {
	ID       string
	Instance string // group.instance.id (KIP-345), "" for most
	Client   string // client.id
	Host     string
	Assigned map[string][]int32 // by topic; nil where the protocol isn't the consumers'
	Epoch    int32              // of members of groups of KIP-848, as the next; -1 for others
	Target   map[string][]int32 // what it will have
}

// Partitions counts what is assigned to the member.
func (m Member) Partitions() (n int) {
	for _, p := range m.Assigned {
		n += len(p)
	}
	return n
}

// Offset is how far a group is in a partition.
type Offset struct {
	Topic       string
	Partition   int32
	Committed   int64   // the next record to read; Unknown when nobody committed
	LeaderEpoch int32   // that was committed with it (KIP-320); Unknown for none
	End         int64   // the high watermark; Unknown with Err
	Member      *Member // who reads it; nil for nobody
	Err         error   // why the end or the commit isn't known; kerr.UnknownTopicOrPartition when the partition isn't there any more
}

// Lag is how many offsets the group has not read yet, as Kafka's own tool counts: from the committed offset to the high
// watermark. It is never negative, even when the log ends before the commit because records were lost or the topic was
// created anew. It isn't known without a commit, because the client decides where it would begin, nor without an end.
func (o Offset) Lag() (lag int64, known bool) {
	if o.Err != nil || o.Committed < 0 || o.End < 0 {
		return 0, false
	}
	return max(o.End-o.Committed, 0), true
}

// Total is a group's lag.
type Total struct {
	Lag         int64 // over the partitions whose lag is known
	Partitions  int   // all
	Uncommitted int   // those without a commit: they aren't in Lag
	Unread      int   // those that couldn't be asked: they aren't in Lag
}

// Total sums the lag of a group's partitions.
func (g Group) Total() Total {
	t := Total{Partitions: len(g.Offsets)}
	for _, o := range g.Offsets {
		lag, _ := o.Lag()
		t.Lag += lag
		switch {
		case o.Err != nil:
			t.Unread++
		case o.Committed < 0:
			t.Uncommitted++
		}
	}
	return t
}

// partition names a partition of a topic.
type partition struct {
	topic  string
	number int32
}

// offsets puts together what is committed and what is assigned, without ends.
func (g *Group) offsets(committed []Offset) []Offset {
	all := map[partition]Offset{}
	for _, o := range committed {
		all[partition{o.Topic, o.Partition}] = o
	}
	for i := range g.Members {
		m := &g.Members[i]
		for topic, numbers := range m.Assigned {
			for _, n := range numbers {
				o, ok := all[partition{topic, n}]
				if !ok {
					o = Offset{Topic: topic, Partition: n, Committed: Unknown, LeaderEpoch: Unknown}
				}
				if o.Member == nil {
					o.Member = m
				}
				all[partition{topic, n}] = o
			}
		}
	}
	list := make([]Offset, 0, len(all))
	for _, o := range all {
		list = append(list, o)
	}
	slices.SortFunc(list, func(x, y Offset) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	return list
}
