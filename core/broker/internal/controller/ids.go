package controller

import (
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Topics that a tool wrote into the coordination by itself have no id: tools from before Apache Kafka 2.8 don't know of ids,
// and write a topic without the one that it had when they add partitions to it. The controller gives them one, and writes it
// down, before it does anything else about them: brokers write it beside their data.

// identify is the id of a topic that was read: for one that has none the one that is known here, or a new one.
func (m *Machine) identify(t *election.Topic) election.TopicID {
	if t.ID != (election.TopicID{}) {
		return t.ID
	}
	m.nameless[t.Name] = true
	if known := m.topics[t.Name]; known != nil {
		return known.id
	}
	return m.rules.NewID()
}

// writeIDs writes down the ids that topics were given here.
func (m *Machine) writeIDs() []Effect {
	var w WriteAssignments
	for _, name := range slices.Sorted(maps.Keys(m.nameless)) {
		t := m.topics[name]
		w.Assignments = append(w.Assignments, election.TopicAssignment{Topic: name, ID: t.id, Partitions: t.assignments()})
		w.slots = append(w.slots, nil)
	}
	clear(m.nameless)
	if len(w.Assignments) == 0 {
		return nil
	}
	return []Effect{w}
}
