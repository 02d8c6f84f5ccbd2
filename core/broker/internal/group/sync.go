package group

import (
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// Sync asks for a member's assignment; the leader's brings those of all.
type Sync struct {
	Member
	ProtocolType, Protocol *string // checked when not nil
	Assignments            map[string][]byte
}

// Member is how a request names the member that sends it.
type Member struct {
	ID         string
	InstanceID *string
	Generation int32
}

// SyncAnswer is the answer to a Sync.
type SyncAnswer struct {
	Err          error
	ProtocolType string
	Protocol     *string
	Assignment   []byte
}

// Sync is a member's wish for its assignment. The answer comes under the ticket, now or later.
func (g *Group) Sync(now time.Time, t Ticket, r Sync) Effects {
	g.begin(now)
	g.sync(t, r)
	return g.end()
}

func (g *Group) sync(t Ticket, r Sync) {
	answer := func(a SyncAnswer) { g.out.Answers = append(g.out.Answers, Answer{Ticket: t, Sync: &a}) }
	m, err := g.checkGeneration(r.Member)
	switch {
	case err != nil:
	case r.ProtocolType != nil && *r.ProtocolType != g.protocolType,
		r.Protocol != nil && (g.protocol == nil || *r.Protocol != *g.protocol):
		err = ErrInconsistentProtocol
	case g.state == PreparingRebalance:
		err = ErrRebalance
	case g.state == Empty:
		err = ErrUnknownMember
	}
	if err != nil {
		answer(SyncAnswer{Err: err})
		return
	}
	m.pendingSync = false
	if g.state == Stable {
		g.touch(m)
		answer(SyncAnswer{ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment})
		return
	}
	g.answerSync(m, SyncAnswer{Err: ErrRebalance}) // an older request, which its client gave up
	m.sync = t
	if g.leader != m.id || g.assigning {
		return
	}
	g.assigning = true
	assignments := make(map[string][]byte, len(g.members))
	for _, o := range g.members {
		assignments[o.id] = append([]byte{}, r.Assignments[o.id]...)
	}
	g.write(Write{kind: writeAssignment, generation: g.generation, assignments: assignments}, g.record(assignments))
}

// checkGeneration finds the member that a request speaks of, and makes sure that both speak of one generation.
func (g *Group) checkGeneration(who Member) (*member, error) {
	if g.state == Dead {
		return nil, ErrUnavailable
	}
	m, err := g.check(who.ID, who.InstanceID)
	if err == nil && who.Generation != g.generation {
		err = ErrIllegalGeneration
	}
	return m, err
}

// assignmentStored ends the leader's sync.
func (g *Group) assignmentStored(w Write, err error) {
	if g.state != CompletingRebalance || g.generation != w.generation {
		return // overtaken by a rebalance, which has answered
	}
	g.assigning = false
	if err != nil {
		g.assigned(writeError(err))
		g.prepareRebalance(journal.AssignmentFailed, nil)
		return
	}
	for _, m := range g.members {
		m.assignment = w.assignments[m.id]
	}
	g.assigned(nil)
	g.assignmentDone()
	g.become(Stable)
}

// assigned answers the members that wait for their assignment, and starts their sessions. On an error nobody has an
// assignment any more.
func (g *Group) assigned(err error) {
	for _, m := range g.members {
		a := SyncAnswer{ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
		if err != nil {
			m.assignment = nil
			a = SyncAnswer{Err: err}
		}
		if g.answerSync(m, a) {
			g.touch(m)
		}
	}
}

// Heartbeat says that a member is alive, and tells it of a rebalance.
func (g *Group) Heartbeat(now time.Time, who Member) (Effects, error) {
	g.begin(now)
	err := g.heartbeat(who)
	return g.end(), err
}

func (g *Group) heartbeat(who Member) error {
	m, err := g.checkGeneration(who)
	if err != nil {
		return err
	}
	if g.state == Empty {
		return ErrUnknownMember
	}
	g.touch(m)
	if g.state == PreparingRebalance {
		return ErrRebalance
	}
	return nil
}

// Leaving names a member that leaves. An administrator removes a static member by its instance id alone.
type Leaving struct {
	MemberID   string
	InstanceID *string
}

// Leave takes members out, each on its own, and returns an error or nil for each. The error of the whole is
// ErrUnavailable, or nil.
func (g *Group) Leave(now time.Time, leaving []Leaving) ([]error, Effects, error) {
	g.begin(now)
	if g.state == Dead {
		return nil, g.end(), ErrUnavailable
	}
	errs := make([]error, len(leaving))
	for i, l := range leaving {
		errs[i] = g.leaveOne(l)
	}
	return errs, g.end(), nil
}

func (g *Group) leaveOne(l Leaving) error {
	if l.MemberID == "" {
		if l.InstanceID == nil {
			return ErrUnknownMember
		}
		id, ok := g.instances[*l.InstanceID]
		if !ok {
			return ErrUnknownMember
		}
		g.leave(g.byID[id], journal.Left, 0)
		return nil
	}
	if g.isPending(l.MemberID) {
		delete(g.pending, l.MemberID)
		return nil
	}
	m, err := g.check(l.MemberID, l.InstanceID)
	if err == nil {
		g.leave(m, journal.Left, 0)
	}
	return err
}

// record is the group as it is stored, with the assignments given, or those that the members have.
func (g *Group) record(assignments map[string][]byte) []offsets.Entry {
	meta := &offsets.Group{
		ProtocolType: g.protocolType, Generation: g.generation, Protocol: g.protocol, StateTimestamp: g.since,
		Members: make([]offsets.Member, 0, len(g.members)),
	}
	if g.leader != "" {
		leader := g.leader
		meta.Leader = &leader
	}
	for _, m := range g.members {
		assignment := m.assignment
		if assignments != nil {
			assignment = assignments[m.id]
		}
		meta.Members = append(meta.Members, offsets.Member{
			ID: m.id, InstanceID: m.instance, ClientID: m.clientID, ClientHost: m.clientHost,
			RebalanceTimeout: int32(m.rebalance.Milliseconds()), SessionTimeout: int32(m.session.Milliseconds()),
			Subscription: m.metadata(g.protocolName()), Assignment: assignment,
		})
	}
	return []offsets.Entry{{Key: offsets.GroupKey(g.id), Meta: meta}}
}

func (g *Group) protocolName() string {
	if g.protocol == nil {
		return ""
	}
	return *g.protocol
}
