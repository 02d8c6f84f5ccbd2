package peers

import "github.com/barnabas-mq/barnabas/core/config/kafka"

// Versions are those of the requests that brokers send one another without asking first what the other one speaks: that is
// agreed upon by inter.broker.protocol.version, which all brokers of a cluster have in common.
type Versions struct {
	// From the controller to brokers.
	LeaderAndISR, UpdateMetadata, StopReplica int16
	// From followers to leaders. A fetch of topics without ids has version 12 at most.
	Fetch, ListOffsets, OffsetForLeaderEpoch int16
	// From transaction coordinators to leaders.
	WriteTxnMarkers int16
	// From leaders to transaction coordinators, to verify; 0 where coordinators don't know of that.
	AddPartitionsToTxn int16
}

// VersionsOf gives the versions that a protocol version stands for, as in Apache Kafka's MetadataVersion and
// ControllerChannelManager.
func VersionsOf(v kafka.ProtocolVersion) Versions {
	// Steps ascend: the last one that v has reached counts.
	type since struct {
		from    kafka.ProtocolVersion
		version int16
	}
	step := func(first int16, steps ...since) int16 {
		for _, s := range steps {
			if v >= s.from {
				first = s.version
			}
		}
		return first
	}
	return Versions{
		LeaderAndISR:   step(5, since{kafka.Protocol(3, 2, 0), 6}, since{kafka.Protocol(3, 4, 0), 7}),
		UpdateMetadata: step(7, since{kafka.Protocol(3, 4, 0), 8}),
		StopReplica:    step(3, since{kafka.Protocol(3, 4, 0), 4}),
		Fetch: step(12, since{kafka.Protocol(3, 1, 0), 13}, since{kafka.Protocol(3, 5, 0), 14}, since{kafka.Protocol(3, 5, 1), 15},
			since{kafka.Protocol(3, 7, 4), 16}, since{kafka.Protocol(3, 9, 0), 17}),
		ListOffsets:          step(6, since{kafka.Protocol(3, 0, 1), 7}, since{kafka.Protocol(3, 5, 0), 8}, since{kafka.Protocol(3, 9, 0), 9}),
		OffsetForLeaderEpoch: 4,
		WriteTxnMarkers:      1,
		AddPartitionsToTxn:   step(0, since{kafka.Protocol(3, 6, 0), 4}, since{kafka.Protocol(3, 8, 0), 5}),
	}
}
