package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// Protocol is an assignment protocol that a member offers, with its metadata for it.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Join is a request to join a group, or to join it again.
type Join struct {
	MemberID   string  // "" for a new member
	InstanceID *string // of a static member (KIP-345)
	NewID      string  // the id to give to a new member
	// RequireID says that a new dynamic member shall only be told its id, and join again with it (KIP-394).
	RequireID bool
	// CanSkip says that a static leader understands that no assignment is asked of it (KIP-814).
	CanSkip              bool
	ClientID, ClientHost string
	Rebalance, Session   time.Duration
	ProtocolType         string
	Protocols            []Protocol
}

// JoinAnswer is the answer to a Join.
type JoinAnswer struct {
	Err            error
	Generation     int32
	ProtocolType   string
	Protocol       *string
	Leader         string
	MemberID       string
	SkipAssignment bool
	Members        []JoinedMember // for the leader alone
}

// JoinedMember is a member as the leader is told of it.
type JoinedMember struct {
	ID         string
	InstanceID *string
	Metadata   []byte // for the chosen protocol
}

func (g *Group) joinError(memberID string, err error) JoinAnswer {
	return JoinAnswer{Err: err, Generation: -1, MemberID: memberID}
}

// Join is a member's wish to be part of the next generation. The answer comes under the ticket, now or later.
func (g *Group) Join(now time.Time, t Ticket, r Join) Effects {
	g.begin(now)
	g.join(t, r)
	return g.end()
}

func (g *Group) join(t Ticket, r Join) {
	refuse := func(memberID string, err error) {
		a := g.joinError(memberID, err)
		g.out.Answers = append(g.out.Answers, Answer{Ticket: t, Join: &a})
	}
	switch {
	case g.state == Dead:
		refuse(r.MemberID, ErrUnavailable)
	case !g.hasRoomFor(r):
		if m := g.byID[r.MemberID]; m != nil { // it came too late, and others have its place
			g.out.Events = append(g.out.Events, g.memberOut(m, journal.GroupFull, 0))
			g.drop(m)
		}
		refuse("", ErrMaxSize)
	case !g.supports(r.ProtocolType, r.Protocols):
		refuse(r.MemberID, ErrInconsistentProtocol)
	case r.MemberID == "" && r.InstanceID != nil:
		g.joinStatic(t, r)
	case r.MemberID == "" && r.RequireID:
		if g.pending == nil {
			g.pending = map[string]time.Time{}
		}
		g.pending[r.NewID] = g.now.Add(r.Session)
		g.arm(g.pending[r.NewID])
		refuse(r.NewID, ErrMemberIDRequired)
	case r.MemberID == "":
		g.addAndRebalance(t, r.NewID, r)
	case g.isPending(r.MemberID):
		if r.InstanceID != nil { // such ids are given to dynamic members only
			refuse(r.MemberID, ErrUnknown)
			return
		}
		g.addAndRebalance(t, r.MemberID, r)
	default:
		m, err := g.check(r.MemberID, r.InstanceID)
		if err != nil {
			refuse(r.MemberID, err)
			return
		}
		g.rejoin(t, m, r)
	}
}

// hasRoomFor says whether the member may be part of the next generation: while a rebalance collects members, the first
// to come are in. A static member that starts again takes its own place.
func (g *Group) hasRoomFor(r Join) bool {
	m := g.byID[r.MemberID]
	if r.MemberID == "" && r.InstanceID != nil {
		m = g.byID[g.instances[*r.InstanceID]]
	}
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.join != 0 || g.joining < g.cfg.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < g.cfg.MaxSize
	}
	return true
}

// supports says whether a member with these protocols fits in with all others.
func (g *Group) supports(protocolType string, protocols []Protocol) bool {
	if len(g.members) == 0 {
		return protocolType != "" && len(protocols) > 0
	}
	return protocolType == g.protocolType && slices.ContainsFunc(protocols, func(p Protocol) bool {
		return g.offers[p.Name] == len(g.members)
	})
}

// metadata is what the member said for a protocol; empty, not nil, when it said nothing.
func (m *member) metadata(protocol string) []byte {
	if i, ok := m.index[protocol]; ok {
		return m.protocols[i].Metadata
	}
	return []byte{}
}

// matches says whether the member offers the same as before. A name that comes twice never does.
func (m *member) matches(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// adopt takes over what a member says about itself. Of several protocols with one name the first counts.
func (m *member) adopt(r Join) {
	m.rebalance, m.session = max(r.Rebalance, 0), r.Session
	m.protocols, m.index = make([]Protocol, 0, len(r.Protocols)), make(map[string]int, len(r.Protocols))
	for _, p := range r.Protocols {
		if _, twice := m.index[p.Name]; !twice {
			m.index[p.Name] = len(m.protocols)
			m.protocols = append(m.protocols, Protocol{Name: p.Name, Metadata: append([]byte{}, p.Metadata...)})
		}
	}
}

// update is adopt for a member that the group has.
func (g *Group) update(m *member, r Join) {
	g.forgetOffers(m)
	m.adopt(r)
	for name := range m.index {
		g.offers[name]++
	}
}

// waitToJoin keeps the request until the rebalance completes. A request of the same member that waits already is sent
// back to try again: most likely its client has given up on it.
func (g *Group) waitToJoin(m *member, t Ticket) {
	if m.join == 0 {
		g.last = lastJoin{m.named(), g.now}
	}
	g.answerJoin(m, g.joinError(m.id, ErrRebalance))
	m.join = t
	g.joining++
}

func (g *Group) addAndRebalance(t Ticket, id string, r Join) {
	m := &member{id: id, instance: r.InstanceID, clientID: r.ClientID, clientHost: r.ClientHost, isNew: true}
	m.adopt(r)
	if g.state == PreparingRebalance && g.generation == 0 {
		g.newMember = true
	}
	if len(g.members) == 0 {
		g.protocolType = r.ProtocolType
	}
	g.add(m)
	g.waitToJoin(m, t)
	m.deadline = g.now.Add(newMemberTimeout)
	g.arm(m.deadline)
	g.prepareRebalance(journal.Joined, m)
}

// rejoin is a join of a member that the group knows.
func (g *Group) rejoin(t Ticket, m *member, r Join) {
	unchanged := m.matches(r.Protocols)
	switch {
	case g.state == CompletingRebalance && unchanged, // it may have missed the answer
		g.state == Stable && unchanged && g.leader != m.id: // nothing that concerns the others
		a := g.joined(m)
		if g.state == Stable {
			a.Members = nil
		}
		g.out.Answers = append(g.out.Answers, Answer{Ticket: t, Join: &a})
	case g.state == Empty:
		a := g.joinError(m.id, ErrUnknownMember)
		g.out.Answers = append(g.out.Answers, Answer{Ticket: t, Join: &a})
	default:
		cause := journal.Rejoined
		if unchanged {
			cause = journal.LeaderRejoined
		}
		g.update(m, r)
		g.waitToJoin(m, t)
		g.prepareRebalance(cause, m)
	}
}

// joinStatic is a join of a static member that does not know its member id: it starts, or starts again.
func (g *Group) joinStatic(t Ticket, r Join) {
	oldID, known := g.instances[*r.InstanceID]
	if !known {
		g.addAndRebalance(t, r.NewID, r)
		return
	}
	m := g.byID[oldID]
	before := *m
	leaderBefore := g.leader
	g.replace(m, r.NewID)
	g.update(m, r)
	m.clientID, m.clientHost = r.ClientID, r.ClientHost
	g.waitToJoin(m, t)
	if !m.isNew {
		g.touch(m)
	}
	switch {
	case g.state == Stable && g.protocol != nil && g.selectProtocol() == *g.protocol:
		// Nobody else need know, and nothing has to be assigned anew: the record is all that changes.
		g.write(Write{kind: writeStatic, member: m, before: before, leader: leaderBefore, canSkip: r.CanSkip,
			generation: g.generation, ticket: t}, g.record(nil))
	case g.state == Stable || g.state == CompletingRebalance:
		g.prepareRebalance(journal.StaticReplaced, m)
	}
}

// replace gives a static member a new id. Whoever waits under the old one is fenced.
func (g *Group) replace(m *member, id string) {
	g.answerJoin(m, g.joinError(m.id, ErrFencedInstance))
	g.answerSync(m, SyncAnswer{Err: ErrFencedInstance})
	delete(g.byID, m.id)
	if g.leader == m.id {
		g.leader = id
	}
	m.id = id
	g.byID[id] = m
	g.instances[*m.instance] = id
}

// staticStored ends the replacement of a static member without a rebalance.
func (g *Group) staticStored(w Write, err error) {
	m := w.member
	if g.byID[m.id] != m || m.join != w.ticket || g.state != Stable || g.generation != w.generation {
		return // a rebalance came between, and answers
	}
	a := g.joined(m)
	g.touch(m)
	switch {
	case err != nil:
		g.answerJoin(m, JoinAnswer{Err: writeError(err), Generation: g.generation, ProtocolType: g.protocolType,
			Protocol: g.protocol, Leader: w.leader})
		g.replace(m, w.before.id)
		g.update(m, Join{Protocols: w.before.protocols, Rebalance: w.before.rebalance, Session: w.before.session})
		m.clientID, m.clientHost = w.before.clientID, w.before.clientHost
		return
	case w.canSkip:
		a.SkipAssignment = g.leader == m.id
	default:
		// A leader that can't be told to skip the assignment must not think that it leads (before KIP-814).
		a.Members, a.Leader = nil, w.leader
	}
	g.answerJoin(m, a)
	g.subscribed = g.subscriptions() // it may read other topics now
}

// joined is the answer for a member of the generation at hand.
func (g *Group) joined(m *member) JoinAnswer {
	a := JoinAnswer{Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol, Leader: g.leader, MemberID: m.id}
	if g.leader != m.id {
		return a
	}
	a.Members = make([]JoinedMember, 0, len(g.members))
	for _, o := range g.members {
		a.Members = append(a.Members, JoinedMember{ID: o.id, InstanceID: o.instance, Metadata: o.metadata(*g.protocol)})
	}
	return a
}
