package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/election"
)

// This file says what is remembered of decisions.

func (m *Machine) note(e journal.Event) { m.noted = append(m.noted, e) }

// noteState notes what a written state changes for a partition, before that is taken in. asked says that its leader wished it.
func (m *Machine) noteState(k tp, p *partition, next *election.PartitionState, asked bool) {
	old := p.state
	switch {
	case old == nil:
		m.note(journal.LeaderChanged{Topic: k.topic, Partition: k.partition, From: election.NoBroker, To: next.Leader, LeaderEpoch: next.LeaderEpoch,
			ISR: next.ISR, Reason: journal.FirstLeader})
	case old.Leader != next.Leader:
		m.note(journal.LeaderChanged{Topic: k.topic, Partition: k.partition, From: old.Leader, To: next.Leader, LeaderEpoch: next.LeaderEpoch,
			ISR: next.ISR, Reason: m.reason(p, old, next)})
	case !sameISR(old.ISR, next.ISR):
		why := journal.BrokersGone
		switch {
		case asked:
			why = journal.LeaderAsked
		case p.reassigning() && subset(p.target(), next.ISR):
			why = journal.Reassigned
		}
		m.note(journal.ISRChanged{Topic: k.topic, Partition: k.partition, From: old.ISR, To: next.ISR, Leader: next.Leader, Reason: why})
	}
}

// reason says why the leader of a partition changes.
func (m *Machine) reason(p *partition, old, next *election.PartitionState) journal.Reason {
	switch {
	case next.Leader == election.NoBroker:
		return journal.NobodyLeft
	case !slices.Contains(old.ISR, next.Leader):
		return journal.Unclean
	case old.Leader == election.NoBroker:
		return journal.ReplicaCame
	case !m.alive(old.Leader):
		return journal.LeaderDied
	case slices.Contains(p.offline, old.Leader):
		return journal.DirectoryLost
	case m.stopping[old.Leader] != nil:
		return journal.LeaderStops
	case !slices.Contains(p.target(), old.Leader):
		return journal.Reassigned
	}
	return journal.Preferred
}
