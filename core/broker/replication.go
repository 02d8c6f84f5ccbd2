package broker

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/broker/internal/replication"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// startReplication makes what fetches for the followers on this broker, and what brings the in-sync sets of its leaders to the controller.
// It comes after the logs and so stops before they close.
func (b *Broker) startReplication(context.Context) error {
	c := &b.o.Config
	versions := peers.VersionsOf(c.InterBrokerProtocol)
	b.followers = replication.New(replication.Options{
		BrokerID:          b.id,
		BrokerEpoch:       b.epoch.Load,
		Partitions:        b.partitions,
		Dial:              b.peers.Dial,
		Versions:          replication.Versions{Fetch: versions.Fetch, ListOffsets: versions.ListOffsets, OffsetForLeaderEpoch: versions.OffsetForLeaderEpoch},
		Fetchers:          int(c.NumReplicaFetchers),
		MaxWait:           c.ReplicaFetchWaitMax,
		MinBytes:          int(c.ReplicaFetchMinBytes),
		MaxBytes:          int(c.ReplicaFetchResponseMaxBytes),
		PartitionMaxBytes: int(c.ReplicaFetchMaxBytes),
		Backoff:           c.ReplicaFetchBackoff,
		Timeout:           c.ReplicaSocketTimeout,
		Quota:             b.fetched,
		Now:               time.Now,
		Logger:            b.logger(loggerReplication),
		Journal:           b.journal,
	})
	b.onStop("stop fetching from leaders", b.followers.Stop)
	b.throttle(c)

	channel := b.newChannel()
	b.isr = replication.NewISR(replication.ISROptions{
		BrokerID:    b.id,
		BrokerEpoch: b.epoch.Load,
		Partitions:  b.partitions,
		Do:          channel.Do,
		LagTimeMax:  c.ReplicaLagTimeMax,
		Logger:      b.logger(loggerReplication),
	})
	b.onStop("close the channel for in-sync sets", func(context.Context) error { return channel.Close() })
	b.onStop("stop keeping in-sync sets", b.isr.Stop)
	b.isr.Start()
	return nil
}

// isAlive says whether a broker is registered, as far as this one was told.
func (b *Broker) isAlive(broker int32) bool {
	_, alive := b.cache.Snapshot().Broker(broker)
	return alive
}

// throttled says whether what this broker sends for a replica, and what it fetches for it, counts for the quotas (KIP-73).
func (b *Broker) throttled(id partition.ID) (leader, follower bool) {
	c := b.configs.TopicConfig(id.Topic)
	return c.LeaderThrottledReplicas.Has(id.Partition, b.id), c.FollowerThrottledReplicas.Has(id.Partition, b.id)
}

// throttle puts the rates of the quotas in force.
func (b *Broker) throttle(c *kafka.BrokerConfig) {
	b.sent.SetRate(c.LeaderReplicationThrottledRate)
	b.fetched.SetRate(c.FollowerReplicationThrottledRate)
}
