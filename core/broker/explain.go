package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/explain"
	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// errNotYet is the answer to whoever asks why before the broker serves.
var errNotYet = errors.New("the broker isn't serving yet: /explain/broker tells what it is at")

// explainGroup tells why a group does what it does.
func (b *Broker) explainGroup(name string) (explain.Explanation, error) {
	if !b.serving.Load() {
		return explain.Explanation{}, errNotYet
	}
	f := explain.GroupFacts{Now: time.Now(), Broker: b.id, Group: name, Shard: -1, Coordinator: -1, Events: b.journal.About(journal.OfGroup(name))}
	if shard, err := b.groups.ShardOf(name); err == nil {
		f.Shard = shard
		f.ShardEvents = b.journal.About(journal.OfShard(shard))
		if topic := b.groups.Topic(); topic == "" { // a store without a topic is coordinated by the controller
			f.Coordinator, _ = b.cache.Snapshot().Controller()
		} else {
			f.Coordinator, _ = b.leaderOf(partition.ID{Topic: topic, Partition: shard})
		}
	}
	var err error
	switch f.Status, err = b.groups.Status(name); {
	case err == nil:
		f.Coordinator = b.id
	case errors.Is(err, group.ErrLoading):
		f.Coordinator, f.Loading = b.id, true
	case errors.Is(err, group.ErrNotCoordinator):
		if f.Coordinator == b.id {
			f.Loading = true // the metadata says so already; the shard is about to be read
		}
	default:
		return explain.Explanation{}, fmt.Errorf("group %q: %w", name, err)
	}
	return explain.Group(f), nil
}

// explainPartition tells why a partition has the leader that it has, and why it is under-replicated if it is.
func (b *Broker) explainPartition(topic string, number int32) (explain.Explanation, error) {
	if !b.serving.Load() {
		return explain.Explanation{}, errNotYet
	}
	cluster := b.cache.Snapshot()
	config := b.configs.TopicConfig(topic)
	f := explain.PartitionFacts{
		Now: time.Now(), Broker: b.id, Topic: topic, Partition: number, Alive: b.isAlive,
		LagMax: b.o.Config.ReplicaLagTimeMax, MinISR: int(config.MinInsyncReplicas), Unclean: config.UncleanLeaderElection,
		AutoRebalance: rebalance(&b.o.Config), Imbalance: b.o.Config.LeaderImbalancePercentage,
		Events: b.journal.About(journal.OfPartition(topic, number)), Brokers: map[int32][]journal.Entry{},
	}
	f.Controller, _ = cluster.Controller()
	if t, ok := cluster.Topic(topic); ok {
		f.TopicPartitions = len(t.Partitions)
		f.Known, _ = t.Partition(number)
	}
	if f.Known != nil {
		for _, id := range f.Known.Replicas {
			f.Brokers[id] = b.journal.About(journal.OfBroker(id))
		}
	}
	id := partition.ID{Topic: topic, Partition: number}
	if p, err := b.partitions.Get(id); err == nil {
		standing := p.Standing()
		f.Here = &standing
		f.Throttled, _ = b.throttled(id)
	}
	f.FetchThrottled = func(broker int32) bool { return config.FollowerThrottledReplicas.Has(number, broker) }
	return explain.Partition(f), nil
}

// explainBroker tells why this broker isn't ready, or what is worth a look.
func (b *Broker) explainBroker() explain.Explanation {
	f := explain.BrokerFacts{Broker: -1, Health: b.facts(true)}
	for _, e := range b.journal.Latest(0) {
		switch subject := e.Event.About(); subject.Kind {
		case journal.Plugin:
			f.Plugins = append(f.Plugins, e)
		case journal.Broker, journal.Shard:
			f.Events = append(f.Events, e)
		}
	}
	if b.serving.Load() {
		f.Broker = b.id
	}
	return explain.Broker(f)
}
