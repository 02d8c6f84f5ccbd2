package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// ListTopics is what [election.Metadata]'s Topics returns: copies.
func (s *State) ListTopics(names ...string) []election.Topic {
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(s.Topics))
	} else {
		names = slices.Clone(names)
	}
	slices.Sort(names)
	var topics []election.Topic
	for _, name := range slices.Compact(names) {
		if t := s.Topics[name]; t != nil {
			topics = append(topics, cloneTopic(t))
		}
	}
	return topics
}

// ListConfigs is what [election.Metadata]'s Configs returns: copies.
func (s *State) ListConfigs(entities ...election.Entity) []election.Config {
	if len(entities) == 0 {
		entities = sortedEntities(s.Configs)
	}
	var configs []election.Config
	for _, e := range entities {
		c := s.Configs[e]
		configs = append(configs, election.Config{Entity: e, Values: maps.Clone(c.Values), Version: c.Version})
	}
	return configs
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

func sortedEntities(configs map[election.Entity]election.Config) []election.Entity {
	return slices.SortedFunc(maps.Keys(configs), func(a, b election.Entity) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}
