package group

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// State is where a group stands, in Kafka's words.
type State string

// The states of a classic group.
const (
	Empty               State = "Empty"               // no members; maybe offsets
	PreparingRebalance  State = "PreparingRebalance"  // waits for members to join
	CompletingRebalance State = "CompletingRebalance" // waits for the leader's assignment
	Stable              State = "Stable"
	Dead                State = "Dead" // being removed, or unloaded
)

// consumerProtocol is the protocol type whose metadata names topics.
const consumerProtocol = "consumer"

// Config is what the broker's settings say about groups.
type Config struct {
	MinSession, MaxSession time.Duration // group.min.session.timeout.ms, group.max.session.timeout.ms
	InitialDelay           time.Duration // group.initial.rebalance.delay.ms
	MaxSize                int           // group.max.size
	MaxMetadata            int           // offset.metadata.max.bytes
	CommitTimeout          time.Duration // offsets.commit.timeout.ms
	Retention              time.Duration // offsets.retention.minutes
	RetentionCheck         time.Duration // offsets.retention.check.interval.ms
}

// newMemberTimeout is how long a member that has not had an answer yet may wait in a join. Its session does not count
// then: it doesn't know its id and can't send heartbeats, so a client that retries after a time-out of its own would
// leave dead members behind for ever (Kafka's NewMemberJoinTimeoutMs).
const newMemberTimeout = 5 * time.Minute

// minPostponed keeps a group whose members allow no time for a rebalance from trying all the time.
const minPostponed = time.Second

// Ticket names a request that waits for an answer. 0 is none.
type Ticket uint64

// Effects are what an event asks of the loop around the group, in order.
type Effects struct {
	Answers []Answer
	Writes  []Write
	Events  []journal.Event // to be remembered, for whoever asks why
}

// Answer is the answer for a waiting request; exactly one field beside Ticket is meant.
type Answer struct {
	Ticket Ticket
	Join   *JoinAnswer
	Sync   *SyncAnswer
	Err    error // of the write behind a commit or a removal; nil when it is stored
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Group is one consumer group: who is in it, what generation it has, what it has committed. One goroutine at a time may
// use it. Events are methods; each takes the time and returns the effects, which the caller carries out in the order of
// the events.
type Group struct {
	id    string
	cfg   *Config
	state State
	since int64 // when the state began, ms; offsets.None when that isn't known

	protocolType string // "" for none
	generation   int32
	protocol     *string
	leader       string // "" for none
	members      []*member
	byID         map[string]*member
	instances    map[string]string    // of static members: instance id -> member id
	offers       map[string]int       // protocol -> how many members offer it
	joining      int                  // members that wait in a join
	pending      map[string]time.Time // ids that were given out (KIP-394), and by when they must be used
	subscribed   map[string]struct{}  // nil when not known

	newMember    bool          // someone joined since the initial delay began
	initial      bool          // the rebalance is the first one, which waits for stragglers
	remaining    time.Duration // by how much the initial delay may still grow
	joinDeadline time.Time     // of the rebalance
	syncDeadline time.Time     // for members that joined to ask for their assignment
	assigning    bool          // the leader's assignment of this generation is being written
	began        time.Time     // when the latest rebalance did
	last         lastJoin

	offsets  map[TopicPartition]offsets.Offset
	inFlight map[TopicPartition]int                      // commits that are being written
	txn      map[int64]map[TopicPartition]offsets.Offset // by producer: committed in a transaction that is open

	txnWrites map[int64]*txnWrites // by producer: what is being written of its transaction, and has been

	rebalances uint64 // that began here

	now  time.Time // of the event at hand
	out  Effects   // of the event at hand
	next time.Time // no deadline is before this one; zero when there is none
}

// member is one that joined, or joins.
type member struct {
	id                   string
	instance             *string
	clientID, clientHost string
	rebalance, session   time.Duration
	protocols            []Protocol     // by preference, no name twice
	index                map[string]int // of the protocols, by name
	assignment           []byte
	isNew                bool      // never had an answer to its join
	pendingSync          bool      // hasn't asked for its assignment in this generation
	join, sync           Ticket    // of the requests that wait
	deadline             time.Time // of its session; zero while nothing counts against it
}

// NewGroup makes an empty group.
func NewGroup(id string, cfg *Config, now time.Time) *Group {
	return &Group{
		id: id, cfg: cfg, state: Empty, since: now.UnixMilli(),
		byID: map[string]*member{}, offers: map[string]int{}, offsets: map[TopicPartition]offsets.Offset{},
	}
}

// State is the group's state.
func (g *Group) State() State { return g.state }

// Vacant reports whether nothing would be lost by forgetting the group.
func (g *Group) Vacant() bool {
	return g.state == Empty && g.generation == 0 && g.protocolType == "" && len(g.pending) == 0 &&
		len(g.offsets) == 0 && len(g.inFlight) == 0 && len(g.txn) == 0 && len(g.txnWrites) == 0
}

// Next is when the group wants to be told the time with Tick, at the latest; zero for never. It may be earlier than
// needed, because deadlines that move away aren't followed.
func (g *Group) Next() time.Time { return g.next }

// Tick tells the group the time, so that what is overdue happens.
func (g *Group) Tick(now time.Time) Effects {
	g.begin(now)
	g.expirePending()
	g.expireSessions()
	if due(g.syncDeadline, now) {
		g.expireSync()
	}
	fx := g.end()
	g.next = time.Time{}
	g.arm(g.joinDeadline)
	g.arm(g.syncDeadline)
	for _, deadline := range g.pending {
		g.arm(deadline)
	}
	for _, m := range g.members {
		g.arm(m.deadline)
	}
	return fx
}

// Unload answers everybody who waits: the group goes to another broker, or away.
func (g *Group) Unload(now time.Time) Effects {
	g.begin(now)
	for _, m := range g.members {
		g.answerJoin(m, g.joinError(m.id, ErrNotCoordinator))
		g.answerSync(m, SyncAnswer{Err: ErrNotCoordinator})
	}
	g.become(Dead)
	fx := g.end()
	g.next = time.Time{}
	return fx
}

func (g *Group) begin(now time.Time) { g.now, g.out = now, Effects{} }

// end finishes an event: a rebalance that nobody is missing from, or whose time is up, completes.
func (g *Group) end() Effects {
	if g.state == PreparingRebalance {
		switch {
		case due(g.joinDeadline, g.now):
			g.joinTimeUp()
		case !g.initial && g.allJoined():
			g.completeJoin(false)
		}
	}
	fx := g.out
	g.out = Effects{}
	return fx
}

func due(deadline, now time.Time) bool { return !deadline.IsZero() && !deadline.After(now) }

// arm makes sure that the group is woken at t.
func (g *Group) arm(t time.Time) {
	if !t.IsZero() && (g.next.IsZero() || t.Before(g.next)) {
		g.next = t
	}
}

func (g *Group) become(s State) {
	if s == PreparingRebalance {
		g.rebalances++
	}
	g.state, g.since = s, g.now.UnixMilli()
	if s != PreparingRebalance {
		g.joinDeadline, g.initial = time.Time{}, false
	}
	if s != CompletingRebalance && s != Stable {
		g.syncDeadline = time.Time{}
	}
}

// touch starts the member's session anew.
func (g *Group) touch(m *member) {
	m.deadline = g.now.Add(m.session)
	g.arm(m.deadline)
}

func (g *Group) rebalanceTimeout() (d time.Duration) {
	for _, m := range g.members {
		d = max(d, m.rebalance)
	}
	return d
}

// check finds the member that a request speaks of: it must exist and, when the request names an instance, be the one
// that holds it.
func (g *Group) check(id string, instance *string) (*member, error) {
	if instance != nil {
		switch holder, ok := g.instances[*instance]; {
		case !ok:
			return nil, ErrUnknownMember
		case holder != id:
			return nil, ErrFencedInstance
		}
	}
	if m := g.byID[id]; m != nil {
		return m, nil
	}
	return nil, ErrUnknownMember
}

// add takes in a member. The first one leads.
func (g *Group) add(m *member) {
	if g.leader == "" {
		g.leader = m.id
	}
	g.members = append(g.members, m)
	g.byID[m.id] = m
	for name := range m.index {
		g.offers[name]++
	}
	if m.instance != nil {
		if g.instances == nil {
			g.instances = map[string]string{}
		}
		g.instances[*m.instance] = m.id
	}
	delete(g.pending, m.id)
}

// drop takes a member out and answers what it waits for. The longest-standing member inherits the lead.
func (g *Group) drop(m *member) {
	g.answerJoin(m, g.joinError("", ErrUnknownMember))
	g.answerSync(m, SyncAnswer{Err: ErrUnknownMember})
	g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
	delete(g.byID, m.id)
	g.forgetOffers(m)
	if m.instance != nil && g.instances[*m.instance] == m.id {
		delete(g.instances, *m.instance)
	}
	if g.leader == m.id {
		g.leader = ""
		if len(g.members) > 0 {
			g.leader = g.members[0].id
		}
	}
}

func (g *Group) isPending(id string) bool {
	_, ok := g.pending[id]
	return ok
}

func (g *Group) forgetOffers(m *member) {
	for name := range m.index {
		if g.offers[name]--; g.offers[name] == 0 {
			delete(g.offers, name)
		}
	}
}

func (g *Group) answerJoin(m *member, a JoinAnswer) bool {
	if m.join == 0 {
		return false
	}
	g.out.Answers = append(g.out.Answers, Answer{Ticket: m.join, Join: &a})
	m.join = 0
	g.joining--
	return true
}

func (g *Group) answerSync(m *member, a SyncAnswer) bool {
	if m.sync == 0 {
		return false
	}
	g.out.Answers = append(g.out.Answers, Answer{Ticket: m.sync, Sync: &a})
	m.sync = 0
	return true
}
