package election

import "context"

// Requests is what reaches the controller through the coordination instead of a connection: tools of older days write what they
// ask for where the cluster's metadata is kept, and a broker says there that it has lost a log directory.
//
// A coordination that nobody else writes to has only the latter.
type Requests interface {
	// List returns what is asked for and not done, in an order that stays the same.
	//
	//  11.1  What makes no sense (garbage, a negative partition, no replicas) isn't returned. The coordination logs it and
	//        takes it away when it can't be part of a later request.
	List(ctx context.Context) ([]Request, error)

	// Watch begins a watch over List. Its changes are of kind RequestsChanged.
	Watch(ctx context.Context) (Watch, error)

	// Done takes requests away that were carried out or refused.
	//
	//  11.2  One that isn't there any more, or was replaced by another for the same partition, is done without error, and
	//        the other stays.
	Done(ctx context.Context, controllerEpoch int32, requests []Request) ([]error, error)

	// ReportDirFailure says that a broker has lost a log directory: a DirFailed request. The broker itself calls it; it
	// carries no controller epoch.
	ReportDirFailure(ctx context.Context, brokerID int32) error

	// Unmark takes marks for deletion back that others have set and the controller doesn't act on (delete.topic.enable=false).
	//
	//  11.3  A topic that doesn't exist or isn't marked is unmarked without error. Not for topics whose removal has begun.
	Unmark(ctx context.Context, controllerEpoch int32, topics []string) ([]error, error)
}

// RequestKind says what is asked of the controller.
type RequestKind int8

const (
	// Reassign: a partition is to have other replicas (Kafka's /admin/reassign_partitions, before KIP-455). It stays until the
	// reassignment is complete, so that the next controller sees it too.
	Reassign RequestKind = iota + 1
	// ElectPreferred: a partition is to be led by its preferred replica (/admin/preferred_replica_election, before KIP-183).
	ElectPreferred
	// DirFailed: a broker has lost a log directory, and is to be asked which replicas it lost (KIP-112).
	DirFailed
)

// Request is one thing that is asked of the controller. Two are the same when their fields are equal.
type Request struct {
	Kind      RequestKind
	Topic     string  // of Reassign and ElectPreferred
	Partition int32   // likewise
	Replicas  []int32 // of Reassign
	Broker    int32   // of DirFailed
	ID        string  // of DirFailed: which of several reports; opaque
}
