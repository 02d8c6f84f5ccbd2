package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/cluster"
)

// The configurations that bound what replication may take (KIP-73): rates of brokers, and of topics the replicas that they
// hold for.
const (
	leaderRate       = "leader.replication.throttled.rate"
	followerRate     = "follower.replication.throttled.rate"
	leaderReplicas   = "leader.replication.throttled.replicas"
	followerReplicas = "follower.replication.throttled.replicas"
)

// throttle bounds what the changes will take: rate bytes a second for each broker, as leader of what is copied away and as
// follower of what is copied to it.
func throttle(ctx context.Context, admin *kadm.Client, s cluster.State, changes []cluster.Change, rate int64) error {
	value := strconv.FormatInt(rate, 10)
	var ids []int32
	for _, b := range s.Brokers {
		ids = append(ids, b.ID)
	}
	rates := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: leaderRate, Value: &value}, {Op: kadm.SetConfig, Name: followerRate, Value: &value}}
	if err := brokerConfigs(ctx, admin, rates, ids); err != nil {
		return err
	}
	leaders, followers := throttled(changes)
	for _, topic := range slices.Sorted(maps.Keys(leaders)) {
		l, f := strings.Join(leaders[topic], ","), strings.Join(followers[topic], ",")
		lists := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: leaderReplicas, Value: &l}, {Op: kadm.SetConfig, Name: followerReplicas, Value: &f}}
		if err := topicConfigs(ctx, admin, lists, []string{topic}); err != nil {
			return err
		}
	}
	return nil
}

// throttled are PARTITION:BROKER, by topic: the replicas that may be copied from, and the new ones. A change that copies
// nothing is in neither.
func throttled(changes []cluster.Change) (leaders, followers map[string][]string) {
	leaders, followers = map[string][]string{}, map[string][]string{}
	for _, c := range changes {
		if c.Moved() == 0 {
			continue
		}
		for _, r := range c.From {
			leaders[c.Topic] = append(leaders[c.Topic], fmt.Sprintf("%d:%d", c.Number, r))
		}
		for _, r := range c.Replicas {
			if !slices.Contains(c.From, r) {
				followers[c.Topic] = append(followers[c.Topic], fmt.Sprintf("%d:%d", c.Number, r))
			}
		}
	}
	return leaders, followers
}

// unthrottle takes the bounds away, of all topics and brokers that have them.
func unthrottle(ctx context.Context, admin *kadm.Client) error {
	s, err := cluster.Read(ctx, admin)
	if err != nil {
		return err
	}
	topics := s.Topics()
	if len(topics) > 0 {
		described, err := admin.DescribeTopicConfigs(ctx, topics...)
		if err != nil {
			return fmt.Errorf("look for throttles: %w", err)
		}
		topics = nil
		for _, t := range described {
			if has(t, "DYNAMIC_TOPIC_CONFIG", leaderReplicas, followerReplicas) {
				topics = append(topics, t.Name)
			}
		}
	}
	if len(topics) > 0 {
		if err := topicConfigs(ctx, admin, deletions(leaderReplicas, followerReplicas), topics); err != nil {
			return err
		}
	}
	var ids []int32
	for _, b := range s.Brokers {
		described, err := admin.DescribeBrokerConfigs(ctx, b.ID)
		if err != nil {
			return fmt.Errorf("look for throttles: %w", err)
		}
		if len(described) > 0 && has(described[0], "DYNAMIC_BROKER_CONFIG", leaderRate, followerRate) {
			ids = append(ids, b.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return brokerConfigs(ctx, admin, deletions(leaderRate, followerRate), ids)
}

// has says whether one of the configurations was set at that place.
func has(r kadm.ResourceConfig, source string, names ...string) bool {
	return slices.ContainsFunc(r.Configs, func(c kadm.Config) bool {
		return slices.Contains(names, c.Key) && c.Source.String() == source
	})
}

func deletions(names ...string) (configs []kadm.AlterConfig) {
	for _, n := range names {
		configs = append(configs, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: n})
	}
	return configs
}

func topicConfigs(ctx context.Context, admin *kadm.Client, configs []kadm.AlterConfig, topics []string) error {
	return altered(admin.AlterTopicConfigs(ctx, configs, topics...))
}

func brokerConfigs(ctx context.Context, admin *kadm.Client, configs []kadm.AlterConfig, ids []int32) error {
	return altered(admin.AlterBrokerConfigs(ctx, configs, ids...))
}

func altered(answers kadm.AlterConfigsResponses, err error) error {
	if err != nil {
		return fmt.Errorf("change throttles: %w", err)
	}
	for _, one := range answers {
		if one.Err != nil {
			return fmt.Errorf("change throttles of %s: %w", one.Name, detailed(one.Err, one.ErrMessage))
		}
	}
	return nil
}
