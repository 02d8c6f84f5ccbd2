package partition

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// Role is what a replica is at the moment.
type Role int8

// The roles of a replica.
const (
	RoleNone     Role = iota // no LeaderAndIsr yet: it serves nothing
	RoleFollower             // fetches from the leader
	RoleLeader               // takes appends, serves fetches, moves the high watermark
)

// Assignment is what the controller has decided for a partition, as LeaderAndIsr brings it.
type Assignment struct {
	Leader          int32 // broker id, -1 none
	LeaderEpoch     int32 // rises with each change of leader or ISR that the controller makes
	PartitionEpoch  int32 // rises with each write of the partition's state
	ControllerEpoch int32
	Replicas        []int32 // broker ids, the preferred leader first
	ISR             []int32 // broker ids of the in-sync replicas
	Adding          []int32 // those of Replicas that a reassignment brings in
	Removing        []int32 // those of Replicas that a reassignment takes away
}

// ISRProposal is a new in-sync set that a leader asks the controller to record (AlterPartition, KIP-497).
type ISRProposal struct {
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []int32
}

// state decides for one replica. It is told what happens and when, and answers with effects; it does no I/O, starts nothing
// and looks at no clock. Its caller holds the partition's lock.
type state struct {
	id   ID
	self int32
	role Role
	Assignment

	minISR int           // min.insync.replicas of the topic
	maxLag time.Duration // replica.lag.time.max.ms

	end        int64    // our log end offset, as far as it counts for the high watermark
	hw         int64    // high watermark
	epochStart int64    // log end offset when we became leader under LeaderEpoch
	remotes    []remote // the other replicas, while we lead
	proposal   *ISRProposal
	// notBefore is when the next proposal may be made, after one that was refused: what made the controller refuse it takes a while to go.
	notBefore time.Time
	// alive says whether a broker is registered, as far as this one knows; nil: all are.
	alive func(broker int32) bool
}

// refusedPause is the time between a refused proposal and the next.
const refusedPause = 500 * time.Millisecond

// remote is what a leader knows of a follower.
type remote struct {
	id          int32
	end         int64 // its log end offset: the offset of its last fetch; -1 unknown
	start       int64 // its log start offset
	caughtUp    time.Time
	lastFetch   time.Time
	endThen     int64 // our log end offset at its last fetch
	everFetched bool
}

// effects are what a decision asks of the caller.
type effects struct {
	hwMoved  bool         // hw is a new, higher high watermark
	propose  *ISRProposal // ask the controller to record this ISR, then call isrAnswered
	lowMoved bool         // a follower's log start moved, and with it maybe the low watermark
	events   []journal.Event
}

// lead makes the replica the leader under a. end is the log end offset, hw the high watermark so far.
func (s *state) lead(a Assignment, end, hw int64, now time.Time) effects {
	newEpoch := s.role != RoleLeader || a.LeaderEpoch != s.LeaderEpoch
	s.role, s.Assignment, s.proposal, s.notBefore = RoleLeader, a, nil, time.Time{}
	s.end, s.hw = end, hw
	if newEpoch {
		// What followers hold under the new epoch is unknown until they fetch: only then may the high watermark move.
		s.epochStart = end
		s.remotes = s.remotes[:0]
	}
	s.remotes = slices.DeleteFunc(s.remotes, func(r remote) bool { return !slices.Contains(a.Replicas, r.id) })
	for _, id := range a.Replicas {
		if id != s.self && s.remote(id) == nil {
			s.remotes = append(s.remotes, remote{id: id, end: -1, start: -1, caughtUp: now})
		}
	}
	return s.advance(effects{}, now)
}

// follow makes the replica a follower under a, of a leader that may be -1.
func (s *state) follow(a Assignment) {
	s.role, s.Assignment, s.proposal, s.remotes = RoleFollower, a, nil, nil
}

// appended tells a leader that its log now counts up to end (exclusive).
func (s *state) appended(end int64, now time.Time) effects {
	if s.role != RoleLeader || end <= s.end {
		return effects{}
	}
	s.end = end
	return s.advance(effects{}, now)
}

// fetched tells a leader that follower id fetches from offset on, which proves that it holds all before (KIP-16's rule of
// what is caught up). It reports false when id is no replica of this partition.
func (s *state) fetched(id int32, offset, start int64, now time.Time) (effects, bool) {
	r := s.remote(id)
	if s.role != RoleLeader || r == nil {
		return effects{}, false
	}
	switch {
	case offset >= s.end:
		r.caughtUp = now
	case r.everFetched && offset >= r.endThen && r.lastFetch.After(r.caughtUp):
		// It has now all that we had when it fetched last: at that time it was on the way to being caught up.
		r.caughtUp = r.lastFetch
	}
	e := effects{lowMoved: r.start != start}
	r.end, r.start = offset, start
	r.lastFetch, r.endThen, r.everFetched = now, s.end, true

	if s.mayPropose(now) && !slices.Contains(s.ISR, id) && offset >= s.hw && offset >= s.epochStart && s.isAlive(id) {
		e.propose = s.proposeISR(append(slices.Clone(s.ISR), id))
		e.events = append(e.events, journal.CaughtUp{Topic: s.id.Topic, Partition: s.id.Partition, Follower: id, End: offset})
	}
	return s.advance(e, now), true
}

// tick lets a leader drop followers that have not been caught up for maxLag. It wants to be called every maxLag/2, and when brokers come
// or go.
func (s *state) tick(now time.Time) effects {
	if s.role != RoleLeader {
		return effects{}
	}
	e := s.advance(effects{}, now) // who counted may be gone, or lag, by now
	if !s.mayPropose(now) {
		return e
	}
	in := make([]int32, 0, len(s.ISR))
	for _, id := range s.ISR {
		if r := s.remote(id); r == nil || !s.lagging(r, now) {
			in = append(in, id)
		}
	}
	if len(in) < len(s.ISR) {
		e.propose = s.proposeISR(in)
		for _, id := range s.ISR {
			if !slices.Contains(in, id) {
				e.events = append(e.events, s.fellBehind(s.remote(id), len(in), now))
			}
		}
	}
	return e
}

// isrAnswered ends the proposal in flight, if it is that one. With ok, the controller has recorded isr under partitionEpoch; without, the
// committed set stands, and a later fetch or tick may propose again.
func (s *state) isrAnswered(to ISRProposal, ok bool, isr []int32, partitionEpoch int32, now time.Time) effects {
	if s.role != RoleLeader || s.proposal == nil || !s.proposal.same(to) {
		return effects{}
	}
	s.proposal = nil
	var e effects
	switch {
	case !ok:
		s.notBefore = now.Add(refusedPause)
		e.events = append(e.events, journal.ISRRefused{Topic: s.id.Topic, Partition: s.id.Partition, Wanted: to.ISR})
	case partitionEpoch > s.PartitionEpoch:
		s.ISR, s.PartitionEpoch = slices.Clone(isr), partitionEpoch
	}
	return s.advance(e, now)
}

// fellBehind says what is known of a follower that is to leave the in-sync set.
func (s *state) fellBehind(r *remote, remaining int, now time.Time) journal.FellBehind {
	e := journal.FellBehind{Topic: s.id.Topic, Partition: s.id.Partition, Follower: r.id, Behind: -1, Lag: journal.Millis(now.Sub(r.caughtUp)),
		Fetched: r.everFetched, Allowed: journal.Millis(s.maxLag), BrokerUp: s.isAlive(r.id), LeaderEnd: s.end, Epoch: s.LeaderEpoch, Remaining: remaining}
	if r.everFetched {
		e.Behind, e.Unheard = s.end-r.end, journal.Millis(now.Sub(r.lastFetch))
	}
	return e
}

func (s *state) mayPropose(now time.Time) bool { return s.proposal == nil && !now.Before(s.notBefore) }

func (s *state) isAlive(broker int32) bool { return s.alive == nil || s.alive(broker) }

func (p *ISRProposal) same(other ISRProposal) bool {
	return p.LeaderEpoch == other.LeaderEpoch && p.PartitionEpoch == other.PartitionEpoch && slices.Equal(p.ISR, other.ISR)
}

// underMinISR says that fewer replicas are in sync than acks=all asks for: the smaller of min.insync.replicas and the number
// of replicas.
func (s *state) underMinISR() bool {
	return len(s.ISR) < min(s.minISR, len(s.Replicas))
}

// knowsHighWatermark says whether a leader's high watermark has reached the start of its own epoch: before, its predecessor
// may have committed more than we know (KIP-207).
func (s *state) knowsHighWatermark() bool { return s.hw >= s.epochStart }

// lowWatermark is the lowest log start offset among the replicas on living brokers, given ours: what DeleteRecords reports. It is -1 until
// all of them have said theirs.
func (s *state) lowWatermark(start int64) int64 {
	for i := range s.remotes {
		if r := &s.remotes[i]; s.isAlive(r.id) {
			start = min(start, r.start)
		}
	}
	return start
}

// advance raises the high watermark to the lowest log end offset of all who count: the in-sync replicas, those that a
// proposal in flight adds, and those caught up and about to be proposed, unless their broker is gone: nobody would propose
// those. It doesn't move while fewer replicas are in sync than min.insync.replicas asks for (as in Kafka 3.9).
func (s *state) advance(e effects, now time.Time) effects {
	if s.underMinISR() {
		return e
	}
	hw := s.end
	for i := range s.remotes {
		r := &s.remotes[i]
		counts := slices.Contains(s.ISR, r.id) ||
			s.proposal != nil && slices.Contains(s.proposal.ISR, r.id) ||
			r.everFetched && r.end >= s.hw && r.end >= s.epochStart && !s.lagging(r, now) && s.isAlive(r.id)
		if counts {
			hw = min(hw, r.end)
		}
	}
	if hw > s.hw {
		s.hw, e.hwMoved = hw, true
	}
	return e
}

func (s *state) lagging(r *remote, now time.Time) bool {
	return r.end < s.end && now.Sub(r.caughtUp) > s.maxLag
}

func (s *state) proposeISR(isr []int32) *ISRProposal {
	s.proposal = &ISRProposal{LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch, ISR: isr}
	return s.proposal
}

func (s *state) remote(id int32) *remote {
	for i := range s.remotes {
		if s.remotes[i].id == id {
			return &s.remotes[i]
		}
	}
	return nil
}
