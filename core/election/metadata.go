package election

import "context"

// Metadata keeps what outlives the brokers. Reads may be done by anybody; writes carry the epoch of the controller on whose
// behalf they are done (0.6).
//
// Writes of several items are not atomic as a whole unless a clause says so: each item is done or not, and has a result of
// its own in the order given. An error of the call itself means that nothing was done, but for 0.5. Items may be many
// thousands; an implementation makes that cost few round trips or syncs, not one for each.
type Metadata interface {
	// Topics returns the topics with these names, those that exist; without names, all. By ascending name.
	//
	//  4.1  Each topic is consistent in itself: a state belongs to a partition of the assignment.
	Topics(ctx context.Context, names ...string) ([]Topic, error)

	// Configs returns the configurations of these entities, in the order given; without entities, all that aren't empty,
	// by ascending kind and name.
	//
	//  4.2  An entity that has none comes with no values and version 0.
	Configs(ctx context.Context, entities ...Entity) ([]Config, error)

	// Watch begins a watch over Topics, over Configs, or over both: its changes are of the kinds given, TopicChanged and
	// ConfigChanged; without kinds, of both. To watch topics may cost much where there are many: only a controller needs it.
	Watch(ctx context.Context, kinds ...ChangeKind) (Watch, error)

	// CreateTopics creates topics, with their configurations, without partition states.
	//
	//  5.1  ErrTopicExists for a name that exists, as well when it is marked for deletion; also for the second of two items
	//       with one name.
	//  5.2  A topic and its configuration appear together. A configuration left over from a topic of the same name that
	//       was deleted doesn't shine through.
	//  5.3  ErrInvalid for an empty name, a zero id, no partitions, or partitions that aren't numbered 0 to n-1.
	CreateTopics(ctx context.Context, controllerEpoch int32, topics []NewTopic) ([]error, error)

	// SetAssignments replaces the assignments of topics: more partitions, or other replicas.
	//
	//  6.1  ErrUnknownTopic when there is no such topic with that id; ErrInvalid when a partition that exists is missing,
	//       or the numbers aren't 0 to n-1: partitions never go away.
	//  6.2  States stay as they are.
	//  6.3  A topic that has no id, which only others can have made, gets the one of the item.
	SetAssignments(ctx context.Context, controllerEpoch int32, assignments []TopicAssignment) ([]error, error)

	// UpdatePartitions writes partition states, each if its partition epoch is still the one given in the item; it returns
	// the partition's new epoch.
	//
	//  7.1  PartitionEpoch -1 in an item asks for a partition that has no state yet; its new epoch is 0. Otherwise the new
	//       epoch is the old one plus 1. Epochs of a partition only rise as long as the topic lives.
	//  7.2  ErrConflict when the epoch is another, or for -1 when there is a state; ErrUnknownTopic, ErrUnknownPartition.
	//       The state is as it was.
	//  7.3  The states come back from Topics as written, with the new epoch.
	UpdatePartitions(ctx context.Context, controllerEpoch int32, updates []PartitionUpdate) ([]PartitionResult, error)

	// MarkDeleted marks topics for deletion. A mark stays until the topic is removed: it survives controllers.
	//
	//  8.1  ErrUnknownTopic for a name that doesn't exist. A topic that is marked is marked again without error.
	MarkDeleted(ctx context.Context, controllerEpoch int32, topics []string) ([]error, error)

	// RemoveTopics removes topics for good: states, assignment, configuration, mark. Called when no replica is left.
	//
	//  8.2  Whatever happens in between, a topic that is partly removed is still marked, and removed by calling again.
	//  8.3  A topic that doesn't exist is removed without error. One that isn't marked gives ErrInvalid.
	RemoveTopics(ctx context.Context, controllerEpoch int32, topics []string) ([]error, error)

	// SetConfigs replaces the configurations of entities.
	//
	//  9.1  ErrConflict unless the item's version is the entity's (4.2). The new version is another one, never used before
	//       for that entity while it has values.
	//  9.2  ErrUnknownTopic for a topic that doesn't exist. Brokers needn't exist.
	//  9.3  No values at all removes the configuration.
	SetConfigs(ctx context.Context, controllerEpoch int32, configs []Config) ([]error, error)

	// ProducerIDs takes a block of producer ids for a broker. It carries no controller epoch: any broker may.
	//
	//  10.1  No id is ever given twice, to anybody. Ids are never negative. A block that isn't used is lost.
	//  10.2  The block begins at from or above, and so do all later ones. Callers give 0, but when they know of ids that were
	//        given by a coordination whose records are lost. ErrInvalid for a negative one.
	ProducerIDs(ctx context.Context, brokerID int32, from int64) (ProducerIDBlock, error)
}

// TopicID is a topic's 16-byte identity. It changes when a topic is deleted and created again. All zero is none.
type TopicID [16]byte

// Topic is all that is kept about a topic, but for its configuration.
type Topic struct {
	Name       string
	ID         TopicID     // zero only for a topic that others made without one
	Deleting   bool        // marked for deletion
	Partitions []Partition // by number, from 0
}

// Partition is one partition's assignment, and its state when it has one.
type Partition struct {
	Assignment
	State *PartitionState // nil until the controller has made it
}

// Assignment says which brokers have a replica. The first is the preferred leader.
type Assignment struct {
	// Replicas are all of them, those that are being added or removed too.
	Replicas []int32
	// Adding and Removing are not empty while the partition is being reassigned (KIP-455).
	Adding, Removing []int32
}

// PartitionState is what the controller has decided about a partition.
type PartitionState struct {
	Leader          int32   // NoBroker when it has none
	LeaderEpoch     int32   // rises with each change by a controller
	ISR             []int32 // the replicas in sync
	ControllerEpoch int32   // of the controller that wrote the state
	Recovering      bool    // elected uncleanly, and not recovered from that yet (KIP-704)
	PartitionEpoch  int32   // rises by one with each write
}

// NewTopic is a topic to create.
type NewTopic struct {
	Name       string
	ID         TopicID
	Partitions []Assignment
	Config     map[string]string // may be empty
}

// TopicAssignment replaces the assignment of a topic.
type TopicAssignment struct {
	Topic      string
	ID         TopicID
	Partitions []Assignment
}

// PartitionUpdate replaces the state of a partition, if State.PartitionEpoch is its partition epoch.
type PartitionUpdate struct {
	Topic     string
	Partition int32
	State     PartitionState
}

// PartitionResult is the outcome of a PartitionUpdate: the new partition epoch, or why it wasn't done.
type PartitionResult struct {
	PartitionEpoch int32
	Err            error
}

// EntityKind is what kind of thing a configuration belongs to.
type EntityKind int8

const (
	// TopicEntity: a topic, by name.
	TopicEntity EntityKind = iota + 1
	// BrokerEntity: a broker, by decimal id; an empty name is the default for all brokers.
	BrokerEntity
)

// Entity is what a configuration belongs to.
type Entity struct {
	Kind EntityKind
	Name string
}

// Config is the configuration of one entity: only what was set, as text.
type Config struct {
	Entity  Entity
	Values  map[string]string
	Version int64 // opaque; 0 when there is none
}

// ProducerIDBlock is a range of producer ids: First to First+Count-1.
type ProducerIDBlock struct {
	First int64
	Count int32
}
