package kafkatools

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// describedPartition is a partition with what `kafka-topics --describe` shows of it.
type describedPartition struct {
	number               int32
	leader               int32 // negative for none
	replicas, isr        []int32
	elr, lastELR         []int32 // eligible leaders (KIP-966)
	knowsELR             bool    // the cluster keeps such
	adding, removing     []int32
	moving, leaderIsHere bool
}

// factor is the replication factor: what is being added doesn't count yet.
func (p describedPartition) factor() int {
	changing := func(id int32) bool { return slices.Contains(p.adding, id) || slices.Contains(p.removing, id) }
	if slices.ContainsFunc(p.replicas, changing) {
		return len(p.replicas) - len(p.adding)
	}
	return len(p.replicas)
}

// describeTopics shows each topic, then its partitions.
func (c *call) describeTopics(ctx context.Context, k *cluster) error {
	found, err := c.describedTopics(ctx, k)
	if err != nil || len(found) == 0 {
		return err
	}
	names := make([]string, len(found))
	for i, t := range found {
		names[i] = t.Topic
	}
	configs, err := k.admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return err
	}
	partitions, err := c.describedPartitions(ctx, k, found)
	if err != nil {
		return err
	}
	for _, t := range found {
		config, err := configs.On(t.Topic, nil)
		if err == nil {
			err = said(config.Err, config.ErrMessage)
		}
		if err != nil {
			return err
		}
		c.describeTopic(t, partitions[t.Topic], config.Configs)
	}
	return nil
}

// describedTopics are the topics that --topic-id or --topic mean.
func (c *call) describedTopics(ctx context.Context, k *cluster) ([]kadm.TopicDetail, error) {
	var id kadm.TopicID
	if c.has("topic-id") {
		b, err := base64.RawURLEncoding.DecodeString(c.text("topic-id"))
		if err != nil || len(b) != len(id) {
			return nil, misused("Input string `%s` is no topic id", c.text("topic-id"))
		}
		copy(id[:], b)
	}
	if id == (kadm.TopicID{}) {
		return c.expectedTopics(ctx, k)
	}
	all, err := k.admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all.Sorted() {
		if t.ID == id && !(c.has("exclude-internal") && t.IsInternal) {
			return []kadm.TopicDetail{t}, nil
		}
	}
	if c.has("if-exists") {
		return nil, nil
	}
	return nil, missingTopic{fmt.Sprintf("TopicId '%s'", c.text("topic-id"))}
}

// describedPartitions finds out about the partitions of the topics, in their order.
func (c *call) describedPartitions(ctx context.Context, k *cluster, topics []kadm.TopicDetail) (map[string][]describedPartition, error) {
	brokers, err := k.admin.ListBrokers(ctx)
	if err != nil {
		return nil, err
	}
	var set kadm.TopicsSet
	for _, t := range topics {
		set.Add(t.Topic, t.Partitions.Numbers()...)
	}
	moving, err := k.admin.ListPartitionReassignments(ctx, set)
	if errors.Is(err, kerr.UnsupportedVersion) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		moving, err = nil, nil // a cluster that doesn't tell: shown is what would be if nothing moved, as with Kafka
	}
	if err != nil {
		return nil, err
	}
	eligible, err := c.eligibleLeaders(ctx, k, topics)
	if err != nil {
		return nil, err
	}
	all := map[string][]describedPartition{}
	for _, t := range topics {
		for _, p := range t.Partitions.Sorted() {
			d := describedPartition{number: p.Partition, leader: p.Leader, replicas: p.Replicas, isr: p.ISR, leaderIsHere: slices.Contains(brokers.NodeIDs(), p.Leader)}
			if m, ok := moving[t.Topic][p.Partition]; ok {
				d.moving, d.adding, d.removing = true, m.AddingReplicas, m.RemovingReplicas
			}
			if e, ok := eligible[t.Topic][p.Partition]; ok {
				d.knowsELR, d.elr, d.lastELR = true, e.EligibleLeaderReplicas, e.LastKnownELR
			}
			all[t.Topic] = append(all[t.Topic], d)
		}
	}
	return all, nil
}

type eligibility = kmsg.DescribeTopicPartitionsResponseTopicPartition

// eligibleLeaders asks with DescribeTopicPartitions (KIP-966), page after page. Clusters that don't know it give nothing.
func (c *call) eligibleLeaders(ctx context.Context, k *cluster, topics []kadm.TopicDetail) (map[string]map[int32]eligibility, error) {
	versions, err := k.admin.ApiVersions(ctx)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrDescribeTopicPartitionsRequest()
	for _, v := range versions {
		if _, known := v.KeyMaxVersion(request.Key()); v.Err == nil && !known {
			return nil, nil
		}
	}
	for _, t := range topics {
		one := kmsg.NewDescribeTopicPartitionsRequestTopic()
		one.Topic = t.Topic
		request.Topics = append(request.Topics, one)
	}
	request.ResponsePartitionLimit = int32(c.number("partition-size-limit-per-response"))
	all := map[string]map[int32]eligibility{}
	for {
		response, err := request.RequestWith(ctx, k.Client)
		if err != nil {
			return nil, err
		}
		for _, t := range response.Topics {
			if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
				return nil, said(err, "")
			}
			name := unnil(t.Topic)
			if all[name] == nil {
				all[name] = map[int32]eligibility{}
			}
			for _, p := range t.Partitions {
				all[name][p.Partition] = p
			}
		}
		next := response.NextCursor
		if next == nil || request.Cursor != nil && request.Cursor.Topic == next.Topic && request.Cursor.Partition >= next.Partition {
			return all, nil // no page goes back, whatever a broker says
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = next.Topic, next.Partition
		request.Cursor = &cursor
	}
}

// describeTopic prints one topic, as far as the options want it.
func (c *call) describeTopic(t kadm.TopicDetail, partitions []describedPartition, configs []kadm.Config) {
	var own []string
	minISR := 1
	for _, one := range configs {
		if one.Source.String() != "DEFAULT_CONFIG" {
			own = append(own, one.Key+"="+javaText(one.Value))
		}
		if one.Key == "min.insync.replicas" {
			minISR, _ = strconv.Atoi(one.MaybeValue())
		}
	}
	if c.count(partitionReports()...) == 0 && (!c.has("topics-with-overrides") || len(own) > 0) {
		factor := 0
		if len(partitions) > 0 {
			factor = partitions[0].factor()
		}
		id := ""
		if t.ID != (kadm.TopicID{}) {
			id = "\tTopicId: " + base64.RawURLEncoding.EncodeToString(t.ID[:])
		}
		fmt.Fprintf(c.Out, "Topic: %s%s\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s\n", t.Topic, id, len(partitions), factor, strings.Join(own, ","))
	}
	if c.has("topics-with-overrides") {
		return
	}
	for _, p := range partitions {
		if c.reported(p, minISR) {
			fmt.Fprintln(c.Out, p.text(t.Topic))
		}
	}
}

// reported says whether the options want the partition shown.
func (c *call) reported(p describedPartition, minISR int) bool {
	return c.count(partitionReports()...) == 0 ||
		c.has("under-replicated-partitions") && p.factor() > len(p.isr) ||
		c.has("unavailable-partitions") && (p.leader < 0 || !p.leaderIsHere) ||
		c.has("under-min-isr-partitions") && (p.leader < 0 || len(p.isr) < minISR) ||
		c.has("at-min-isr-partitions") && len(p.isr) == minISR
}

func (p describedPartition) text(topic string) string {
	leader := "none"
	if p.leader >= 0 {
		leader = strconv.Itoa(int(p.leader))
	}
	text := fmt.Sprintf("\tTopic: %s\tPartition: %d\tLeader: %s\tReplicas: %s\tIsr: %s", topic, p.number, leader, joined(p.replicas), joined(p.isr))
	if p.moving {
		text += fmt.Sprintf("\tAdding Replicas: %s\tRemoving Replicas: %s", joined(p.adding), joined(p.removing))
	}
	if !p.knowsELR {
		return text + "\tElr: N/A\tLastKnownElr: N/A"
	}
	return text + "\tElr: " + joined(p.elr) + "\tLastKnownElr: " + joined(p.lastELR)
}

func joined(ids []int32) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ",")
}

// javaText is a text as Java prints it, where there may be none.
func javaText(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}
