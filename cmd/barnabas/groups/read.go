package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errUnlisted is the error of partitions that no answer mentions.
var errUnlisted = errors.New("no broker told its offset")

// List asks all brokers for their groups, by name. With an error there may be groups, too: those of the brokers that answered.
func List(ctx context.Context, admin *kadm.Client) ([]kadm.ListedGroup, error) {
	listed, err := admin.ListGroups(ctx)
	return listed.Sorted(), err
}

// Consumes says whether a listed group is one that [Read] understands. Share groups, for one, keep no offsets of this kind.
func Consumes(g kadm.ListedGroup) bool {
	return g.GroupType == "" || strings.EqualFold(g.GroupType, "classic") || strings.EqualFold(g.GroupType, "consumer")
}

// Describe asks for groups and their members, in the order of the names, without their offsets. A group that isn't there is
// Dead, which is no error.
func Describe(ctx context.Context, admin *kadm.Client, names ...string) ([]Group, error) {
	if len(names) == 0 {
		return nil, nil
	}
	classic, err := admin.DescribeGroups(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe groups: %w", err)
	}
	list := make([]Group, len(names))
	var dead []string
	for i, name := range names {
		d, ok := classic[name]
		if !ok {
			return nil, fmt.Errorf("describe group %s: no broker answered for it", name)
		}
		if errors.Is(d.Err, kerr.GroupIDNotFound) { // newer brokers: of no classic group
			d.State, d.Err = Dead, nil
		}
		if d.Err != nil {
			return nil, fmt.Errorf("describe group %s: %w", name, d.Err)
		}
		list[i] = fromClassic(name, d)
		if d.State == Dead {
			dead = append(dead, name)
		}
	}
	if len(dead) == 0 {
		return list, nil
	}
	found, err := describeConsumers(ctx, admin, dead)
	if err != nil {
		return nil, err
	}
	for i, g := range list {
		if d, ok := found[g.Name]; ok {
			list[i] = d
		}
	}
	return list, nil
}

// describeConsumers looks for groups of KIP-848 among names that no classic group has. Most brokers know none.
func describeConsumers(ctx context.Context, admin *kadm.Client, names []string) (map[string]Group, error) {
	brokers, err := admin.ApiVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask brokers for their versions: %w", err)
	}
	known := false
	brokers.Each(func(b kadm.BrokerApiVersions) {
		_, ok := b.KeyMaxVersion(int16(kmsg.ConsumerGroupDescribe))
		known = known || ok
	})
	if !known {
		return nil, nil
	}
	described, err := admin.DescribeConsumerGroups(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe groups: %w", err)
	}
	found := map[string]Group{}
	for name, d := range described {
		switch {
		case errors.Is(d.Err, kerr.GroupIDNotFound), errors.Is(d.Err, kerr.UnsupportedVersion): // none of that name, or of that kind
		case d.Err != nil:
			return nil, fmt.Errorf("describe group %s: %w", name, d.Err)
		case d.State != Dead:
			found[name] = fromConsumer(d)
		}
	}
	return found, nil
}

func fromClassic(name string, d kadm.DescribedGroup) Group {
	g := Group{Name: name, State: d.State, Type: "classic", Protocol: d.ProtocolType, Assignor: d.Protocol, Coordinator: d.Coordinator.NodeID, Epoch: Unknown, TargetEpoch: Unknown}
	for _, m := range d.Members {
		member := Member{ID: m.MemberID, Client: m.ClientID, Host: m.ClientHost, Epoch: Unknown}
		if m.InstanceID != nil {
			member.Instance = *m.InstanceID
		}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				assign(&member.Assigned, t.Topic, t.Partitions)
			}
		}
		g.Members = append(g.Members, member)
	}
	return g
}

func fromConsumer(d kadm.DescribedConsumerGroup) Group {
	g := Group{Name: d.Group, State: d.State, Type: "consumer", Protocol: "consumer", Assignor: d.AssignorName, Coordinator: d.Coordinator.NodeID, Epoch: d.Epoch, TargetEpoch: d.AssignmentEpoch}
	for _, m := range d.Members {
		member := Member{ID: m.MemberID, Client: m.ClientID, Host: m.ClientHost, Epoch: m.MemberEpoch}
		if m.InstanceID != nil {
			member.Instance = *m.InstanceID
		}
		for topic, numbers := range m.Assignment {
			assign(&member.Assigned, topic, slices.Sorted(maps.Keys(numbers)))
		}
		for topic, numbers := range m.TargetAssignment {
			assign(&member.Target, topic, slices.Sorted(maps.Keys(numbers)))
		}
		g.Members = append(g.Members, member)
	}
	return g
}

func assign(to *map[string][]int32, topic string, numbers []int32) {
	if *to == nil {
		*to = map[string][]int32{}
	}
	(*to)[topic] = append((*to)[topic], numbers...)
}

// Read asks for groups, their members and offsets, in the order of the names. Ends are asked for after the commits, so that
// records written meanwhile make a lag too large by them, and no lag negative. A group that isn't there is Dead and has no
// offsets.
func Read(ctx context.Context, admin *kadm.Client, names ...string) ([]Group, error) {
	list, err := Describe(ctx, admin, names...)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, g := range list {
		if g.State != Dead {
			there = append(there, g.Name)
		}
	}
	committed, err := Committed(ctx, admin, there...)
	if err != nil {
		return nil, err
	}
	topics := map[string]bool{}
	for i := range list {
		g := &list[i]
		g.Offsets = g.offsets(committed[g.Name])
		for _, o := range g.Offsets {
			topics[o.Topic] = true
		}
	}
	if len(topics) == 0 {
		return list, nil
	}
	ends, err := listed(ctx, admin.ListEndOffsets, slices.Sorted(maps.Keys(topics)))
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	for _, g := range list {
		for i := range g.Offsets {
			o := &g.Offsets[i]
			var err error
			if o.End, err = ends.of(o.Topic, o.Partition); o.Err == nil {
				o.Err = err
			}
		}
	}
	return list, nil
}

// Committed asks for what groups committed. Only Topic, Partition, Committed, LeaderEpoch and Err of the offsets are set.
func Committed(ctx context.Context, admin *kadm.Client, names ...string) (map[string][]Offset, error) {
	all := map[string][]Offset{}
	fetched := admin.FetchManyOffsets(ctx, names...)
	for _, name := range names {
		of, ok := fetched[name]
		if !ok {
			return nil, fmt.Errorf("fetch the offsets of group %s: no broker answered for it", name)
		}
		if of.Err != nil {
			return nil, fmt.Errorf("fetch the offsets of group %s: %w", name, of.Err)
		}
		for _, o := range of.Fetched.Sorted() {
			if o.At >= 0 || o.Err != nil {
				all[name] = append(all[name], Offset{Topic: o.Topic, Partition: o.Partition, Committed: max(o.At, Unknown), LeaderEpoch: o.LeaderEpoch, End: Unknown, Err: o.Err})
			}
		}
	}
	return all, nil
}

// listing is what brokers said of the offsets of topics, and what kept some of them from it.
type listing struct {
	offsets kadm.ListedOffsets
	err     error
}

// listed asks for offsets of topics. It fails only when no broker answers.
func listed(ctx context.Context, ask func(context.Context, ...string) (kadm.ListedOffsets, error), topics []string) (listing, error) {
	offsets, err := ask(ctx, topics...)
	var some *kadm.ShardErrors
	if err != nil && (!errors.As(err, &some) || some.AllFailed || ctx.Err() != nil) {
		return listing{}, err
	}
	if err == nil {
		err = errUnlisted
	}
	return listing{offsets, err}, nil
}

// of gives the offset of a partition, or Unknown and why.
func (l listing) of(topic string, number int32) (int64, error) {
	partitions := l.offsets[topic]
	o, ok := partitions[number]
	if whole, failed := partitions[-1]; !ok && failed { // the whole topic, as kadm tells
		o, ok = whole, true
	}
	switch {
	case !ok && len(partitions) > 0 && errors.Is(l.err, errUnlisted):
		return Unknown, kerr.UnknownTopicOrPartition // others of the topic are there: it was created anew, with fewer
	case !ok:
		return Unknown, l.cause(topic, number)
	case o.Err != nil:
		return Unknown, o.Err
	case o.Offset < 0:
		return Unknown, errUnlisted
	}
	return o.Offset, nil
}

// cause finds why the request that asked for a partition failed.
func (l listing) cause(topic string, number int32) error {
	var shards *kadm.ShardErrors
	if !errors.As(l.err, &shards) {
		return l.err
	}
	for _, shard := range shards.Errs {
		req, ok := shard.Req.(*kmsg.ListOffsetsRequest)
		if !ok {
			continue
		}
		for _, t := range req.Topics {
			if t.Topic == topic && slices.ContainsFunc(t.Partitions, func(p kmsg.ListOffsetsRequestTopicPartition) bool { return p.Partition == number }) {
				return shard.Err
			}
		}
	}
	return l.err
}
