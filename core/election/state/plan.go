package state

import (
	"fmt"
	"maps"
	"math"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/core/election"
)

// This file plans the writes of election.Metadata and election.Requests. Each method gives the operations that do the write, and the
// results of its items in the order given; it changes nothing and keeps nothing of what it is given. Whether the controller's epoch
// still holds is asked before.

// producerIDs is how many producer ids a block holds, as in Kafka.
const producerIDs = 1000

// firstBrokerID is where ids for brokers without one begin: Kafka's reserved.broker.max.id + 1.
const firstBrokerID = 1001

// CreateTopics plans clauses 5.
func (s *State) CreateTopics(topics []election.NewTopic) (ops []Op, results []error) {
	results = make([]error, len(topics))
	seen, version := map[string]bool{}, s.ConfigVersion
	for i, t := range topics {
		switch {
		case t.Name == "" || t.ID == election.TopicID{} || len(t.Partitions) == 0 || !IsText(t.Name, t.Config):
			results[i] = fmt.Errorf("%w: topic %q with %d partitions", election.ErrInvalid, t.Name, len(t.Partitions))
		case len(t.Config) > 0 && version == math.MaxInt64:
			results[i] = fmt.Errorf("%w: no versions of configurations are left", election.ErrInvalid)
		case s.Topics[t.Name] != nil || seen[t.Name]:
			results[i] = fmt.Errorf("%w: %q", election.ErrTopicExists, t.Name)
		default:
			seen[t.Name] = true
			ops = append(ops, Op{Topic: NewTopicOp(t.Name, t.ID, t.Partitions)})
			if len(t.Config) > 0 {
				version++
				ops = append(ops, Op{Config: &ConfigOp{Kind: "topic", Name: t.Name, Values: maps.Clone(t.Config), Version: version}})
			}
		}
	}
	return ops, results
}

// IsText says whether a name and a configuration are UTF-8, which is all that JSON can keep (0.7).
func IsText(name string, config map[string]string) bool {
	for k, v := range config {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return false
		}
	}
	return utf8.ValidString(name)
}

// SetAssignments plans clauses 6.
func (s *State) SetAssignments(assignments []election.TopicAssignment) (ops []Op, results []error) {
	results = make([]error, len(assignments))
	counts := map[string]int{}
	for i, a := range assignments {
		t := s.Topics[a.Topic]
		if t == nil || t.ID != a.ID {
			results[i] = fmt.Errorf("%w: %q", election.ErrUnknownTopic, a.Topic)
			continue
		}
		if have := max(counts[a.Topic], len(t.Partitions)); len(a.Partitions) < have {
			results[i] = fmt.Errorf("%w: %d partitions for topic %q, which has %d", election.ErrInvalid, len(a.Partitions), a.Topic, have)
			continue
		}
		counts[a.Topic] = len(a.Partitions)
		ops = append(ops, Op{Topic: NewTopicOp(a.Topic, a.ID, a.Partitions)})
	}
	return ops, results
}

// UpdatePartitions plans clauses 7.
func (s *State) UpdatePartitions(updates []election.PartitionUpdate) (ops []Op, results []election.PartitionResult) {
	type key struct {
		topic     string
		partition int32
	}
	results = make([]election.PartitionResult, len(updates))
	epochs := map[key]int32{} // of partitions that this call writes
	for i, u := range updates {
		t := s.Topics[u.Topic]
		if t == nil {
			results[i].Err = fmt.Errorf("%w: %q", election.ErrUnknownTopic, u.Topic)
			continue
		}
		if u.Partition < 0 || int(u.Partition) >= len(t.Partitions) {
			results[i].Err = fmt.Errorf("%w: %q partition %d", election.ErrUnknownPartition, u.Topic, u.Partition)
			continue
		}
		k := key{u.Topic, u.Partition}
		have, ok := epochs[k]
		if !ok {
			if have = -1; t.Partitions[u.Partition].State != nil {
				have = t.Partitions[u.Partition].State.PartitionEpoch
			}
		}
		if u.State.PartitionEpoch != have {
			results[i].Err = fmt.Errorf("%w: %q partition %d is at partition epoch %d, not %d",
				election.ErrConflict, u.Topic, u.Partition, have, u.State.PartitionEpoch)
			continue
		}
		if have == math.MaxInt32 {
			results[i].Err = fmt.Errorf("%w: no partition epochs are left for %q partition %d", election.ErrInvalid, u.Topic, u.Partition)
			continue
		}
		st := u.State
		st.PartitionEpoch++
		epochs[k] = st.PartitionEpoch
		results[i].PartitionEpoch = st.PartitionEpoch
		ops = append(ops, Op{State: NewStateOp(u.Topic, u.Partition, st)})
	}
	return ops, results
}

// MarkDeleted plans clause 8.1.
func (s *State) MarkDeleted(topics []string) (ops []Op, results []error) {
	results = make([]error, len(topics))
	for i, name := range topics {
		switch t := s.Topics[name]; {
		case t == nil:
			results[i] = fmt.Errorf("%w: %q", election.ErrUnknownTopic, name)
		case !t.Deleting:
			ops = append(ops, Op{Deleting: name})
		}
	}
	return ops, results
}

// RemoveTopics plans clauses 8.2 and 8.3.
func (s *State) RemoveTopics(topics []string) (ops []Op, results []error) {
	results = make([]error, len(topics))
	for i, name := range topics {
		switch t := s.Topics[name]; {
		case t == nil:
		case !t.Deleting:
			results[i] = fmt.Errorf("%w: topic %q is not marked for deletion", election.ErrInvalid, name)
		default:
			ops = append(ops, Op{Removed: name})
		}
	}
	return ops, results
}

// Unmark plans clause 11.3. It has no operation of its own, for the formats that hold operations are complete: the topic is removed and
// comes again without its mark.
func (s *State) Unmark(topics []string) (ops []Op) {
	seen := map[string]bool{}
	for _, name := range topics {
		t := s.Topics[name]
		if t == nil || !t.Deleting || seen[name] {
			continue
		}
		seen[name] = true
		ops = append(ops, Op{Removed: name}, Op{Topic: NewTopicOp(name, t.ID, assignments(t))})
		for i, p := range t.Partitions {
			if p.State != nil {
				ops = append(ops, Op{State: NewStateOp(name, int32(i), *p.State)})
			}
		}
		if c, ok := s.Configs[election.Entity{Kind: election.TopicEntity, Name: name}]; ok {
			ops = append(ops, Op{Config: NewConfigOp(c)})
		}
	}
	return ops
}

// SetConfigs plans clauses 9.
func (s *State) SetConfigs(configs []election.Config) (ops []Op, results []error) {
	results = make([]error, len(configs))
	last, versions := s.ConfigVersion, map[election.Entity]int64{}
	for i, c := range configs {
		have, ok := versions[c.Entity]
		if !ok {
			have = s.Configs[c.Entity].Version
		}
		kind := kindName(c.Entity.Kind)
		switch {
		case kind == "" || c.Entity.Kind == election.TopicEntity && c.Entity.Name == "" || !IsText(c.Entity.Name, c.Values):
			results[i] = fmt.Errorf("%w: entity of kind %d named %q", election.ErrInvalid, c.Entity.Kind, c.Entity.Name)
		case c.Entity.Kind == election.TopicEntity && s.Topics[c.Entity.Name] == nil:
			results[i] = fmt.Errorf("%w: %q", election.ErrUnknownTopic, c.Entity.Name)
		case c.Version != have:
			results[i] = fmt.Errorf("%w: the configuration of %s %q is at version %d, not %d", election.ErrConflict, kind, c.Entity.Name, have, c.Version)
		case last == math.MaxInt64:
			results[i] = fmt.Errorf("%w: no versions of configurations are left", election.ErrInvalid)
		default:
			last++
			versions[c.Entity] = last
			if len(c.Values) == 0 {
				versions[c.Entity] = 0
			}
			ops = append(ops, Op{Config: &ConfigOp{Kind: kind, Name: c.Entity.Name, Values: maps.Clone(c.Values), Version: last}})
		}
	}
	return ops, results
}

// ProducerIDs plans clauses 10.
func (s *State) ProducerIDs(brokerID int32, from int64) ([]Op, election.ProducerIDBlock, error) {
	if brokerID < 0 || from < 0 {
		return nil, election.ProducerIDBlock{}, fmt.Errorf("%w: producer ids from %d for broker %d", election.ErrInvalid, from, brokerID)
	}
	first := max(from, s.NextProducerID)
	if first > math.MaxInt64-producerIDs {
		return nil, election.ProducerIDBlock{}, fmt.Errorf("%w: no producer ids are left", election.ErrUnavailable)
	}
	return []Op{{NextProducerID: first + producerIDs}}, election.ProducerIDBlock{First: first, Count: producerIDs}, nil
}

// NewBrokerID plans clause 2.2.
func (s *State) NewBrokerID() ([]Op, int32, error) {
	if s.LastBrokerID == math.MaxInt32 {
		return nil, 0, fmt.Errorf("%w: no broker ids are left", election.ErrUnavailable)
	}
	id := max(s.LastBrokerID+1, firstBrokerID)
	return []Op{{LastBrokerID: id}}, id, nil
}

// NewControllerEpoch plans clause 1.1.
func (s *State) NewControllerEpoch() ([]Op, int32, error) {
	if s.ControllerEpoch == math.MaxInt32 {
		return nil, 0, fmt.Errorf("%w: no controller epochs are left", election.ErrUnavailable)
	}
	return []Op{{ControllerEpoch: s.ControllerEpoch + 1}}, s.ControllerEpoch + 1, nil
}

// NewBrokerEpoch plans clause 2.3.
func (s *State) NewBrokerEpoch() ([]Op, int64, error) {
	if s.BrokerEpoch == math.MaxInt64 {
		return nil, 0, fmt.Errorf("%w: no broker epochs are left", election.ErrUnavailable)
	}
	return []Op{{BrokerEpoch: s.BrokerEpoch + 1}}, s.BrokerEpoch + 1, nil
}

// Identify plans clause 2.1: the cluster's id, which is proposed when it has none yet. To propose nothing is ErrInvalid then.
func (s *State) Identify(proposed string) ([]Op, string, error) {
	switch {
	case !utf8.ValidString(proposed):
		return nil, "", fmt.Errorf("%w: cluster id %q", election.ErrInvalid, proposed)
	case s.ClusterID != "":
		return nil, s.ClusterID, nil
	case proposed == "":
		return nil, "", fmt.Errorf("%w: no cluster id", election.ErrInvalid)
	}
	return []Op{{ClusterID: proposed}}, proposed, nil
}
