package replication

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// phase is what a partition waits for.
type phase uint8

const (
	fetching  phase = iota // its next records
	cutting                // to be truncated to its high watermark: its log has no leader epochs to compare
	comparing              // the leader's answer where the last epoch of its log ends (OffsetForLeaderEpoch)
	lost                   // the leader's answer where its log begins and ends: what was asked for isn't within
	idle                   // a change of leadership: nothing can be done under this one
)

// follower is a partition that a fetcher fetches.
type follower struct {
	id      partition.ID
	topicID [16]byte
	p       *partition.Partition

	at    partition.Position
	phase phase
	until time.Time // when it may be tried again; zero: now
	tries int       // errors since the last answer that helped
	hw    int64     // the leader's, as of its last answer; -1 before
	// doubted is set from the leader's word that the logs differ until that has led to a cut.
	doubted bool

	member // of the fetch session
}

// machine decides for the partitions of one fetcher. It is told what happened and when, and says what is to be done; it does no I/O, starts
// nothing and looks at no clock. It belongs to the fetcher's goroutine.
type machine struct {
	backoff time.Duration // the longest pause after an error: replica.fetch.backoff.ms
	// quota says until when a partition that lags has to wait for a quota; the zero time when it hasn't.
	quota func(f *follower, now time.Time) time.Time

	parts   map[partition.ID]*follower
	work    []*follower // those in another phase than fetching and idle
	delayed []*follower // those that wait for their time; they may be in work, too
	session session
}

// firstPause is the pause after a first error; it doubles with each further one, up to the backoff. Most first errors are those of a
// leader that hears of its leadership a moment later than its followers.
const firstPause = 10 * time.Millisecond

func newMachine(backoff time.Duration, quota func(*follower, time.Time) time.Time) *machine {
	return &machine{backoff: backoff, quota: quota, parts: map[partition.ID]*follower{}, session: newSession()}
}

// add begins to fetch a partition, whose log stands at a position and has that high watermark; or begins anew, under another leader
// epoch.
func (m *machine) add(p *partition.Partition, id partition.ID, topicID [16]byte, at partition.Position, hw int64, now time.Time) *follower {
	m.remove(id)
	f := &follower{id: id, topicID: topicID, p: p, hw: -1}
	m.parts[id] = f
	m.stand(f, at)
	if at.LastEpoch < 0 && hw < at.Offset {
		// Nothing tells what of this is the leader's, save that what was committed is.
		m.enter(f, cutting)
	}
	m.hold(f, now)
	return f
}

// remove ends fetching a partition.
func (m *machine) remove(id partition.ID) {
	f, ok := m.parts[id]
	if !ok {
		return
	}
	delete(m.parts, id)
	m.enter(f, idle)
}

// enter puts a partition into a phase, and takes it to those who have to know.
func (m *machine) enter(f *follower, p phase) {
	was := f.phase
	f.phase = p
	if p == fetching {
		m.session.want(f)
	} else {
		m.session.drop(f)
	}
	inWork := func(p phase) bool { return p != fetching && p != idle }
	switch {
	case inWork(was) && !inWork(p):
		m.work = slices.DeleteFunc(m.work, func(x *follower) bool { return x == f })
	case !inWork(was) && inWork(p):
		m.work = append(m.work, f)
	}
	if p == idle && !f.until.IsZero() {
		m.rested(f)
	}
}

func (m *machine) rested(f *follower) {
	f.until = time.Time{}
	m.delayed = slices.DeleteFunc(m.delayed, func(x *follower) bool { return x == f })
}

// stand takes note of where a log stands, from where it is fetched next.
func (m *machine) stand(f *follower, at partition.Position) {
	f.at = at
	m.enter(f, fetching)
}

// todo is what a fetcher does next.
type todo struct {
	phase phase       // one of cutting, comparing, lost: do that for those partitions
	parts []*follower // valid until the machine is told something
	fetch bool        // or fetch
	until time.Time   // or wait that long; zero: until there is something new
}

// next says what is to be done.
func (m *machine) next(now time.Time) todo {
	var until time.Time
	m.delayed = slices.DeleteFunc(m.delayed, func(f *follower) bool {
		if !f.until.After(now) && f.phase == fetching {
			if owed := m.quota(f, now); !owed.IsZero() {
				f.until = owed
			}
		}
		if f.until.After(now) {
			if until.IsZero() || f.until.Before(until) {
				until = f.until
			}
			return false
		}
		f.until = time.Time{}
		if f.phase == fetching {
			m.session.want(f)
		}
		return true
	})
	for _, p := range [...]phase{cutting, comparing, lost} {
		var parts []*follower
		for _, f := range m.work {
			if f.phase == p && f.until.IsZero() {
				parts = append(parts, f)
			}
		}
		if len(parts) > 0 {
			return todo{phase: p, parts: parts}
		}
	}
	if m.session.wanted > 0 {
		return todo{fetch: true, until: until}
	}
	return todo{until: until}
}

// pause lets a partition wait after an error.
func (m *machine) pause(f *follower, now time.Time) {
	if f.phase == idle {
		return
	}
	m.session.drop(f)
	if f.until.IsZero() {
		m.delayed = append(m.delayed, f)
	}
	f.until = now.Add(pauseAfter(f.tries, m.backoff))
	f.tries++
}

// hold lets a partition wait if the quota asks for that.
func (m *machine) hold(f *follower, now time.Time) {
	until := m.quota(f, now)
	if f.phase != fetching || !f.until.IsZero() || until.IsZero() {
		return
	}
	m.session.drop(f)
	m.delayed = append(m.delayed, f)
	f.until = until
}

// lags says whether a partition is behind its leader, as far as that is known.
func (f *follower) lags() bool { return f.hw < 0 || f.at.Offset < f.hw }

func pauseAfter(tries int, most time.Duration) time.Duration {
	return min(most, firstPause<<min(tries, 20))
}

// step is what is to be done with a partition's log after an answer of the leader.
type step struct {
	do deed
	to int64 // for truncate and restart: the offset
}

type deed uint8

const (
	nothing     deed = iota
	takeRecords      // AppendAsFollower
	truncate         // TruncateAsFollower
	restart          // RestartAsFollower
)

// lookUp finds in a follower's log the largest epoch up to one, and its end, as core/log.EndOffsetForEpoch does.
type lookUp func(epoch int32) (int32, int64)

// answered takes the leader's answer to a fetch.
func (m *machine) answered(f *follower, r *fetchResult, own lookUp, now time.Time) step {
	if f.phase != fetching {
		return step{}
	}
	switch {
	case r.code == kerr.OffsetOutOfRange.Code:
		m.enter(f, lost)
		return step{}
	case r.code != 0:
		m.refused(f, r.code, now)
		return step{}
	case r.diverging:
		return m.diverged(f, r.divergeAt, r.divergeTo, own, now)
	}
	f.hw, f.tries = r.hw, 0
	return step{do: takeRecords}
}

// refused takes an error code.
func (m *machine) refused(f *follower, code int16, now time.Time) {
	if code == kerr.FencedLeaderEpoch.Code {
		m.enter(f, idle) // there is a newer one: the controller will tell
		return
	}
	m.pause(f, now)
}

// diverged takes the leader's word that of its epochs up to the one that was asked for, the largest is epoch and ends at end (KIP-279): what
// a follower has beyond isn't the leader's.
func (m *machine) diverged(f *follower, epoch int32, end int64, own lookUp, now time.Time) step {
	to := min(end, f.at.Offset)
	done := true
	if ownEpoch, ownEnd := own(epoch); ownEnd >= 0 {
		if to = min(ownEnd, f.at.Offset); ownEpoch == epoch {
			to = min(to, end)
		} else {
			done = false // it doesn't know that epoch, so what it has from before is to be compared again
		}
	}
	if to < 0 {
		m.pause(f, now)
		return step{}
	}
	f.doubted = f.phase == fetching || !done
	if !done {
		m.enter(f, comparing)
	} else if f.phase != fetching {
		m.enter(f, fetching)
	}
	return step{do: truncate, to: to}
}

// compared takes the leader's answer where the last epoch of the follower's log ends there; (-1, -1) when it doesn't know.
func (m *machine) compared(f *follower, code int16, epoch int32, end int64, own lookUp, hw int64, now time.Time) step {
	switch {
	case f.phase != comparing:
		return step{}
	case code != 0:
		m.refused(f, code, now)
		return step{}
	case end < 0:
		m.enter(f, fetching)
		return step{do: truncate, to: hw}
	case epoch < 0:
		m.enter(f, fetching)
		return step{do: truncate, to: min(end, f.at.Offset)}
	}
	return m.diverged(f, epoch, end, own, now)
}

// ranged takes where the leader's log begins and ends, for a follower that stands outside.
func (m *machine) ranged(f *follower, code int16, start, end int64, now time.Time) step {
	switch {
	case f.phase != lost:
		return step{}
	case code != 0:
		m.refused(f, code, now)
		return step{}
	case end < f.at.Offset:
		// The leader lost what the follower has: an unclean election.
		m.enter(f, fetching)
		return step{do: truncate, to: end}
	case start > f.at.Offset:
		m.enter(f, fetching)
		return step{do: restart, to: start}
	}
	// It has moved into the range meanwhile, or the leader can't tell anything about its epoch.
	m.enter(f, fetching)
	m.pause(f, now)
	return step{}
}

// did takes what became of a step: where the log stands now, or the error.
func (m *machine) did(f *follower, do deed, at partition.Position, err error, now time.Time) {
	switch {
	case f.phase == idle:
	case err == nil:
		stuck := f.doubted && at == f.at
		f.at, f.doubted = at, false
		if f.phase == cutting {
			m.enter(f, fetching)
		} else if f.phase == fetching {
			m.session.want(f)
		}
		if stuck {
			// The leader wants a cut that changes nothing: whatever is wrong, it isn't mended by asking at once again.
			m.pause(f, now)
		} else if do != takeRecords {
			f.tries = 0
		}
	case errors.Is(err, partition.ErrNotFollower), errors.Is(err, partition.ErrUnknownPartition), errors.Is(err, partition.ErrOffline):
		m.enter(f, idle)
	default:
		f.at = at
		m.pause(f, now)
	}
}
