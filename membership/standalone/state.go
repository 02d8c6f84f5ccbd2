package standalone

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// op is one change of the state, as a line of the file holds it: exactly one field is set. FORMAT.md describes them.
type op struct {
	ClusterID       string    `json:"cluster_id,omitempty"`
	ControllerEpoch int32     `json:"controller_epoch,omitempty"`
	BrokerEpoch     int64     `json:"broker_epoch,omitempty"`
	LastBrokerID    int32     `json:"last_broker_id,omitempty"`
	NextProducerID  int64     `json:"next_producer_id,omitempty"`
	ConfigVersion   int64     `json:"config_version,omitempty"`
	Topic           *topicOp  `json:"topic,omitempty"`
	State           *stateOp  `json:"state,omitempty"`
	Config          *configOp `json:"config,omitempty"`
	Deleting        string    `json:"deleting,omitempty"`
	Removed         string    `json:"removed,omitempty"`
}

// topicOp creates a topic, or replaces the assignments of one.
type topicOp struct {
	Name       string         `json:"name"`
	ID         string         `json:"id"`
	Partitions []assignmentOp `json:"partitions"`
}

type assignmentOp struct {
	Replicas []int32 `json:"replicas"`
	Adding   []int32 `json:"adding,omitempty"`
	Removing []int32 `json:"removing,omitempty"`
}

// stateOp replaces the state of a partition.
type stateOp struct {
	Topic           string  `json:"topic"`
	Partition       int32   `json:"partition"`
	Leader          int32   `json:"leader"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             []int32 `json:"isr"`
	ControllerEpoch int32   `json:"controller_epoch"`
	Recovering      bool    `json:"recovering,omitempty"`
	PartitionEpoch  int32   `json:"partition_epoch"`
}

// configOp replaces the configuration of an entity.
type configOp struct {
	Kind    string            `json:"kind"`
	Name    string            `json:"name"`
	Values  map[string]string `json:"values,omitempty"`
	Version int64             `json:"version"`
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

func (c *configOp) entity() election.Entity {
	if c.Kind == "broker" {
		return election.Entity{Kind: election.BrokerEntity, Name: c.Name}
	}
	return election.Entity{Kind: election.TopicEntity, Name: c.Name}
}

// state is what the file says.
type state struct {
	ClusterID       string
	ControllerEpoch int32
	BrokerEpoch     int64
	LastBrokerID    int32
	NextProducerID  int64
	ConfigVersion   int64 // the last one given to any entity
	Topics          map[string]*election.Topic
	Configs         map[election.Entity]election.Config
}

func newState() *state {
	return &state{Topics: map[string]*election.Topic{}, Configs: map[election.Entity]election.Config{}}
}

var errOp = errors.New("operation does not fit the state before it")

// apply makes an operation part of the state. It checks what the state's own sense depends on, so that a file that was
// tampered with is refused and never crashes the broker.
func (s *state) apply(o *op) error {
	switch {
	case o.ClusterID != "":
		s.ClusterID = o.ClusterID
	case o.ControllerEpoch != 0:
		return raise(&s.ControllerEpoch, o.ControllerEpoch, "controller epoch")
	case o.BrokerEpoch != 0:
		return raise(&s.BrokerEpoch, o.BrokerEpoch, "broker epoch")
	case o.LastBrokerID != 0:
		return raise(&s.LastBrokerID, o.LastBrokerID, "broker id")
	case o.NextProducerID != 0:
		return raise(&s.NextProducerID, o.NextProducerID, "producer id")
	case o.ConfigVersion != 0:
		return raise(&s.ConfigVersion, o.ConfigVersion, "config version")
	case o.Topic != nil:
		return s.applyTopic(o.Topic)
	case o.State != nil:
		return s.applyState(o.State)
	case o.Config != nil:
		return s.applyConfig(o.Config)
	case o.Deleting != "":
		t := s.Topics[o.Deleting]
		if t == nil {
			return fmt.Errorf("%w: marks topic %q, which does not exist", errOp, o.Deleting)
		}
		t.Deleting = true
	case o.Removed != "":
		delete(s.Topics, o.Removed)
		delete(s.Configs, election.Entity{Kind: election.TopicEntity, Name: o.Removed})
	default:
		return fmt.Errorf("%w: it says nothing", errOp)
	}
	return nil
}

func raise[N int32 | int64](to *N, n N, what string) error {
	if n <= *to {
		return fmt.Errorf("%w: %s %d after %d", errOp, what, n, *to)
	}
	*to = n
	return nil
}

func (s *state) applyTopic(o *topicOp) error {
	id, err := decodeID(o.ID)
	if err != nil || o.Name == "" || len(o.Partitions) == 0 {
		return fmt.Errorf("%w: topic %q with id %q and %d partitions", errOp, o.Name, o.ID, len(o.Partitions))
	}
	t := s.Topics[o.Name]
	if t == nil {
		t = &election.Topic{Name: o.Name, ID: id}
		s.Topics[o.Name] = t
	}
	if t.ID != id || len(o.Partitions) < len(t.Partitions) {
		return fmt.Errorf("%w: topic %q changes its id or loses partitions", errOp, o.Name)
	}
	for i, a := range o.Partitions {
		if i == len(t.Partitions) {
			t.Partitions = append(t.Partitions, election.Partition{})
		}
		t.Partitions[i].Assignment = election.Assignment{Replicas: a.Replicas, Adding: a.Adding, Removing: a.Removing}
	}
	return nil
}

func (s *state) applyState(o *stateOp) error {
	t := s.Topics[o.Topic]
	if t == nil || o.Partition < 0 || int(o.Partition) >= len(t.Partitions) {
		return fmt.Errorf("%w: state of %q partition %d, which does not exist", errOp, o.Topic, o.Partition)
	}
	p := &t.Partitions[o.Partition]
	if o.PartitionEpoch < 0 || p.State != nil && o.PartitionEpoch <= p.State.PartitionEpoch {
		return fmt.Errorf("%w: partition epoch %d of %q partition %d does not rise", errOp, o.PartitionEpoch, o.Topic, o.Partition)
	}
	p.State = &election.PartitionState{Leader: o.Leader, LeaderEpoch: o.LeaderEpoch, ISR: o.ISR,
		ControllerEpoch: o.ControllerEpoch, Recovering: o.Recovering, PartitionEpoch: o.PartitionEpoch}
	return nil
}

func (s *state) applyConfig(o *configOp) error {
	e := o.entity()
	if kindName(e.Kind) != o.Kind || o.Version < 1 {
		return fmt.Errorf("%w: config of kind %q, version %d", errOp, o.Kind, o.Version)
	}
	if e.Kind == election.TopicEntity && s.Topics[e.Name] == nil {
		return fmt.Errorf("%w: config of topic %q, which does not exist", errOp, e.Name)
	}
	s.ConfigVersion = max(s.ConfigVersion, o.Version)
	if len(o.Values) == 0 {
		delete(s.Configs, e)
		return nil
	}
	s.Configs[e] = election.Config{Entity: e, Values: o.Values, Version: o.Version}
	return nil
}

// dump gives operations that lead from an empty state to this one, in an order that is always the same.
func (s *state) dump(yield func(op) bool) {
	emit := func(set bool, o op) bool { return !set || yield(o) }
	if !emit(s.ClusterID != "", op{ClusterID: s.ClusterID}) || !emit(s.ControllerEpoch > 0, op{ControllerEpoch: s.ControllerEpoch}) ||
		!emit(s.BrokerEpoch > 0, op{BrokerEpoch: s.BrokerEpoch}) || !emit(s.LastBrokerID > 0, op{LastBrokerID: s.LastBrokerID}) ||
		!emit(s.NextProducerID > 0, op{NextProducerID: s.NextProducerID}) || !emit(s.ConfigVersion > 0, op{ConfigVersion: s.ConfigVersion}) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Topics)) {
		t := s.Topics[name]
		if !yield(op{Topic: topicToOp(t.Name, t.ID, assignments(t))}) {
			return
		}
		for i := range t.Partitions {
			if st := t.Partitions[i].State; st != nil && !yield(op{State: stateToOp(name, int32(i), *st)}) {
				return
			}
		}
		if t.Deleting && !yield(op{Deleting: name}) {
			return
		}
	}
	for _, e := range sortedEntities(s.Configs) {
		c := s.Configs[e]
		if !yield(op{Config: &configOp{Kind: kindName(e.Kind), Name: e.Name, Values: c.Values, Version: c.Version}}) {
			return
		}
	}
}

func sortedEntities(configs map[election.Entity]election.Config) []election.Entity {
	return slices.SortedFunc(maps.Keys(configs), compareEntities)
}

func compareEntities(a, b election.Entity) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

func assignments(t *election.Topic) []election.Assignment {
	as := make([]election.Assignment, len(t.Partitions))
	for i := range as {
		as[i] = t.Partitions[i].Assignment
	}
	return as
}

func topicToOp(name string, id election.TopicID, as []election.Assignment) *topicOp {
	o := &topicOp{Name: name, ID: encodeID(id), Partitions: make([]assignmentOp, len(as))}
	for i, a := range as {
		o.Partitions[i] = assignmentOp{Replicas: slices.Clone(a.Replicas), Adding: slices.Clone(a.Adding), Removing: slices.Clone(a.Removing)}
	}
	return o
}

func stateToOp(topic string, partition int32, s election.PartitionState) *stateOp {
	return &stateOp{Topic: topic, Partition: partition, Leader: s.Leader, LeaderEpoch: s.LeaderEpoch, ISR: slices.Clone(s.ISR),
		ControllerEpoch: s.ControllerEpoch, Recovering: s.Recovering, PartitionEpoch: s.PartitionEpoch}
}

func encodeID(id election.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

func decodeID(text string) (id election.TopicID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%w: %q is no id", errOp, text)
	}
	copy(id[:], b)
	if id == (election.TopicID{}) {
		return id, fmt.Errorf("%w: an id of zeros", errOp)
	}
	return id, nil
}
