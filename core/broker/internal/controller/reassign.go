package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/election"
)

// A reassignment (KIP-455) begins with an assignment that has the old and the new replicas, the new ones first. When all of
// the target are in sync, the state is brought within the target, under a new leader epoch, and the target is told; then the
// replicas that are left behind are told to go; then the assignment becomes the target. The order is what makes it safe to die on the way: a replica goes only when it isn't in
// sync any more, and is forgotten only when it was told to go. The next controller sees which step is due from what was
// written.
//
// A move that is going on is undone by the same steps towards where it came from. Another target on top of it means undoing
// it first.

// alterReassignments checks the wishes of a command, and writes the assignments of those that are well.
func (m *Machine) alterReassignments(c *AlterReassignments) []Effect {
	c.Results = make([]error, len(c.Partitions))
	byTopic := map[string][]election.Assignment{}
	slots := map[string][]*error{}
	var order []string
	for i := range c.Partitions {
		in := &c.Partitions[i]
		k, slot := tp{in.Topic, in.Partition}, &c.Results[i]
		p := m.partition(k)
		if p == nil || p.state == nil {
			*slot = refuse(kerr.UnknownTopicOrPartition, "The partition does not exist.")
			continue
		}
		if *slot = m.checkMove(p, in.Replicas, c.SameFactor); *slot != nil {
			continue
		}
		if p.reassigning() && !p.back && slices.Equal(in.Replicas, p.target()) {
			continue // it is on its way there
		}
		if p.reassigning() {
			p.back, p.next, p.slots = true, slices.Clone(in.Replicas), append(p.slots, slot)
			m.dirty[k] = struct{}{}
			continue
		}
		next := begin(p.assignment.Replicas, in.Replicas)
		if slices.Equal(next.Replicas, p.assignment.Replicas) && len(next.Removing) == 0 {
			continue
		}
		if byTopic[in.Topic] == nil {
			byTopic[in.Topic] = m.topics[in.Topic].assignments()
			order = append(order, in.Topic)
		}
		byTopic[in.Topic][in.Partition] = next
		slots[in.Topic] = append(slots[in.Topic], slot)
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

// begin is the assignment with which a partition begins to move from where it is to a target.
func begin(from, target []int32) election.Assignment {
	left := keep(from, func(id int32) bool { return !slices.Contains(target, id) })
	return election.Assignment{
		Replicas: append(slices.Clone(target), left...),
		Adding:   keep(target, func(id int32) bool { return !slices.Contains(from, id) }),
		Removing: left,
	}
}

// checkMove says why a partition can't move to a target, or, for nil, back.
func (m *Machine) checkMove(p *partition, target []int32, sameFactor bool) error {
	origin := p.origin()
	switch {
	case target == nil && !p.reassigning():
		return refuse(kerr.NoReassignmentInProgress, "No partition reassignment is in progress.")
	case target != nil:
		if err := m.checkTarget(p, target); err != nil {
			return err
		}
		if sameFactor && len(target) != len(origin) {
			return refuse(kerr.InvalidReplicationFactor, "The replication factor would change from %d to %d.", len(origin), len(target))
		}
	}
	if p.reassigning() && !slices.ContainsFunc(p.state.ISR, in(origin)) {
		return refuse(kerr.InvalidReplicaAssignment, "No replica in sync is one that the partition comes from; what the others alone have would be lost.")
	}
	return nil
}

func (m *Machine) checkTarget(p *partition, target []int32) error {
	switch {
	case len(target) == 0:
		return refuse(kerr.InvalidReplicaAssignment, "Empty replica list specified in partition reassignment.")
	case len(target) > maxReplicas:
		return refuse(kerr.InvalidReplicaAssignment, "%d replicas are more than %d.", len(target), maxReplicas)
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
	if sameAssignment(p.assignment, a) {
		return
	}
	// Its replicas know already when a move ends; but Apache Kafka takes those that are left behind out of the in-sync replicas in a
	// step of their own, under an epoch of its own, and so the epochs are the same.
	if !m.complete(p) || reassigning(a) || !p.back && len(p.assignment.Removing) > 0 {
		m.bump[k] = struct{}{}
	}
	m.tell(k, news{})
	p.assignment = a
	p.offline = keep(p.offline, in(a.Replicas))
	p.back, p.next, p.slots, p.arrived = false, nil, nil, false
}

// within says whether leader and replicas in sync are where a move goes.
func (p *partition) within() bool {
	target := p.target()
	return p.reassigning() && p.state != nil && subset(p.state.ISR, target) && slices.Contains(target, p.state.Leader) &&
		(p.back || subset(target, p.state.ISR))
}

// complete says whether a move needs nothing but that replicas go that are left behind, and that it is written down as done.
func (m *Machine) complete(p *partition) bool { return p.arrived && p.within() }

// toBe is the assignment that replicas are told: of a move that is complete the one that will be written next.
func (m *Machine) toBe(p *partition) election.Assignment {
	if m.complete(p) {
		return election.Assignment{Replicas: p.target()}
	}
	return p.assignment
}

// finish has the replicas go that complete moves leave behind, and writes the assignments that those moves end with.
func (m *Machine) finish(topics map[string]bool) []Effect {
	stops := stopRequests{m: m, by: map[int32]*kmsg.StopReplicaRequest{}}
	var w WriteAssignments
	for _, t := range inOrder(m.topics) {
		if !topics[t.name] {
			continue
		}
		as := t.assignments()
		var slots []*error
		for i := range t.parts {
			p := &t.parts[i]
			if !m.complete(p) {
				continue
			}
			target := p.target()
			if as[i] = (election.Assignment{Replicas: target}); p.next != nil {
				as[i] = begin(target, p.next)
			}
			slots = append(slots, p.slots...)
			for _, id := range p.assignment.Replicas {
				if !slices.Contains(as[i].Replicas, id) && m.alive(id) {
					stops.add(id, tp{t.name, int32(i)}, p.state.LeaderEpoch, true)
				}
			}
		}
		w.Assignments = append(w.Assignments, election.TopicAssignment{Topic: t.name, ID: t.id, Partitions: as})
		w.slots = append(w.slots, slots)
	}
	return append(stops.pushes(), w)
}

// reassignments lists moves, of some partitions or, for nil, of all.
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
