package controller

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/election"
)

// Event is something that happened. Commands are events with results: pointers, whose result fields the machine fills in by
// the time when nothing is left to do.
type Event interface{ event() }

// Loaded begins a term of office with all that there is.
type Loaded struct {
	Epoch   int32
	Topics  []election.Topic
	Brokers []election.Broker
}

// BrokersChanged says who is alive now.
type BrokersChanged struct{ Brokers []election.Broker }

// TopicsChanged brings topics that somebody else may have changed: Topics has those of Names that exist.
type TopicsChanged struct {
	Names  []string
	Topics []election.Topic
}

// Delivered is a broker's answer to a push, or the error for which there is none.
type Delivered struct {
	Broker   int32
	Epoch    int64 // the broker epoch that the push was meant for
	Request  kmsg.Request
	Response kmsg.Response // nil: the broker is gone
}

// CreateTopics creates topics. Each has a result.
type CreateTopics struct {
	Topics       []NewTopic
	ValidateOnly bool
	Results      []CreatedTopic
}

// NewTopic is a topic to create. Either counts or Manual say what its partitions are.
type NewTopic struct {
	Name              string
	Partitions        int32 // -1: the broker's default
	ReplicationFactor int16 // -1: the broker's default
	AtMostAlive       bool  // a replication factor above the number of living brokers means that number
	Manual            []ManualPartition
	Config            map[string]string
}

// ManualPartition is one partition of an assignment that was made by hand.
type ManualPartition struct {
	Partition int32
	Replicas  []int32
}

// CreatedTopic is a topic as it was created, or would have been, or why not.
type CreatedTopic struct {
	Err               error
	ID                election.TopicID // zero when only validated
	Partitions        int32
	ReplicationFactor int16
}

// CreatePartitions adds partitions to topics. Each has a result.
type CreatePartitions struct {
	Topics       []MorePartitions
	ValidateOnly bool
	Results      []error
}

// MorePartitions is a topic that is to have Count partitions in all.
type MorePartitions struct {
	Topic  string
	Count  int32
	Manual [][]int32 // replicas of each new partition; nil: the controller chooses
}

// DeleteTopics deletes topics, by name. Each has a result. They are marked for ever when it is nil; their replicas go when
// their brokers are alive.
type DeleteTopics struct {
	Topics  []string
	Results []error
}

// ElectLeaders elects leaders. Each partition has a result: nil when it has a new leader.
type ElectLeaders struct {
	Unclean    bool
	Partitions []PartitionID
	Results    []error
}

// PartitionID names a partition.
type PartitionID struct {
	Topic     string
	Partition int32
}

// AlterReassignments begins and cancels moves of partitions. Each has a result.
type AlterReassignments struct {
	Partitions []Reassignment
	SameFactor bool // refuse targets with another number of replicas (KIP-860)
	Results    []error
}

// Reassignment is where a partition is to go; nil Replicas: back to where it comes from.
type Reassignment struct {
	PartitionID
	Replicas []int32
}

// AlterPartition is a leader's wish for another ISR (KIP-497).
type AlterPartition struct {
	Request  *kmsg.AlterPartitionRequest
	Response *kmsg.AlterPartitionResponse
}

// ConfigChanged says that what Rules.Unclean answers may have changed, for a topic or, with "", for all.
type ConfigChanged struct{ Topic string }

// Rebalance says that it is time to see whether leadership is balanced. It comes at intervals.
type Rebalance struct{}

// LogDirFailed says that a broker reported that one of its log directories failed. It is asked which replicas that concerns.
type LogDirFailed struct{ Broker int32 }

// ControlledShutdown is a broker's wish to stop. Remaining are the partitions that it still leads though others have replicas.
type ControlledShutdown struct {
	Broker    int32
	Epoch     int64
	Err       error
	Remaining []PartitionID
}

// ListReassignments lists the moves that are going on: of these partitions or, for nil, of all; by topic and number.
type ListReassignments struct {
	Partitions []PartitionID
	Ongoing    []OngoingReassignment
}

// The answers to writes.
type (
	topicsWritten struct {
		WriteTopics
		errs []error
	}
	assignmentsWritten struct {
		WriteAssignments
		errs []error
	}
	statesWritten struct {
		WriteStates
		results []election.PartitionResult
	}
	marksWritten struct {
		WriteMarks
		errs []error
	}
	removalsWritten struct {
		WriteRemovals
		errs []error
	}
	marksTakenBack struct{}
)

func (Loaded) event()              {}
func (BrokersChanged) event()      {}
func (TopicsChanged) event()       {}
func (Delivered) event()           {}
func (*CreateTopics) event()       {}
func (*CreatePartitions) event()   {}
func (*DeleteTopics) event()       {}
func (*ElectLeaders) event()       {}
func (*AlterReassignments) event() {}
func (*AlterPartition) event()     {}
func (*ControlledShutdown) event() {}
func (*ListReassignments) event()  {}
func (ConfigChanged) event()       {}
func (LogDirFailed) event()        {}
func (Rebalance) event()           {}
func (topicsWritten) event()       {}
func (assignmentsWritten) event()  {}
func (statesWritten) event()       {}
func (marksWritten) event()        {}
func (removalsWritten) event()     {}
func (marksTakenBack) event()      {}

// Effect is something to do.
type Effect interface{ effect() }

// WriteTopics creates topics in the metadata. slots have the places of their results in a command.
type WriteTopics struct {
	Topics []election.NewTopic
	slots  []*error
}

// WriteAssignments sets assignments in the metadata.
type WriteAssignments struct {
	Assignments []election.TopicAssignment
	slots       [][]*error // for each topic the results of the commands that changed it
}

// WriteStates updates partition states in the metadata.
type WriteStates struct {
	Updates []election.PartitionUpdate
	whys    []why
}

// why is what a write of a state was for.
type why struct {
	slot  *error // of the command that asked for it; nil when none did
	alter *kmsg.AlterPartitionResponseTopicPartition
}

// WriteMarks marks topics for deletion in the metadata.
type WriteMarks struct {
	Topics []string
	slots  []*error
}

// WriteRemovals removes topics from the metadata.
type WriteRemovals struct{ Topics []string }

// TakeMarksBack takes marks for deletion away that somebody else has set in the metadata though deletion is disabled.
type TakeMarksBack struct{ Topics []string }

// Reread reads topics from the metadata; TopicsChanged answers it.
type Reread struct{ Topics []string }

// Push sends a control request to a living broker; Delivered answers it, now or later. Pushes to one broker keep their order.
type Push struct {
	Broker  int32
	Epoch   int64 // the broker epoch that it is meant for
	Request kmsg.Request
}

// Note asks for events to be remembered. Nothing answers it.
type Note struct{ Events []journal.Event }

func (WriteTopics) effect()      {}
func (WriteAssignments) effect() {}
func (WriteStates) effect()      {}
func (WriteMarks) effect()       {}
func (WriteRemovals) effect()    {}
func (TakeMarksBack) effect()    {}
func (Reread) effect()           {}
func (Push) effect()             {}
func (Note) effect()             {}
