package group

import (
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// This file makes the events that a group wants remembered.

// lastJoin is who joined last, and when.
type lastJoin struct {
	member journal.Member
	at     time.Time
}

// named is the member as the journal calls it.
func (m *member) named() journal.Member {
	j := journal.Member{ID: m.id, ClientID: m.clientID, Host: m.clientHost}
	if m.instance != nil {
		j.Instance = *m.instance
	}
	return j
}

// memberOut says that a member goes, or is put out after a timeout.
func (g *Group) memberOut(m *member, cause journal.Cause, timeout time.Duration) journal.MemberOut {
	return journal.MemberOut{Group: g.id, Member: m.named(), Cause: cause, Timeout: journal.Millis(timeout), Silent: journal.Millis(g.silent(m))}
}

// silent is for how long a member hasn't been heard of; 0 while that doesn't count, or isn't known.
func (g *Group) silent(m *member) time.Duration {
	if m.deadline.IsZero() || m.isNew {
		return 0
	}
	return max(g.now.Sub(m.deadline.Add(-m.session)), 0)
}

func (g *Group) rebalanceBegan(cause journal.Cause, who *member, within time.Duration) {
	g.began = g.now
	e := journal.RebalanceBegan{Group: g.id, Generation: g.generation, Cause: cause, Members: len(g.members), Within: journal.Millis(within)}
	if who != nil {
		e.Member = who.named()
	}
	g.out.Events = append(g.out.Events, e)
}

func (g *Group) rebalanceEnded(timedOut bool, absent int) {
	e := journal.RebalanceEnded{Group: g.id, Generation: g.generation, Members: len(g.members), Protocol: g.protocolName(),
		Took: journal.Millis(g.now.Sub(g.began)), TimedOut: timedOut, Absent: absent}
	if m := g.byID[g.leader]; m != nil {
		e.Leader = m.named()
	}
	if len(g.members) > 0 {
		e.Last, e.LastAfter = g.last.member, journal.Millis(max(g.last.at.Sub(g.began), 0))
	}
	g.out.Events = append(g.out.Events, e)
}

// assignmentDone says that the generation has its assignment. The state still is the one that waited for it.
func (g *Group) assignmentDone() {
	e := journal.Assigned{Group: g.id, Generation: g.generation, Took: journal.Millis(time.Duration(g.now.UnixMilli()-g.since) * time.Millisecond)}
	if m := g.byID[g.leader]; m != nil {
		e.Leader = m.named()
	}
	g.out.Events = append(g.out.Events, e)
}
