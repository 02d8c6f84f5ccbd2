package controller

import (
	"strconv"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// InternalTopic is one of the topics that brokers keep for themselves, as the broker's properties say it is to be created.
// Where fewer brokers live than it is to have replicas, it gets as many as live: a broker that is alone never lacks replicas
// for its own topics.
func InternalTopic(name string, l kafka.Layers) NewTopic {
	prefix := "offsets.topic."
	config := map[string]string{"cleanup.policy": "compact", "compression.type": "producer"}
	if name == TransactionsTopic {
		prefix = "transaction.state.log."
		config["compression.type"] = "uncompressed"
		config["unclean.leader.election.enable"] = "false"
		config["min.insync.replicas"], _, _ = l.Get(prefix + "min.isr")
	}
	config["segment.bytes"], _, _ = l.Get(prefix + "segment.bytes")
	partitions, _, _ := l.Get(prefix + "num.partitions")
	replicas, _, _ := l.Get(prefix + "replication.factor")
	return NewTopic{Name: name, Partitions: int32(number(partitions)), ReplicationFactor: int16(number(replicas)), AtMostAlive: true, Config: config}
}

// number reads a property that was checked when the broker started.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}
