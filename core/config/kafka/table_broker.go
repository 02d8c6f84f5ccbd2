package kafka

// RackAwareReplicaSelector is the only class that replica.selector.class may name: what it does is built in.
const RackAwareReplicaSelector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

// propertiesGeneral defines the broker properties about
// the broker itself, its topics, replication and the controller.
func propertiesGeneral() []Definition {
	return []Definition{
		{Name: "alter.log.dirs.replication.quota.window.num", Type: Int, Default: "11", Valid: atLeast(1), NoEffect: becauseOnePlace, Doc: "Number of samples kept for the quota on moves between log directories."},
		{Name: "alter.log.dirs.replication.quota.window.size.seconds", Type: Int, Default: "1", Valid: atLeast(1), NoEffect: becauseOnePlace, Doc: "Length of each sample for the quota on moves between log directories, in seconds."},
		{Name: "auto.create.topics.enable", Type: Boolean, Default: "true", Doc: "Whether a topic is created when a client asks for one that does not exist."},
		{Name: "auto.leader.rebalance.enable", Type: Boolean, Default: "true", Doc: "Whether leadership returns to preferred replicas by itself."},
		{Name: "background.threads", Type: Int, Default: "10", Valid: atLeast(1), Mode: ClusterWide, NoEffect: becauseThreads, Doc: "Threads for background work."},
		{Name: "broker.id", Type: Int, Default: "-1", Doc: "Identity of this broker in its cluster; -1 takes the one in the data directory, or a new one."},
		{Name: "broker.id.generation.enable", Type: Boolean, Default: "true", Doc: "Whether a broker without an id gets one of its own accord."},
		{Name: "broker.rack", Type: String, Null: true, Doc: "Rack or zone of this broker."},
		{Name: "control.plane.listener.name", Type: String, Null: true, NoEffect: becauseControl, Doc: "Listener kept for requests of the controller."},
		{Name: "controlled.shutdown.enable", Type: Boolean, Default: "true", Doc: "Whether a broker that stops hands its leaderships over first."},
		{Name: "controlled.shutdown.max.retries", Type: Int, Default: "3", Doc: "How often handing over leaderships is tried."},
		{Name: "controlled.shutdown.retry.backoff.ms", Type: Long, Default: "5000", Doc: "Pause between two tries to hand over leaderships."},
		{Name: "controller.quota.window.num", Type: Int, Default: "11", Valid: atLeast(1), NoEffect: becauseQuota, Doc: "Number of samples kept for the quota on topic changes."},
		{Name: "controller.quota.window.size.seconds", Type: Int, Default: "1", Valid: atLeast(1), NoEffect: becauseQuota, Doc: "Length of each sample for the quota on topic changes, in seconds."},
		{Name: "controller.socket.timeout.ms", Type: Int, Default: "30000", Doc: "Longest wait of the controller for a broker's answer."},
		{Name: "default.replication.factor", Type: Int, Default: "1", Doc: "Replicas of a topic that is created without saying how many."},
		{Name: "delete.records.purgatory.purge.interval.requests", Type: Int, Default: "1", NoEffect: becauseWaits, Doc: "Number of finished DeleteRecords requests after which their waiting list is swept."},
		{Name: "delete.topic.enable", Type: Boolean, Default: "true", Doc: "Whether topics may be deleted."},
		{Name: "leader.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Valid: atLeast(0), Mode: ClusterWide, Internal: true, Doc: "Bytes a second that this broker sends to throttled replicas."},
		{Name: "leader.imbalance.check.interval.seconds", Type: Long, Default: "300", Valid: atLeast(1), Doc: "Time between two checks whether leadership is balanced, in seconds."},
		{Name: "follower.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Valid: atLeast(0), Mode: ClusterWide, Internal: true, Doc: "Bytes a second that throttled replicas on this broker fetch."},
		{Name: "leader.imbalance.per.broker.percentage", Type: Int, Default: "10", Doc: "Share of leaderships away from their preferred broker that is still balanced, in percent."},
		{Name: "min.insync.replicas", Type: Int, Default: "1", Valid: atLeast(1), Mode: ClusterWide, Doc: "Replicas that must be in sync for a write with acks=all to be accepted."},
		{Name: "node.id", Type: Int, Default: "-1", Doc: "Another name of broker.id."},
		{Name: "num.partitions", Type: Int, Default: "1", Valid: atLeast(1), Doc: "Partitions of a topic that is created without saying how many."},
		{Name: "num.recovery.threads.per.data.dir", Type: Int, Default: "1", Valid: atLeast(1), Mode: ClusterWide, Doc: "Logs of a data directory that are recovered at the same time at the start."},
		{Name: "num.replica.alter.log.dirs.threads", Type: Int, Null: true, NoEffect: becauseOnePlace, Doc: "Threads that move replicas between log directories."},
		{Name: "num.replica.fetchers", Type: Int, Default: "1", Mode: ClusterWide, Doc: "Connections to each leader over which replicas are fetched."},
		{Name: "quota.window.num", Type: Int, Default: "11", Valid: atLeast(1), NoEffect: becauseQuota, Doc: "Number of samples kept for client quotas."},
		{Name: "quota.window.size.seconds", Type: Int, Default: "1", Valid: atLeast(1), NoEffect: becauseQuota, Doc: "Length of each sample for client quotas, in seconds."},
		{Name: "replica.fetch.backoff.ms", Type: Int, Default: "1000", Valid: atLeast(0), Doc: "Pause of a replica after a failed fetch."},
		{Name: "replica.fetch.max.bytes", Type: Int, Default: "1048576", Valid: atLeast(0), Doc: "Bytes of a partition that a replica asks for at once."},
		{Name: "replica.fetch.min.bytes", Type: Int, Default: "1", Doc: "Bytes that a replica waits for."},
		{Name: "replica.fetch.response.max.bytes", Type: Int, Default: "10485760", Valid: atLeast(0), Doc: "Bytes that a replica asks for at once, over all partitions."},
		{Name: "replica.fetch.wait.max.ms", Type: Int, Default: "500", Doc: "Longest wait of a replica for new records."},
		{Name: "replica.high.watermark.checkpoint.interval.ms", Type: Long, Default: "5000", Doc: "Time between two writes of the high watermarks."},
		{Name: "replica.lag.time.max.ms", Type: Long, Default: "30000", Doc: "Time after which a replica that has not caught up is no longer in sync."},
		{Name: "replica.selector.class", Type: String, Null: true, Valid: oneOf{RackAwareReplicaSelector}, Doc: "Class that sends consumers to a replica near them."},
		{Name: "replica.socket.receive.buffer.bytes", Type: Int, Default: "65536", NoEffect: becauseBuffer, Doc: "Receive buffer of a replica's connection, in bytes."},
		{Name: "replica.socket.timeout.ms", Type: Int, Default: "30000", Doc: "Longest wait of a replica for its leader's answer."},
		{Name: "replication.quota.window.num", Type: Int, Default: "11", Valid: atLeast(1), NoEffect: becauseSpread, Doc: "Number of samples kept for the replication quota."},
		{Name: "replication.quota.window.size.seconds", Type: Int, Default: "1", Valid: atLeast(1), NoEffect: becauseSpread, Doc: "Length of each sample for the replication quota, in seconds."},
		{Name: "request.timeout.ms", Type: Int, Default: "30000", NoEffect: becauseEach, Doc: "Longest wait of a broker for another's answer."},
		{Name: "reserved.broker.max.id", Type: Int, Default: "1000", Valid: atLeast(0), Doc: "Largest id that may be chosen by hand where ids are generated."},
		{Name: "unclean.leader.election.enable", Type: Boolean, Default: "false", Mode: ClusterWide, Doc: "Whether a replica that is not in sync may become leader, losing records."},
		{Name: "unstable.api.versions.enable", Type: Boolean, Default: "false", Internal: true, NoEffect: becauseUnstable, Doc: "Whether unfinished versions of requests are offered."},
		{Name: "unstable.feature.versions.enable", Type: Boolean, Default: "false", Internal: true, NoEffect: becauseUnstable, Doc: "Whether unfinished versions of features are offered."},
	}
}
