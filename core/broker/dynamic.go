package broker

import (
	"context"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// This file puts in force those properties of the broker itself that may be changed while it runs (KIP-226). What topics
// take from the broker's properties is configChanged's.

// dynamic copies the properties that may be changed while the broker runs from one configuration to another. The others
// stay: whoever wrote to the cluster's metadata by other means than this broker doesn't move its listeners or its data.
func dynamic(to *kafka.BrokerConfig, from kafka.BrokerConfig) {
	to.MaxConnections = from.MaxConnections
	to.MaxConnectionsPerIP = from.MaxConnectionsPerIP
	to.MaxConnectionsPerIPOverrides = from.MaxConnectionsPerIPOverrides
	to.NumReplicaFetchers = from.NumReplicaFetchers
	to.LeaderReplicationThrottledRate = from.LeaderReplicationThrottledRate
	to.FollowerReplicationThrottledRate = from.FollowerReplicationThrottledRate
	to.NumRecoveryThreadsPerDataDir = from.NumRecoveryThreadsPerDataDir
	to.ProducerIDExpiration = from.ProducerIDExpiration
	to.LogCleanerThreads = from.LogCleanerThreads
	to.LogCleanerDedupeBufferSize = from.LogCleanerDedupeBufferSize
	to.LogCleanerIOBufferLoadFactor = from.LogCleanerIOBufferLoadFactor
	to.LogCleanerIOBufferSize = from.LogCleanerIOBufferSize
	to.LogCleanerIOMaxBytesPerSecond = from.LogCleanerIOMaxBytesPerSecond
	to.LogCleanerBackoff = from.LogCleanerBackoff
	to.TransactionPartitionVerification = from.TransactionPartitionVerification
}

// current gives what the properties come to now. What was kept and isn't valid, which only somebody else can have
// written, is told and left out as a whole.
func (b *Broker) current() (kafka.BrokerConfig, bool) {
	now, err := b.configs.Layers().BrokerConfig()
	if err != nil {
		b.log.Warn("kept properties of the broker that are not valid are left out", "err", err)
	}
	return now, err == nil
}

// takeKept makes the rooms start with what was changed in an earlier life.
func (b *Broker) takeKept() {
	if now, ok := b.current(); ok {
		dynamic(&b.o.Config, now)
	}
}

// reconfigure puts a change in force. Before the broker serves it does nothing: serve calls it then.
func (b *Broker) reconfigure() {
	if !b.serving.Load() {
		return
	}
	now, ok := b.current()
	if !ok {
		return
	}
	b.logs.SetProducerExpiration(now.ProducerIDExpiration)
	b.logs.SetCleaner(cleanerOptions(&now))
	b.throttle(&now)
	b.followers.SetFetchers(int(now.NumReplicaFetchers))
	b.transactions.SetVerify(now.TransactionPartitionVerification)
	b.server.SetLimits(b.limits(context.Background(), &now))
}

// lookup is how long the names in max.connections.per.ip.overrides may take to be found, all together.
const lookup = 2 * time.Second

// limits gives the limits on connections. A host name stands for all its addresses, as they are now.
func (b *Broker) limits(ctx context.Context, c *kafka.BrokerConfig) wire.Limits {
	ctx, cancel := context.WithTimeout(ctx, lookup)
	defer cancel()
	perIP := make(map[string]int, len(c.MaxConnectionsPerIPOverrides))
	for host, n := range c.MaxConnectionsPerIPOverrides {
		if _, err := netip.ParseAddr(host); err == nil {
			perIP[host] = int(n)
			continue
		}
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			b.log.Warn("a host in max.connections.per.ip.overrides is not found and has no limit of its own", "host", host, "err", err)
		}
		for _, address := range addresses {
			perIP[address] = int(n)
		}
	}
	return wire.Limits{MaxConnections: int(c.MaxConnections), MaxConnectionsPerIP: int(c.MaxConnectionsPerIP), PerIP: perIP}
}

// maxIdle turns a negative time, Kafka's way to say "for ever", into the longest there is.
func maxIdle(d time.Duration) time.Duration {
	if d < 0 {
		return math.MaxInt64
	}
	return d
}
