package state

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Op is one change of a [State], as a line of text or a snapshot holds it: exactly one field is set. Its JSON is part of file formats
// (membership/standalone/FORMAT.md lists the members): what is added here is a new version of those.
type Op struct {
	ClusterID       string    `json:"cluster_id,omitempty"`
	ControllerEpoch int32     `json:"controller_epoch,omitempty"` // a controller was elected under it
	BrokerEpoch     int64     `json:"broker_epoch,omitempty"`     // a broker registered under it
	LastBrokerID    int32     `json:"last_broker_id,omitempty"`   // generated for a broker without an id
	NextProducerID  int64     `json:"next_producer_id,omitempty"` // ids below it are given away
	ConfigVersion   int64     `json:"config_version,omitempty"`   // versions up to it were given to configurations
	Topic           *TopicOp  `json:"topic,omitempty"`
	State           *StateOp  `json:"state,omitempty"`
	Config          *ConfigOp `json:"config,omitempty"`
	Deleting        string    `json:"deleting,omitempty"` // the name of a topic that is marked for deletion
	Removed         string    `json:"removed,omitempty"`  // the name of a topic that is gone, with its states and configuration
}

// TopicOp creates a topic, or replaces the assignments of one.
type TopicOp struct {
	Name       string         `json:"name"`
	ID         string         `json:"id"` // 22 characters of URL-safe base64
	Partitions []AssignmentOp `json:"partitions"`
}

// AssignmentOp is an [election.Assignment].
type AssignmentOp struct {
	Replicas []int32 `json:"replicas"`
	Adding   []int32 `json:"adding,omitempty"`
	Removing []int32 `json:"removing,omitempty"`
}

// StateOp replaces the state of a partition, whose partition epoch rises.
type StateOp struct {
	Topic           string  `json:"topic"`
	Partition       int32   `json:"partition"`
	Leader          int32   `json:"leader"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             []int32 `json:"isr"`
	ControllerEpoch int32   `json:"controller_epoch"`
	Recovering      bool    `json:"recovering,omitempty"`
	PartitionEpoch  int32   `json:"partition_epoch"`
}

// ConfigOp replaces the configuration of an entity. No values remove it.
type ConfigOp struct {
	Kind    string            `json:"kind"` // topic or broker
	Name    string            `json:"name"` // empty with broker: the default of all
	Values  map[string]string `json:"values,omitempty"`
	Version int64             `json:"version"`
}

// Entity is whose configuration it is; its kind is 0 when the operation has none that there is.
func (c *ConfigOp) Entity() election.Entity {
	for _, kind := range []election.EntityKind{election.TopicEntity, election.BrokerEntity} {
		if c.Kind == kindName(kind) {
			return election.Entity{Kind: kind, Name: c.Name}
		}
	}
	return election.Entity{Name: c.Name}
}

// Changes gives what watches are to be told of an operation.
func (o *Op) Changes() []election.Change {
	switch {
	case o.Topic != nil:
		return []election.Change{{Kind: election.TopicChanged, Topic: o.Topic.Name}}
	case o.State != nil:
		return []election.Change{{Kind: election.TopicChanged, Topic: o.State.Topic}}
	case o.Deleting != "":
		return []election.Change{{Kind: election.TopicChanged, Topic: o.Deleting}}
	case o.Removed != "":
		return []election.Change{{Kind: election.TopicChanged, Topic: o.Removed},
			{Kind: election.ConfigChanged, Entity: election.Entity{Kind: election.TopicEntity, Name: o.Removed}}}
	case o.Config != nil:
		return []election.Change{{Kind: election.ConfigChanged, Entity: o.Config.Entity()}}
	}
	return nil
}

func kindName(k election.EntityKind) string {
	switch k {
	case election.TopicEntity:
		return "topic"
	case election.BrokerEntity:
		return "broker"
	}
	return ""
}

// NewTopicOp describes a topic and its assignments. It shares nothing with what it is given.
func NewTopicOp(name string, id election.TopicID, as []election.Assignment) *TopicOp {
	o := &TopicOp{Name: name, ID: EncodeID(id), Partitions: make([]AssignmentOp, len(as))}
	for i, a := range as {
		o.Partitions[i] = AssignmentOp{Replicas: slices.Clone(a.Replicas), Adding: slices.Clone(a.Adding), Removing: slices.Clone(a.Removing)}
	}
	return o
}

// Assignments gives the assignments, which share their slices with the operation.
func (o *TopicOp) Assignments() []election.Assignment {
	as := make([]election.Assignment, len(o.Partitions))
	for i, a := range o.Partitions {
		as[i] = election.Assignment{Replicas: a.Replicas, Adding: a.Adding, Removing: a.Removing}
	}
	return as
}

// NewStateOp describes a partition's state. It shares nothing with what it is given.
func NewStateOp(topic string, partition int32, s election.PartitionState) *StateOp {
	return &StateOp{Topic: topic, Partition: partition, Leader: s.Leader, LeaderEpoch: s.LeaderEpoch, ISR: slices.Clone(s.ISR),
		ControllerEpoch: s.ControllerEpoch, Recovering: s.Recovering, PartitionEpoch: s.PartitionEpoch}
}

// PartitionState gives the state, which shares its slice with the operation.
func (o *StateOp) PartitionState() election.PartitionState {
	return election.PartitionState{Leader: o.Leader, LeaderEpoch: o.LeaderEpoch, ISR: o.ISR,
		ControllerEpoch: o.ControllerEpoch, Recovering: o.Recovering, PartitionEpoch: o.PartitionEpoch}
}

// NewConfigOp describes a configuration. It shares nothing with what it is given. An entity of no kind that there is comes
// with an empty kind.
func NewConfigOp(c election.Config) *ConfigOp {
	return &ConfigOp{Kind: kindName(c.Entity.Kind), Name: c.Entity.Name, Values: maps.Clone(c.Values), Version: c.Version}
}

// EncodeID writes 16 bytes as Kafka writes its ids: 22 characters of URL-safe base64.
func EncodeID(id election.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ErrID says that a text is no id.
var ErrID = errors.New("not an id")

// DecodeID reads what EncodeID writes. Zeros stand for no id, and are refused.
func DecodeID(text string) (id election.TopicID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%w: %q", ErrID, text)
	}
	copy(id[:], b)
	if id == (election.TopicID{}) {
		return id, fmt.Errorf("%w: zeros", ErrID)
	}
	return id, nil
}
