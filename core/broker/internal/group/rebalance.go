package group

import (
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// prepareRebalance begins a rebalance, unless one is going on. who caused it, if somebody did.
func (g *Group) prepareRebalance(cause journal.Cause, who *member) {
	switch g.state {
	case CompletingRebalance:
		g.assigned(ErrRebalance) // whoever waits for an assignment joins again instead
	case Stable, Empty:
	default:
		return
	}
	first := g.state == Empty
	g.become(PreparingRebalance)
	timeout := g.rebalanceTimeout()
	if first {
		// The first members of a group come one after another; waiting a little saves a rebalance for each.
		g.initial, g.newMember = true, false
		g.remaining = max(timeout-g.cfg.InitialDelay, 0)
		timeout = g.cfg.InitialDelay
	}
	g.joinDeadline = g.now.Add(timeout)
	g.arm(g.joinDeadline)
	g.rebalanceBegan(cause, who, timeout)
}

// allJoined says whether nobody is missing: all members wait in a join, and nobody was only given an id.
func (g *Group) allJoined() bool {
	return g.joining == len(g.members) && len(g.pending) == 0
}

// joinTimeUp is the end of the time for joining: the initial delay grows as long as members come, else the rebalance
// completes with whoever has joined.
func (g *Group) joinTimeUp() {
	if g.initial && g.newMember && g.remaining > 0 {
		g.newMember = false
		delay := min(g.cfg.InitialDelay, g.remaining)
		g.remaining -= delay
		g.joinDeadline = g.now.Add(delay)
		g.arm(g.joinDeadline)
		return
	}
	g.completeJoin(!g.initial)
}

// completeJoin makes the next generation of the members that have joined. Static members that have not stay: they may
// be restarting. The others are out. timeUp says that the time for joining was.
func (g *Group) completeJoin(timeUp bool) {
	var missing []*member
	absent := 0
	for _, m := range g.members {
		switch {
		case m.join != 0:
		case m.instance == nil:
			missing = append(missing, m)
		default:
			absent++
		}
	}
	timeout := g.rebalanceTimeout()
	for _, m := range missing {
		g.out.Events = append(g.out.Events, g.memberOut(m, journal.RebalanceTimeout, timeout))
		g.drop(m)
	}
	if len(g.members) > 0 && !g.electLeader() {
		// Nobody came, and nobody may be thrown out. Sessions decide who is left.
		g.initial = false
		g.joinDeadline = g.now.Add(max(g.rebalanceTimeout(), minPostponed))
		g.arm(g.joinDeadline)
		return
	}
	g.generation++
	g.assigning = false
	timedOut := timeUp && len(missing)+absent+len(g.pending) > 0
	if len(g.members) == 0 {
		g.protocol, g.leader = nil, ""
		g.rebalanceEnded(timedOut, absent)
		g.become(Empty)
		g.subscribed = g.subscriptions()
		g.write(Write{kind: writeEmpty}, g.record(nil))
		return
	}
	chosen := g.selectProtocol()
	g.protocol = &chosen
	g.rebalanceEnded(timedOut, absent)
	g.subscribed = g.subscriptions()
	g.become(CompletingRebalance)
	for _, m := range g.members {
		g.answerJoin(m, g.joined(m))
		m.isNew, m.pendingSync = false, true
		g.touch(m)
	}
	g.syncDeadline = g.now.Add(g.rebalanceTimeout())
	g.arm(g.syncDeadline)
}

// electLeader keeps the leader if it has joined, else takes the first that has. It says whether there is one.
func (g *Group) electLeader() bool {
	if m := g.byID[g.leader]; m != nil && m.join != 0 {
		return true
	}
	for _, m := range g.members {
		if m.join != 0 {
			g.leader = m.id
			return true
		}
	}
	return false
}

// selectProtocol chooses among the protocols that all members offer: each member votes for the one it prefers. Where
// votes are equal, the longest-standing member's preference decides.
func (g *Group) selectProtocol() (chosen string) {
	votes := map[string]int{}
	most := 0
	for _, m := range g.members {
		for _, p := range m.protocols {
			if g.offers[p.Name] == len(g.members) {
				votes[p.Name]++
				most = max(most, votes[p.Name])
				break
			}
		}
	}
	for _, p := range g.members[0].protocols {
		if most > 0 && votes[p.Name] == most {
			return p.Name
		}
	}
	return chosen
}

// expirePending forgets ids that nobody came back with.
func (g *Group) expirePending() {
	for id, deadline := range g.pending {
		if due(deadline, g.now) {
			delete(g.pending, id)
		}
	}
}

// expireSessions puts out the members that weren't heard of for too long. Those that wait for an answer of ours are
// alive, unless they are new: see newMemberTimeout.
func (g *Group) expireSessions() {
	var gone []*member
	for _, m := range g.members {
		switch {
		case !due(m.deadline, g.now):
		case m.isNew, m.join == 0 && m.sync == 0:
			gone = append(gone, m)
		default:
			m.deadline = time.Time{} // counts again from the answer on
		}
	}
	for _, m := range gone {
		if m.isNew {
			g.leave(m, journal.NeverAnswered, newMemberTimeout)
		} else {
			g.leave(m, journal.SessionTimeout, m.session)
		}
	}
}

// expireSync puts out the members that joined and then never asked for their assignment (KIP-345's DelayedSync).
func (g *Group) expireSync() {
	g.syncDeadline = time.Time{}
	var gone []*member
	for _, m := range g.members {
		if m.pendingSync {
			gone = append(gone, m)
		}
	}
	if len(gone) == 0 {
		return
	}
	timeout := g.rebalanceTimeout()
	for _, m := range gone {
		g.out.Events = append(g.out.Events, g.memberOut(m, journal.SyncTimeout, timeout))
		g.drop(m)
	}
	g.prepareRebalance(journal.SyncTimeout, gone[0])
}

// leave takes a member out; the others share its work. timeout is the one that it exceeded, if any.
func (g *Group) leave(m *member, cause journal.Cause, timeout time.Duration) {
	g.out.Events = append(g.out.Events, g.memberOut(m, cause, timeout))
	g.drop(m)
	if g.state == Stable || g.state == CompletingRebalance {
		g.prepareRebalance(cause, m)
	}
}
