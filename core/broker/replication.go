package broker

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/broker/internal/replication"
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
		Now:               time.Now,
		Logger:            b.log,
	})
	b.onStop("stop fetching from leaders", b.followers.Stop)

	channel := b.newChannel()
	b.isr = replication.NewISR(replication.ISROptions{
		BrokerID:    b.id,
		BrokerEpoch: b.epoch.Load,
		Partitions:  b.partitions,
		Do:          channel.Do,
		LagTimeMax:  c.ReplicaLagTimeMax,
		Logger:      b.log,
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
