package partition

import "errors"

// Sentinel errors. The broker maps them to Kafka's codes in one place (internal/api); errors of core/log and core/record pass
// through wrapped.
var (
	// ErrUnknownPartition says that this broker hosts no such replica.
	ErrUnknownPartition = errors.New("this broker hosts no replica of the partition")
	// ErrUnknownTopicID says that this broker hosts no topic with that id.
	ErrUnknownTopicID = errors.New("this broker hosts no topic with that id")
	// ErrInconsistentTopicID says that the topic goes by another id here than the caller believes.
	ErrInconsistentTopicID = errors.New("the topic has another id")
	// ErrNotLeader says that only the leader may do what was asked, and this replica isn't it (any more).
	ErrNotLeader = errors.New("this replica is not the leader")
	// ErrNotFollower says that this replica doesn't follow, or not under the leader epoch that the caller means (any more).
	ErrNotFollower = errors.New("this replica does not follow under that leader epoch")
	// ErrMoved says that a follower's log doesn't end where the caller believes (any more).
	ErrMoved = errors.New("the replica's log end has moved")
	// ErrFencedLeaderEpoch says that the caller knows an older leader epoch than ours: it must refresh its metadata.
	ErrFencedLeaderEpoch = errors.New("the leader epoch is older than the current one")
	// ErrUnknownLeaderEpoch says that the caller knows a newer leader epoch than ours: we must catch up, it should try again.
	ErrUnknownLeaderEpoch = errors.New("the leader epoch is newer than the current one")
	// ErrNotEnoughReplicas says that fewer replicas are in sync than min.insync.replicas asks for. Nothing was appended.
	ErrNotEnoughReplicas = errors.New("fewer in-sync replicas than required")
	// ErrNotEnoughReplicasAfterAppend says that the data was appended and committed, but by fewer in-sync replicas than
	// min.insync.replicas asks for.
	ErrNotEnoughReplicasAfterAppend = errors.New("appended, but to fewer in-sync replicas than required")
	// ErrOffline says that the log dir of the replica has failed.
	ErrOffline = errors.New("the log dir of the replica is offline")
	// ErrOffsetNotAvailable says that a new leader doesn't know yet how far its predecessor had committed.
	ErrOffsetNotAvailable = errors.New("the high watermark is not known yet under the new leader epoch")
	// ErrUnsupportedTimestamp says that a ListOffsets timestamp is a special value nobody has defined.
	ErrUnsupportedTimestamp = errors.New("unknown special timestamp")
	// ErrOffsetOutOfRange says that DeleteRecords asks for more than the high watermark allows, or for a negative offset.
	ErrOffsetOutOfRange = errors.New("offset is outside of what may be deleted")
	// ErrPolicy says that the topic's cleanup policy forbids the request.
	ErrPolicy = errors.New("the topic's cleanup policy does not allow this")
)
