package group

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// Status is a group as of one moment, with what it waits for: more than Kafka's requests tell of it.
type Status struct {
	ID, ProtocolType string
	State            State
	Since            time.Time // when the state began; zero when that isn't known
	Generation       int32
	Leader           string // a member id, "" for none
	// Initial says that a rebalance is the first one and waits a little for stragglers (group.initial.rebalance.delay.ms).
	Initial bool
	// Deadline is when a rebalance goes on without those who are missing; zero without one.
	Deadline time.Time
	Members  []MemberStatus
	// Pending are ids that were given to clients which haven't joined with them (KIP-394), and until when they may.
	Pending []Pending
}

// MemberStatus is a member of a group as of one moment.
type MemberStatus struct {
	journal.Member
	Session, Rebalance time.Duration // its timeouts
	Joined             bool          // it waits for the rebalance to end
	Synced             bool          // it has asked for its assignment in this generation
	// Deadline is when it is put out if it isn't heard of; zero while nothing counts against it.
	Deadline time.Time
	New      bool // it never had an answer to its join
}

// Pending is an id that nobody has used yet.
type Pending struct {
	ID    string
	Until time.Time
}

// Status gives the group with what it waits for.
func (g *Group) Status() Status {
	s := Status{ID: g.id, ProtocolType: g.protocolType, State: g.state, Generation: g.generation, Leader: g.leader, Initial: g.initial,
		Deadline: g.joinDeadline}
	if g.state == CompletingRebalance {
		s.Deadline = g.syncDeadline
	}
	if g.since > 0 {
		s.Since = time.UnixMilli(g.since)
	}
	for _, m := range g.members {
		s.Members = append(s.Members, MemberStatus{Member: m.named(), Session: m.session, Rebalance: m.rebalance,
			Joined: m.join != 0, Synced: !m.pendingSync, Deadline: m.deadline, New: m.isNew})
	}
	for id, until := range g.pending {
		s.Pending = append(s.Pending, Pending{id, until})
	}
	slices.SortFunc(s.Pending, func(a, b Pending) int { return a.Until.Compare(b.Until) })
	return s
}

// Status gives a group with what it waits for; one that does not exist is Dead. Errors are those of [Manager.Describe].
func (m *Manager) Status(group string) (Status, error) {
	dead := Status{ID: group, State: Dead}
	s, err := m.findValid(group)
	if err != nil {
		return dead, err
	}
	e, err := m.lock(s, group, false)
	if err != nil || e == nil {
		return dead, err
	}
	defer e.mu.Unlock()
	return e.group.Status(), nil
}

// Loading lists the shards that are being read, by number.
func (m *Manager) Loading() []int32 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var ids []int32
	for id, s := range m.shards {
		if s.loading {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
