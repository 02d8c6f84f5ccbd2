package gateway

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

type groupV3 struct {
	Kind              string     `json:"kind"`
	Metadata          metadataV3 `json:"metadata"`
	ClusterID         string     `json:"cluster_id"`
	ConsumerGroupID   string     `json:"consumer_group_id"`
	IsSimple          bool       `json:"is_simple" doc:"it has offsets and no protocol"`
	PartitionAssignor string     `json:"partition_assignor"`
	State             string     `json:"state" doc:"STABLE, EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, DEAD or UNKNOWN"`
	Coordinator       relatedV3  `json:"coordinator"`
	Consumers         relatedV3  `json:"consumers"`
	LagSummary        relatedV3  `json:"lag_summary"`
}

type consumerV3 struct {
	Kind            string     `json:"kind"`
	Metadata        metadataV3 `json:"metadata"`
	ClusterID       string     `json:"cluster_id"`
	ConsumerGroupID string     `json:"consumer_group_id"`
	ConsumerID      string     `json:"consumer_id"`
	InstanceID      *string    `json:"instance_id"`
	ClientID        string     `json:"client_id"`
	Assignments     relatedV3  `json:"assignments"`
}

type assignmentV3 struct {
	Kind            string     `json:"kind"`
	Metadata        metadataV3 `json:"metadata"`
	ClusterID       string     `json:"cluster_id"`
	ConsumerGroupID string     `json:"consumer_group_id"`
	ConsumerID      string     `json:"consumer_id"`
	TopicName       string     `json:"topic_name"`
	PartitionID     int32      `json:"partition_id"`
	Partition       relatedV3  `json:"partition"`
	Lag             relatedV3  `json:"lag"`
}

type lagV3 struct {
	Kind            string     `json:"kind"`
	Metadata        metadataV3 `json:"metadata"`
	ClusterID       string     `json:"cluster_id"`
	ConsumerGroupID string     `json:"consumer_group_id"`
	TopicName       string     `json:"topic_name"`
	PartitionID     int32      `json:"partition_id"`
	CurrentOffset   int64      `json:"current_offset" doc:"what is committed; -1 for nothing"`
	LogEndOffset    int64      `json:"log_end_offset"`
	Lag             int64      `json:"lag" doc:"how many records are still to be consumed"`
	ConsumerID      string     `json:"consumer_id" doc:"the member that has the partition, if any"`
	InstanceID      *string    `json:"instance_id"`
	ClientID        string     `json:"client_id"`
}

type lagSummaryV3 struct {
	Kind             string     `json:"kind"`
	Metadata         metadataV3 `json:"metadata"`
	ClusterID        string     `json:"cluster_id"`
	ConsumerGroupID  string     `json:"consumer_group_id"`
	MaxLagConsumerID string     `json:"max_lag_consumer_id"`
	MaxLagInstanceID *string    `json:"max_lag_instance_id"`
	MaxLagClientID   string     `json:"max_lag_client_id"`
	MaxLagTopicName  string     `json:"max_lag_topic_name"`
	MaxLagPartition  int32      `json:"max_lag_partition_id"`
	MaxLag           int64      `json:"max_lag"`
	TotalLag         int64      `json:"total_lag"`
}

func (g *Gateway) groupsV3() []operation {
	const groups = pathCluster + "/consumer-groups"
	const group = groups + "/{consumer_group_id}"
	const consumer = group + "/consumers/{consumer_id}"
	return []operation{
		{version: 3, method: "GET", path: groups, id: "listConsumerGroupsV3", summary: "List consumer groups", status: 200, answer: listV3[groupV3]{}, fails: []int{404}, handle: g.listGroups},
		{version: 3, method: "GET", path: group, id: "getConsumerGroupV3", summary: "Describe a consumer group", status: 200, answer: groupV3{}, fails: []int{400, 404}, handle: g.getGroup},
		{version: 3, method: "GET", path: group + "/consumers", id: "listConsumersV3", summary: "List a group's members", status: 200, answer: listV3[consumerV3]{}, fails: []int{400, 404}, handle: g.listConsumers},
		{version: 3, method: "GET", path: consumer, id: "getConsumerV3", summary: "Describe a member", status: 200, answer: consumerV3{}, fails: []int{400, 404}, handle: g.getConsumer},
		{version: 3, method: "GET", path: consumer + "/assignments", id: "listAssignmentsV3", summary: "List a member's partitions", status: 200, answer: listV3[assignmentV3]{}, fails: []int{400, 404}, handle: g.listAssignments},
		{version: 3, method: "GET", path: group + "/lag-summary", id: "getLagSummaryV3", summary: "How far behind a group is, and where most", status: 200, answer: lagSummaryV3{}, fails: []int{400, 404}, handle: g.lagSummary},
		{version: 3, method: "GET", path: group + "/lags", id: "listLagsV3", summary: "How far behind a group is, by partition", status: 200, answer: listV3[lagV3]{}, fails: []int{400, 404}, handle: g.listLags},
		{version: 3, method: "GET", path: group + "/lags/{topic_name}/partitions/{partition_id}", id: "getLagV3", summary: "How far behind a group is in one partition", status: 200, answer: lagV3{}, fails: []int{400, 404}, handle: g.getLag},
	}
}

func (p place) groupV3(d kadm.DescribedGroup) groupV3 {
	return groupV3{
		Kind: "KafkaConsumerGroup", Metadata: p.metadata("consumer-groups", d.Group), ClusterID: p.cluster, ConsumerGroupID: d.Group,
		IsSimple: d.ProtocolType == "", PartitionAssignor: d.Protocol, State: stateV3(d.State),
		Coordinator: p.related("brokers", strconv.Itoa(int(d.Coordinator.NodeID))),
		Consumers:   p.related("consumer-groups", d.Group, "consumers"), LagSummary: p.related("consumer-groups", d.Group, "lag-summary"),
	}
}

// stateV3 writes a state as this API does: PreparingRebalance is PREPARING_REBALANCE.
func stateV3(state string) string {
	var b strings.Builder
	for i, c := range state {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return cmp.Or(strings.ToUpper(b.String()), "UNKNOWN")
}

func (p place) consumerV3(group string, m kadm.DescribedGroupMember) consumerV3 {
	return consumerV3{
		Kind: "KafkaConsumer", Metadata: p.metadata("consumer-groups", group, "consumers", m.MemberID), ClusterID: p.cluster, ConsumerGroupID: group,
		ConsumerID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Assignments: p.related("consumer-groups", group, "consumers", m.MemberID, "assignments"),
	}
}

func (p place) lagV3(group string, l kadm.GroupMemberLag) lagV3 {
	out := lagV3{
		Kind: "KafkaConsumerLag", Metadata: p.metadata("consumer-groups", group, "lags", l.Topic, "partitions", strconv.Itoa(int(l.Partition))), ClusterID: p.cluster,
		ConsumerGroupID: group, TopicName: l.Topic, PartitionID: l.Partition, CurrentOffset: l.Commit.At, LogEndOffset: l.End.Offset, Lag: l.Lag,
	}
	if l.Member != nil {
		out.ConsumerID, out.InstanceID, out.ClientID = l.Member.MemberID, l.Member.InstanceID, l.Member.ClientID
	}
	return out
}

func (g *Gateway) listGroups(c *call) (any, error) {
	return inCluster(c, func(ctx context.Context, at place) (any, error) {
		described, err := g.admin.DescribeGroups(ctx)
		if err != nil {
			return nil, err
		}
		var data []groupV3
		for _, d := range described.Sorted() {
			if d.Err == nil {
				data = append(data, at.groupV3(d))
			}
		}
		return list("KafkaConsumerGroupList", at.link("consumer-groups"), data), nil
	})
}

// inGroup runs f for the group that the path names. A group that nobody knows is described as dead.
func (g *Gateway) inGroup(c *call, f func(ctx context.Context, at place, group kadm.DescribedGroup) (any, error)) (any, error) {
	return inCluster(c, func(ctx context.Context, at place) (any, error) {
		name := c.param("consumer_group_id")
		described, err := g.admin.DescribeGroups(ctx, name)
		if err != nil {
			return nil, err
		}
		group, ok := described[name]
		switch {
		case ok && group.Err != nil:
			return nil, group.Err
		case !ok, group.State == "Dead":
			return nil, fail(http.StatusNotFound, "Consumer group %.100s cannot be found.", name)
		}
		return f(ctx, at, group)
	})
}

func (g *Gateway) getGroup(c *call) (any, error) {
	return g.inGroup(c, func(_ context.Context, at place, group kadm.DescribedGroup) (any, error) {
		return at.groupV3(group), nil
	})
}

func (g *Gateway) listConsumers(c *call) (any, error) {
	return g.inGroup(c, func(_ context.Context, at place, group kadm.DescribedGroup) (any, error) {
		var data []consumerV3
		for _, m := range group.Members {
			data = append(data, at.consumerV3(group.Group, m))
		}
		return list("KafkaConsumerList", at.link("consumer-groups", group.Group, "consumers"), data), nil
	})
}

// inConsumer runs f for the member that the path names.
func (g *Gateway) inConsumer(c *call, f func(at place, group string, m kadm.DescribedGroupMember) (any, error)) (any, error) {
	return g.inGroup(c, func(_ context.Context, at place, group kadm.DescribedGroup) (any, error) {
		id := c.param("consumer_id")
		found := slices.IndexFunc(group.Members, func(m kadm.DescribedGroupMember) bool { return m.MemberID == id })
		if found < 0 {
			return nil, fail(http.StatusNotFound, "Consumer %.100s cannot be found.", id)
		}
		return f(at, group.Group, group.Members[found])
	})
}

func (g *Gateway) getConsumer(c *call) (any, error) {
	return g.inConsumer(c, func(at place, group string, m kadm.DescribedGroupMember) (any, error) {
		return at.consumerV3(group, m), nil
	})
}

func (g *Gateway) listAssignments(c *call) (any, error) {
	return g.inConsumer(c, func(at place, group string, m kadm.DescribedGroupMember) (any, error) {
		var data []assignmentV3
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range assigned.Topics {
				for _, p := range t.Partitions {
					id := strconv.Itoa(int(p))
					data = append(data, assignmentV3{
						Kind: "KafkaConsumerAssignment", Metadata: at.metadata("consumer-groups", group, "consumers", m.MemberID, "assignments", t.Topic, "partitions", id),
						ClusterID: at.cluster, ConsumerGroupID: group, ConsumerID: m.MemberID, TopicName: t.Topic, PartitionID: p,
						Partition: at.related("topics", t.Topic, "partitions", id), Lag: at.related("consumer-groups", group, "lags", t.Topic, "partitions", id),
					})
				}
			}
		}
		return list("KafkaConsumerAssignmentList", at.link("consumer-groups", group, "consumers", m.MemberID, "assignments"), data), nil
	})
}

// inLag runs f with how far behind the group that the path names is, by partition and sorted.
func (g *Gateway) inLag(c *call, f func(at place, group string, lags []kadm.GroupMemberLag) (any, error)) (any, error) {
	return g.inGroup(c, func(ctx context.Context, at place, group kadm.DescribedGroup) (any, error) {
		described, err := g.admin.Lag(ctx, group.Group)
		if err != nil {
			return nil, err
		}
		lag := described[group.Group]
		if err := lag.Error(); err != nil {
			return nil, err
		}
		return f(at, group.Group, slices.DeleteFunc(lag.Lag.Sorted(), func(l kadm.GroupMemberLag) bool { return l.Err != nil }))
	})
}

func (g *Gateway) listLags(c *call) (any, error) {
	return g.inLag(c, func(at place, group string, lags []kadm.GroupMemberLag) (any, error) {
		var data []lagV3
		for _, l := range lags {
			data = append(data, at.lagV3(group, l))
		}
		return list("KafkaConsumerLagList", at.link("consumer-groups", group, "lags"), data), nil
	})
}

func (g *Gateway) getLag(c *call) (any, error) {
	return g.inLag(c, func(at place, group string, lags []kadm.GroupMemberLag) (any, error) {
		for _, l := range lags {
			if l.Topic == c.param("topic_name") && strconv.Itoa(int(l.Partition)) == c.param("partition_id") {
				return at.lagV3(group, l), nil
			}
		}
		return nil, fail(http.StatusNotFound, "The group has no offset of this partition.")
	})
}

func (g *Gateway) lagSummary(c *call) (any, error) {
	return g.inLag(c, func(at place, group string, lags []kadm.GroupMemberLag) (any, error) {
		if len(lags) == 0 {
			return nil, fail(http.StatusNotFound, "The group has no offsets.")
		}
		out := lagSummaryV3{Kind: "KafkaConsumerGroupLagSummary", Metadata: at.metadata("consumer-groups", group), ClusterID: at.cluster, ConsumerGroupID: group}
		out.Metadata.Self = at.link("consumer-groups", group, "lag-summary")
		most := lags[0]
		for _, l := range lags {
			out.TotalLag += max(l.Lag, 0)
			if l.Lag > most.Lag {
				most = l
			}
		}
		worst := at.lagV3(group, most)
		out.MaxLag, out.MaxLagTopicName, out.MaxLagPartition = worst.Lag, worst.TopicName, worst.PartitionID
		out.MaxLagConsumerID, out.MaxLagInstanceID, out.MaxLagClientID = worst.ConsumerID, worst.InstanceID, worst.ClientID
		return out, nil
	})
}
