package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/election"
)

// A reassignment (KIP-455) has two steps. It begins with an assignment that has the old and the new replicas, the new ones
// first. When all of the target are in sync it ends with a state within the target, then with the assignment that is the
// target. Between any two writes a controller may go; the next one sees which step is due from what was written.

// alterReassignments checks the wishes of a command, and writes the assignments of those that are well.
func (m *Machine) alterReassignments(c *AlterReassignments) []Effect {
	c.Results = make([]error, len(c.Partitions))
	byTopic := map[string][]election.Assignment{}
	slots := map[string][]*error{}
	var order []string
	for i := range c.Partitions {
		in := &c.Partitions[i]
		p := m.partition(tp{in.Topic, in.Partition})
		if p == nil || p.state == nil {
			c.Results[i] = refuse(kerr.UnknownTopicOrPartition, "The partition does not exist.")
			continue
		}
		next, changed, err := m.redirect(p, in.Replicas)
		if err == nil && c.SameFactor && in.Replicas != nil && len(in.Replicas) != len(next.Replicas)-len(next.Adding) {
			err = refuse(kerr.InvalidReplicationFactor, "The replication factor would change from %d to %d.", len(next.Replicas)-len(next.Adding), len(in.Replicas))
		}
		if err == nil && len(keep(p.state.ISR, func(id int32) bool { return slices.Contains(next.Replicas, id) })) == 0 {
			err = refuse(kerr.InvalidReplicaAssignment, "None of the replicas in sync would be left, and what they alone have would be lost.")
		}
		if c.Results[i] = err; err != nil || !changed {
			continue
		}
		if byTopic[in.Topic] == nil {
			byTopic[in.Topic] = m.topics[in.Topic].assignments()
			order = append(order, in.Topic)
		}
		byTopic[in.Topic][in.Partition] = next
		slots[in.Topic] = append(slots[in.Topic], &c.Results[i])
	}
	var w WriteAssignments
	for _, name := range order {
		w.Assignments = append(w.Assignments, election.TopicAssignment{Topic: name, ID: m.topics[name].id, Partitions: byTopic[name]})
		w.slots = append(w.slots, slots[name])
	}
	if len(w.Assignments) == 0 {
		return nil
	}
	return []Effect{w}
}

// redirect gives the assignment with which a partition begins to move to a target; nil: back to where it comes from. A new
// target on top of a move that is going on keeps the origin of that.
func (m *Machine) redirect(p *partition, target []int32) (next election.Assignment, changed bool, err error) {
	now := p.assignment
	origin := keep(now.Replicas, func(id int32) bool { return !slices.Contains(now.Adding, id) })
	if target == nil {
		if !p.reassigning() {
			return now, false, refuse(kerr.NoReassignmentInProgress, "No partition reassignment is in progress.")
		}
		target = origin
	} else if err := m.checkTarget(p, target); err != nil {
		return now, false, err
	}
	next = election.Assignment{
		Replicas: append(slices.Clone(target), keep(origin, func(id int32) bool { return !slices.Contains(target, id) })...),
		Adding:   keep(target, func(id int32) bool { return !slices.Contains(origin, id) }),
		Removing: keep(origin, func(id int32) bool { return !slices.Contains(target, id) }),
	}
	same := slices.Equal(next.Replicas, now.Replicas) && slices.Equal(next.Adding, now.Adding) && slices.Equal(next.Removing, now.Removing)
	return next, !same, nil
}

func (m *Machine) checkTarget(p *partition, target []int32) error {
	switch {
	case len(target) == 0:
		return refuse(kerr.InvalidReplicaAssignment, "Empty replica list specified in partition reassignment.")
	case repeats(target):
		return refuse(kerr.InvalidReplicaAssignment, "Duplicate replica ids in partition reassignment replica list.")
	}
	for _, id := range target {
		if id < 0 {
			return refuse(kerr.InvalidReplicaAssignment, "Invalid broker id in replica list.")
		}
		if !slices.Contains(p.assignment.Replicas, id) && !m.alive(id) {
			return refuse(kerr.InvalidReplicaAssignment, "Replica assignment has brokers that are not alive: %d.", id)
		}
	}
	return nil
}

// reassigned takes in the assignment of a partition: it is new, or begins, changes or ends a move.
func (m *Machine) reassigned(t *topic, number int32, a election.Assignment) {
	k := tp{t.name, number}
	m.dirty[k] = struct{}{}
	if int(number) == len(t.parts) {
		t.parts = append(t.parts, partition{assignment: a})
		return
	}
	p := &t.parts[number]
	was := p.assignment
	if slices.Equal(was.Replicas, a.Replicas) && slices.Equal(was.Adding, a.Adding) && slices.Equal(was.Removing, a.Removing) {
		return
	}
	p.assignment = a
	p.offline = keep(p.offline, in(a.Replicas))
	m.bump[k] = struct{}{} // replicas take a LeaderAndIsr of a leader epoch that they know for an old one
	if gone := keep(was.Replicas, func(id int32) bool { return !slices.Contains(a.Replicas, id) }); len(gone) > 0 {
		m.tell(k, news{leaderAndISR: true, stop: gone})
	}
}

// complete says whether a move needs nothing but to be written down as done.
func (m *Machine) complete(p *partition) bool {
	target := p.target()
	return p.reassigning() && p.state != nil && subset(target, p.state.ISR) && subset(p.state.ISR, target) && slices.Contains(target, p.state.Leader)
}

// finish writes the assignments of moves that are complete.
func (m *Machine) finish(topics map[string]bool) Effect {
	var w WriteAssignments
	for _, t := range inOrder(m.topics) {
		if !topics[t.name] {
			continue
		}
		as := t.assignments()
		for i := range t.parts {
			if p := &t.parts[i]; m.complete(p) {
				as[i] = election.Assignment{Replicas: p.target()}
			}
		}
		w.Assignments = append(w.Assignments, election.TopicAssignment{Topic: t.name, ID: t.id, Partitions: as})
		w.slots = append(w.slots, nil)
	}
	return w
}

func (m *Machine) reassignments(of []PartitionID) []OngoingReassignment {
	want := map[tp]bool{}
	for _, id := range of {
		want[tp{id.Topic, id.Partition}] = true
	}
	found := map[tp]OngoingReassignment{}
	for k, p := range m.partitions() {
		if p.reassigning() && (of == nil || want[k]) {
			found[k] = OngoingReassignment{PartitionID{k.topic, k.partition}, election.Assignment{
				Replicas: slices.Clone(p.assignment.Replicas), Adding: slices.Clone(p.assignment.Adding), Removing: slices.Clone(p.assignment.Removing)}}
		}
	}
	list := make([]OngoingReassignment, 0, len(found))
	for _, k := range ordered(found) {
		list = append(list, found[k])
	}
	return list
}

// OngoingReassignment is a partition that is moving.
type OngoingReassignment struct {
	PartitionID
	Assignment election.Assignment
}
