// Package state is a kit for coordinations that keep the cluster's metadata themselves: what the contract says about writes, as one
// state machine without I/O, time or goroutines.
//
// A write is planned over a [State] first, which gives the operations that do it and the results of its items, and changes
// nothing; then the operations are applied. In between, who keeps a journal makes them durable. Who replicates the writes
// themselves plans and applies at once: the same writes over the same state give the same operations everywhere.
//
// What isn't its business: who is controller and who is alive, files, and where changes are told.
package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// State is what a cluster keeps for ever. It belongs to one goroutine at a time. Others read its fields; Apply changes them.
type State struct {
	ClusterID       string
	ControllerEpoch int32 // the last one; 0 before the first
	BrokerEpoch     int64
	LastBrokerID    int32
	NextProducerID  int64
	ConfigVersion   int64 // the last one given to any entity
	Topics          map[string]*election.Topic
	Configs         map[election.Entity]election.Config
}

// New knows nothing.
func New() *State {
	return &State{Topics: map[string]*election.Topic{}, Configs: map[election.Entity]election.Config{}}
}

// ErrOp says that an operation doesn't fit the state that it is applied to: nothing that was planned over this state.
var ErrOp = errors.New("operation does not fit the state before it")

// Apply makes an operation part of the state, and keeps its slices and maps. It checks what the state's own sense depends on, so that
// a file that was tampered with is refused (ErrOp) and never crashes the broker. After an error the state is as it was.
func (s *State) Apply(o *Op) error {
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
			return fmt.Errorf("%w: marks topic %q, which does not exist", ErrOp, o.Deleting)
		}
		t.Deleting = true
	case o.Removed != "":
		delete(s.Topics, o.Removed)
		delete(s.Configs, election.Entity{Kind: election.TopicEntity, Name: o.Removed})
	default:
		return fmt.Errorf("%w: it says nothing", ErrOp)
	}
	return nil
}

func raise[N int32 | int64](to *N, n N, what string) error {
	if n <= *to {
		return fmt.Errorf("%w: %s %d after %d", ErrOp, what, n, *to)
	}
	*to = n
	return nil
}

func (s *State) applyTopic(o *TopicOp) error {
	id, err := DecodeID(o.ID)
	if err != nil || o.Name == "" || len(o.Partitions) == 0 {
		return fmt.Errorf("%w: topic %q with id %q and %d partitions", ErrOp, o.Name, o.ID, len(o.Partitions))
	}
	t := s.Topics[o.Name]
	if t != nil && (t.ID != id || len(o.Partitions) < len(t.Partitions)) {
		return fmt.Errorf("%w: topic %q changes its id or loses partitions", ErrOp, o.Name)
	}
	if t == nil {
		t = &election.Topic{Name: o.Name, ID: id}
		s.Topics[o.Name] = t
	}
	for i, a := range o.Partitions {
		if i == len(t.Partitions) {
			t.Partitions = append(t.Partitions, election.Partition{})
		}
		t.Partitions[i].Assignment = election.Assignment{Replicas: a.Replicas, Adding: a.Adding, Removing: a.Removing}
	}
	return nil
}

func (s *State) applyState(o *StateOp) error {
	t := s.Topics[o.Topic]
	if t == nil || o.Partition < 0 || int(o.Partition) >= len(t.Partitions) {
		return fmt.Errorf("%w: state of %q partition %d, which does not exist", ErrOp, o.Topic, o.Partition)
	}
	p := &t.Partitions[o.Partition]
	if o.PartitionEpoch < 0 || p.State != nil && o.PartitionEpoch <= p.State.PartitionEpoch {
		return fmt.Errorf("%w: partition epoch %d of %q partition %d does not rise", ErrOp, o.PartitionEpoch, o.Topic, o.Partition)
	}
	st := o.PartitionState()
	p.State = &st
	return nil
}

func (s *State) applyConfig(o *ConfigOp) error {
	e := o.Entity()
	if e.Kind == 0 || o.Version < 1 {
		return fmt.Errorf("%w: config of kind %q, version %d", ErrOp, o.Kind, o.Version)
	}
	if e.Kind == election.TopicEntity && s.Topics[e.Name] == nil {
		return fmt.Errorf("%w: config of topic %q, which does not exist", ErrOp, e.Name)
	}
	s.ConfigVersion = max(s.ConfigVersion, o.Version)
	if len(o.Values) == 0 {
		delete(s.Configs, e)
		return nil
	}
	s.Configs[e] = election.Config{Entity: e, Values: o.Values, Version: o.Version}
	return nil
}

// Dump gives operations that lead from an empty state to this one, in an order that is always the same. They share the slices and
// maps of configurations and states with it.
func (s *State) Dump(yield func(Op) bool) {
	emit := func(set bool, o Op) bool { return !set || yield(o) }
	if !emit(s.ClusterID != "", Op{ClusterID: s.ClusterID}) || !emit(s.ControllerEpoch > 0, Op{ControllerEpoch: s.ControllerEpoch}) ||
		!emit(s.BrokerEpoch > 0, Op{BrokerEpoch: s.BrokerEpoch}) || !emit(s.LastBrokerID > 0, Op{LastBrokerID: s.LastBrokerID}) ||
		!emit(s.NextProducerID > 0, Op{NextProducerID: s.NextProducerID}) || !emit(s.ConfigVersion > 0, Op{ConfigVersion: s.ConfigVersion}) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Topics)) {
		t := s.Topics[name]
		if !yield(Op{Topic: NewTopicOp(t.Name, t.ID, assignments(t))}) {
			return
		}
		for i := range t.Partitions {
			if st := t.Partitions[i].State; st != nil && !yield(Op{State: NewStateOp(name, int32(i), *st)}) {
				return
			}
		}
		if t.Deleting && !yield(Op{Deleting: name}) {
			return
		}
	}
	for _, e := range sortedEntities(s.Configs) {
		c := s.Configs[e]
		if !yield(Op{Config: &ConfigOp{Kind: kindName(e.Kind), Name: e.Name, Values: c.Values, Version: c.Version}}) {
			return
		}
	}
}

func assignments(t *election.Topic) []election.Assignment {
	as := make([]election.Assignment, len(t.Partitions))
	for i := range as {
		as[i] = t.Partitions[i].Assignment
	}
	return as
}
