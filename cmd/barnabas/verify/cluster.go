package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// cluster is what is asked of the cluster and done to its topics.
type cluster struct {
	client *kgo.Client
	admin  *kadm.Client
}

// layout is what Metadata says about the topic.
type layout struct {
	alive      []int32 // the brokers, by id
	partitions []place // by number
}

// place is where a partition is.
type place struct {
	leader   int32
	replicas []int32 // in the order of preference
	inSync   []int32
}

// brokers counts the brokers.
func (c *cluster) brokers(ctx context.Context) (int, error) {
	m, err := c.admin.BrokerMetadata(ctx)
	return len(m.Brokers), err
}

// layout asks for the topic's partitions.
func (c *cluster) layout(ctx context.Context, topic string) (layout, error) {
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, t)
	m, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return layout{}, err
	}
	if len(m.Topics) != 1 {
		return layout{}, fmt.Errorf("topic %s: the answer is about %d topics", topic, len(m.Topics))
	}
	if err := kerr.ErrorForCode(m.Topics[0].ErrorCode); err != nil {
		return layout{}, fmt.Errorf("topic %s: %w", topic, err)
	}
	l := layout{partitions: make([]place, len(m.Topics[0].Partitions))}
	for _, b := range m.Brokers {
		l.alive = append(l.alive, b.NodeID)
	}
	slices.Sort(l.alive)
	for _, p := range m.Topics[0].Partitions {
		if p.Partition < 0 || int(p.Partition) >= len(l.partitions) {
			return layout{}, fmt.Errorf("topic %s: %d partitions, and one of them is %d", topic, len(l.partitions), p.Partition)
		}
		l.partitions[p.Partition] = place{leader: p.Leader, replicas: p.Replicas, inSync: p.ISR}
	}
	return l, nil
}

// settled waits until all partitions have a leader and all replicas that are alive are in sync, and gives the layout; also when ctx
// ends first, if there was any answer.
func (c *cluster) settled(ctx context.Context, topic string) (layout, error) {
	var last layout
	for {
		l, err := c.layout(ctx, topic)
		if err == nil {
			if last = l; l.settled() {
				return l, nil
			}
		}
		if wait(ctx, 200*time.Millisecond) != nil {
			if last.partitions == nil {
				return last, errors.Join(err, ctx.Err())
			}
			return last, nil
		}
	}
}

func (l layout) settled() bool {
	for _, p := range l.partitions {
		if !slices.Contains(l.alive, p.leader) {
			return false
		}
		for _, replica := range p.replicas {
			if slices.Contains(l.alive, replica) && !slices.Contains(p.inSync, replica) {
				return false
			}
		}
	}
	return len(l.partitions) > 0
}

// makeTopic makes the topic, unless there is one of a name that was given. A name of this run's own is nobody else's: when there is such a topic, the answer
// to an attempt that succeeded was lost, as happens when the controller dies before it could give it.
func (c *cluster) makeTopic(ctx context.Context, topic string, o Options) (made bool, err error) {
	configs := map[string]*string{
		"min.insync.replicas": kmsg.StringPtr(strconv.Itoa(o.MinInSync)), "unclean.leader.election.enable": kmsg.StringPtr("false"),
		"retention.ms": kmsg.StringPtr("-1"), "cleanup.policy": kmsg.StringPtr("delete"),
	}
	for name, value := range o.Configs {
		configs[name] = kmsg.StringPtr(value)
	}
	_, err = c.admin.CreateTopic(ctx, o.Partitions, o.Replication, configs, topic)
	switch {
	case errors.Is(err, kerr.TopicAlreadyExists) && o.Topic != "":
		return false, c.suits(ctx, topic)
	case errors.Is(err, kerr.TopicAlreadyExists):
		return true, c.asAsked(ctx, topic, o, configs)
	case err != nil:
		return false, fmt.Errorf("create topic %s: %w", topic, err)
	}
	return true, nil
}

// asAsked says what is different in a topic from what was asked for.
func (c *cluster) asAsked(ctx context.Context, topic string, o Options, configs map[string]*string) error {
	patient, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	l, err := c.settled(patient, topic) // not every broker may know of it yet
	if err != nil {
		return fmt.Errorf("topic %s exists already: %w", topic, err)
	}
	if o.Partitions > 0 && len(l.partitions) != int(o.Partitions) {
		return fmt.Errorf("topic %s exists already, with %d partitions instead of %d", topic, len(l.partitions), o.Partitions)
	}
	for p, place := range l.partitions {
		if o.Replication > 0 && len(place.replicas) != int(o.Replication) {
			return fmt.Errorf("topic %s exists already, with %d replicas of partition %d instead of %d", topic, len(place.replicas), p, o.Replication)
		}
	}
	described, err := c.configs(ctx, topic)
	if err != nil {
		return err
	}
	for name, want := range configs {
		if got := described[name]; got != *want {
			return fmt.Errorf("topic %s exists already, with %s = %q instead of %q", topic, name, got, *want)
		}
	}
	return nil
}

// configs are the effective configurations of a topic.
func (c *cluster) configs(ctx context.Context, topic string) (map[string]string, error) {
	all, err := c.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	described, err := all.On(topic, nil)
	if err = errors.Join(err, described.Err); err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	values := map[string]string{}
	for _, config := range described.Configs {
		values[config.Key] = config.MaybeValue()
	}
	return values, nil
}

// suits says why a topic that was there can't be verified.
func (c *cluster) suits(ctx context.Context, topic string) error {
	configs, err := c.configs(ctx, topic)
	if err != nil {
		return err
	}
	if strings.Contains(configs["cleanup.policy"], "compact") {
		return fmt.Errorf("topic %s is compacted: what is missing there is no fault, so nothing can be verified", topic)
	}
	return nil
}

// ends asks where partitions end for readers. It leaves out those that nobody answers for.
func (c *cluster) ends(ctx context.Context, topic string) map[int32]int64 {
	ends := map[int32]int64{}
	listed, _ := c.admin.ListEndOffsets(ctx, topic) // an error of some shards leaves the others' answers
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err == nil && o.Partition >= 0 {
			ends[o.Partition] = o.Offset
		}
	})
	return ends
}
