package standalone

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/core/election"
)

// producerIDs is how many producer ids a block holds, as in Kafka.
const producerIDs = 1000

// metadata implements election.Metadata.
type metadata struct{ c *coordination }

func (m metadata) Topics(ctx context.Context, names ...string) ([]election.Topic, error) {
	var topics []election.Topic
	err := m.c.read(ctx, func() {
		if len(names) == 0 {
			names = slices.Collect(maps.Keys(m.c.state.Topics))
		} else {
			names = slices.Clone(names)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if t := m.c.state.Topics[name]; t != nil {
				topics = append(topics, cloneTopic(t))
			}
		}
	})
	return topics, err
}

func cloneTopic(t *election.Topic) election.Topic {
	c := *t
	c.Partitions = make([]election.Partition, len(t.Partitions))
	for i, p := range t.Partitions {
		c.Partitions[i].Assignment = cloneAssignment(p.Assignment)
		if p.State != nil {
			s := *p.State
			s.ISR = slices.Clone(s.ISR)
			c.Partitions[i].State = &s
		}
	}
	return c
}

func cloneAssignment(a election.Assignment) election.Assignment {
	return election.Assignment{Replicas: slices.Clone(a.Replicas), Adding: slices.Clone(a.Adding), Removing: slices.Clone(a.Removing)}
}

func (m metadata) Configs(ctx context.Context, entities ...election.Entity) ([]election.Config, error) {
	var configs []election.Config
	err := m.c.read(ctx, func() {
		if len(entities) == 0 {
			entities = sortedEntities(m.c.state.Configs)
		}
		for _, e := range entities {
			c := m.c.state.Configs[e]
			configs = append(configs, election.Config{Entity: e, Values: maps.Clone(c.Values), Version: c.Version})
		}
	})
	return configs, err
}

func (m metadata) Watch(ctx context.Context, kinds ...election.ChangeKind) (election.Watch, error) {
	if len(kinds) == 0 {
		kinds = []election.ChangeKind{election.TopicChanged, election.ConfigChanged}
	}
	kinds = slices.Clone(kinds)
	return m.c.watch(ctx, func(k election.ChangeKind) bool { return slices.Contains(kinds, k) })
}

func (m metadata) CreateTopics(ctx context.Context, epoch int32, topics []election.NewTopic) ([]error, error) {
	results := make([]error, len(topics))
	err := m.c.controllerWrite(ctx, epoch, func() (ops []op, _ error) {
		st, seen, version := m.c.state, map[string]bool{}, m.c.state.ConfigVersion
		for i, t := range topics {
			switch {
			case t.Name == "" || t.ID == election.TopicID{} || len(t.Partitions) == 0 || !text(t.Name, t.Config):
				results[i] = fmt.Errorf("standalone: %w: topic %q with %d partitions", election.ErrInvalid, t.Name, len(t.Partitions))
			case st.Topics[t.Name] != nil || seen[t.Name]:
				results[i] = fmt.Errorf("standalone: %w: %q", election.ErrTopicExists, t.Name)
			default:
				seen[t.Name] = true
				ops = append(ops, op{Topic: topicToOp(t.Name, t.ID, t.Partitions)})
				if len(t.Config) > 0 {
					version++
					ops = append(ops, op{Config: &configOp{Kind: "topic", Name: t.Name, Values: maps.Clone(t.Config), Version: version}})
				}
			}
		}
		return ops, nil
	})
	return outcome(results, err)
}

// text says whether a name and a configuration are UTF-8, which is all that JSON can keep.
func text(name string, config map[string]string) bool {
	for k, v := range config {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return false
		}
	}
	return utf8.ValidString(name)
}

// outcome gives the results of items when the call as a whole went well.
func outcome[R any](results []R, err error) ([]R, error) {
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (m metadata) SetAssignments(ctx context.Context, epoch int32, assignments []election.TopicAssignment) ([]error, error) {
	results := make([]error, len(assignments))
	err := m.c.controllerWrite(ctx, epoch, func() (ops []op, _ error) {
		counts := map[string]int{}
		for i, a := range assignments {
			t := m.c.state.Topics[a.Topic]
			if t == nil || t.ID != a.ID {
				results[i] = fmt.Errorf("standalone: %w: %q", election.ErrUnknownTopic, a.Topic)
				continue
			}
			if have := max(counts[a.Topic], len(t.Partitions)); len(a.Partitions) < have {
				results[i] = fmt.Errorf("standalone: %w: %d partitions for topic %q, which has %d", election.ErrInvalid, len(a.Partitions), a.Topic, have)
				continue
			}
			counts[a.Topic] = len(a.Partitions)
			ops = append(ops, op{Topic: topicToOp(a.Topic, a.ID, a.Partitions)})
		}
		return ops, nil
	})
	return outcome(results, err)
}

func (m metadata) UpdatePartitions(ctx context.Context, epoch int32, updates []election.PartitionUpdate) ([]election.PartitionResult, error) {
	results := make([]election.PartitionResult, len(updates))
	err := m.c.controllerWrite(ctx, epoch, func() (ops []op, _ error) {
		type key struct {
			topic     string
			partition int32
		}
		epochs := map[key]int32{} // of partitions that this call has written
		for i, u := range updates {
			t := m.c.state.Topics[u.Topic]
			if t == nil {
				results[i].Err = fmt.Errorf("standalone: %w: %q", election.ErrUnknownTopic, u.Topic)
				continue
			}
			if u.Partition < 0 || int(u.Partition) >= len(t.Partitions) {
				results[i].Err = fmt.Errorf("standalone: %w: %q partition %d", election.ErrUnknownPartition, u.Topic, u.Partition)
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
				results[i].Err = fmt.Errorf("standalone: %w: %q partition %d is at partition epoch %d, not %d",
					election.ErrConflict, u.Topic, u.Partition, have, u.State.PartitionEpoch)
				continue
			}
			s := u.State
			s.PartitionEpoch++
			epochs[k] = s.PartitionEpoch
			results[i].PartitionEpoch = s.PartitionEpoch
			ops = append(ops, op{State: stateToOp(u.Topic, u.Partition, s)})
		}
		return ops, nil
	})
	return outcome(results, err)
}

func (m metadata) MarkDeleted(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	results := make([]error, len(topics))
	err := m.c.controllerWrite(ctx, epoch, func() (ops []op, _ error) {
		for i, name := range topics {
			switch t := m.c.state.Topics[name]; {
			case t == nil:
				results[i] = fmt.Errorf("standalone: %w: %q", election.ErrUnknownTopic, name)
			case !t.Deleting:
				ops = append(ops, op{Deleting: name})
			}
		}
		return ops, nil
	})
	return outcome(results, err)
}

func (m metadata) RemoveTopics(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	results := make([]error, len(topics))
	err := m.c.controllerWrite(ctx, epoch, func() (ops []op, _ error) {
		for i, name := range topics {
			switch t := m.c.state.Topics[name]; {
			case t == nil:
			case !t.Deleting:
				results[i] = fmt.Errorf("standalone: %w: topic %q is not marked for deletion", election.ErrInvalid, name)
			default:
				ops = append(ops, op{Removed: name})
			}
		}
		return ops, nil
	})
	return outcome(results, err)
}

func (m metadata) SetConfigs(ctx context.Context, epoch int32, configs []election.Config) ([]error, error) {
	results := make([]error, len(configs))
	err := m.c.controllerWrite(ctx, epoch, func() (ops []op, _ error) {
		last, versions := m.c.state.ConfigVersion, map[election.Entity]int64{}
		for i, c := range configs {
			have, ok := versions[c.Entity]
			if !ok {
				have = m.c.state.Configs[c.Entity].Version
			}
			switch {
			case kindName(c.Entity.Kind) == "" || c.Entity.Kind == election.TopicEntity && c.Entity.Name == "" || !text(c.Entity.Name, c.Values):
				results[i] = fmt.Errorf("standalone: %w: entity of kind %d named %q", election.ErrInvalid, c.Entity.Kind, c.Entity.Name)
			case c.Entity.Kind == election.TopicEntity && m.c.state.Topics[c.Entity.Name] == nil:
				results[i] = fmt.Errorf("standalone: %w: %q", election.ErrUnknownTopic, c.Entity.Name)
			case c.Version != have:
				results[i] = fmt.Errorf("standalone: %w: the configuration of %s %q is at version %d, not %d",
					election.ErrConflict, kindName(c.Entity.Kind), c.Entity.Name, have, c.Version)
			default:
				last++
				versions[c.Entity] = last
				if len(c.Values) == 0 {
					versions[c.Entity] = 0
				}
				ops = append(ops, op{Config: &configOp{Kind: kindName(c.Entity.Kind), Name: c.Entity.Name, Values: maps.Clone(c.Values), Version: last}})
			}
		}
		return ops, nil
	})
	return outcome(results, err)
}

func (m metadata) ProducerIDs(ctx context.Context, brokerID int32, from int64) (election.ProducerIDBlock, error) {
	if brokerID < 0 || from < 0 {
		return election.ProducerIDBlock{}, fmt.Errorf("standalone: %w: producer ids from %d for broker %d", election.ErrInvalid, from, brokerID)
	}
	var block election.ProducerIDBlock
	err := m.c.write(ctx, func() ([]op, error) {
		first := max(from, m.c.state.NextProducerID)
		if first > 1<<63-1-producerIDs {
			return nil, fmt.Errorf("standalone: %w: no producer ids are left", election.ErrUnavailable)
		}
		block = election.ProducerIDBlock{First: first, Count: producerIDs}
		return []op{{NextProducerID: first + producerIDs}}, nil
	}, nil)
	if err != nil {
		return election.ProducerIDBlock{}, err
	}
	return block, nil
}
