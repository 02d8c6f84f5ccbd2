package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// The functions of this file are the rules by which leaders are chosen (kafka.controller's strategies). Each takes a state and
// who is alive, and returns the state that follows, without epochs; ok is false when nothing follows.

// live says whether a replica's broker is alive and its log directory well.
type live func(replica int32) bool

func keep(ids []int32, want func(int32) bool) []int32 {
	kept := make([]int32, 0, len(ids))
	for _, id := range ids {
		if want(id) {
			kept = append(kept, id)
		}
	}
	return kept
}

func firstOf(ids []int32, want func(int32) bool) (int32, bool) {
	if i := slices.IndexFunc(ids, want); i >= 0 {
		return ids[i], true
	}
	return election.NoBroker, false
}

func in(ids []int32) func(int32) bool { return func(id int32) bool { return slices.Contains(ids, id) } }

// firstState is the state of a partition that never had one: the first living replica leads, all living ones are in sync.
func firstState(a election.Assignment, alive live) (election.PartitionState, bool) {
	leader, ok := firstOf(a.Replicas, alive)
	if !ok {
		return election.PartitionState{}, false
	}
	return election.PartitionState{Leader: leader, ISR: keep(a.Replicas, alive)}, true
}

// repaired is the state after brokers died or came back: the leader and the replicas in sync are alive, as far as that is
// possible. When none in sync is alive they stay as they are: they alone are known to have everything. unclean allows a
// leader that isn't in sync, which may lose records.
func repaired(s election.PartitionState, a election.Assignment, alive live, unclean bool) (election.PartitionState, bool) {
	next := s
	if isr := keep(s.ISR, alive); len(isr) > 0 {
		next.ISR = isr
	}
	if s.Leader == election.NoBroker || !alive(s.Leader) {
		leader, ok := firstOf(a.Replicas, func(id int32) bool { return alive(id) && slices.Contains(next.ISR, id) })
		if !ok && unclean {
			if leader, ok = firstOf(a.Replicas, alive); ok {
				next.ISR, next.Recovering = []int32{leader}, true
			}
		}
		next.Leader = leader
	}
	return next, next.Leader != s.Leader || !slices.Equal(next.ISR, s.ISR)
}

// preferred makes the first replica leader, if it is alive and in sync.
func preferred(s election.PartitionState, a election.Assignment, alive live) (election.PartitionState, bool) {
	if len(a.Replicas) == 0 || a.Replicas[0] == s.Leader || !alive(a.Replicas[0]) || !slices.Contains(s.ISR, a.Replicas[0]) {
		return s, false
	}
	s.Leader = a.Replicas[0]
	return s, true
}

// moved makes one of the targets of a reassignment leader, and takes those out of sync that are going.
func moved(s election.PartitionState, target []int32, alive live) (election.PartitionState, bool) {
	next := s
	next.ISR = keep(s.ISR, in(target))
	if !slices.Contains(target, s.Leader) || !alive(s.Leader) {
		leader, ok := firstOf(target, func(id int32) bool { return alive(id) && slices.Contains(next.ISR, id) })
		if !ok {
			return s, false
		}
		next.Leader = leader
	}
	return next, len(next.ISR) > 0
}

// relieved moves leadership and sync away from a broker that is about to stop.
func relieved(s election.PartitionState, a election.Assignment, alive live, stopping func(int32) bool) (election.PartitionState, bool) {
	next := s
	next.ISR = keep(s.ISR, func(id int32) bool { return !stopping(id) })
	if len(next.ISR) == 0 {
		// All are about to stop: it stays with the leader, to the end.
		next.ISR = keep(s.ISR, func(id int32) bool { return id == s.Leader })
		return next, len(next.ISR) > 0 && len(next.ISR) != len(s.ISR)
	}
	if stopping(s.Leader) {
		leader, ok := firstOf(a.Replicas, func(id int32) bool { return alive(id) && slices.Contains(next.ISR, id) })
		if !ok {
			return s, false
		}
		next.Leader = leader
	}
	return next, next.Leader != s.Leader || len(next.ISR) != len(s.ISR)
}
