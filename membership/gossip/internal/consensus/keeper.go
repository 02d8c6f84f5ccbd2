package consensus

import "time"

// keeper decides when sessions are over, at the leader. It has no clock of its own.
//
// Time in which this process didn't run doesn't count against others: what they said meanwhile lies unread. So a session's end takes two looks. The
// first, a little before it is due, suspects the session; the second ends it if there was nothing to hear in between, and this process ran on time for
// both. When a look comes late, all get the time that it was late by, and are suspected anew.
type keeper struct {
	timeout   time.Duration
	grace     time.Duration // between the two looks
	slack     time.Duration // how late a look may come
	deadlines map[uint64]time.Time
	suspected map[uint64]time.Time // since when
	ending    map[uint64]bool      // sessions that are being ended: they can't be kept any more
	planned   time.Time            // when due is to be called at the latest, as next has said
}

// newKeeper gives each session a full timeout.
func newKeeper(timeout time.Duration, sessions []uint64, now time.Time) *keeper {
	k := &keeper{timeout: timeout, grace: timeout / 8, slack: timeout / 16, deadlines: map[uint64]time.Time{}, suspected: map[uint64]time.Time{}, ending: map[uint64]bool{}}
	for _, id := range sessions {
		k.open(id, now)
	}
	return k
}

// open begins to keep a session.
func (k *keeper) open(id uint64, now time.Time) { k.deadlines[id] = now.Add(k.timeout) }

// keep gives a session a full timeout from now, unless it is over.
func (k *keeper) keep(id uint64, now time.Time) bool {
	if _, ok := k.deadlines[id]; !ok || k.ending[id] {
		return false
	}
	k.deadlines[id] = now.Add(k.timeout)
	delete(k.suspected, id)
	return true
}

// close forgets a session that has ended.
func (k *keeper) close(id uint64) {
	delete(k.deadlines, id)
	delete(k.suspected, id)
	delete(k.ending, id)
}

// look is when a session is to be looked at next.
func (k *keeper) look(id uint64) time.Time {
	d := k.deadlines[id]
	since, ok := k.suspected[id]
	if !ok {
		return d.Add(-k.grace)
	}
	if second := since.Add(k.grace); second.After(d) {
		return second
	}
	return d
}

// next says when due is to be called, zero while there is nothing to wait for.
func (k *keeper) next() time.Time {
	k.planned = time.Time{}
	for id := range k.deadlines {
		if k.ending[id] {
			continue
		}
		if at := k.look(id); k.planned.IsZero() || at.Before(k.planned) {
			k.planned = at
		}
	}
	return k.planned
}

// due gives the sessions that are to be ended now.
func (k *keeper) due(now time.Time) (over []uint64) {
	if late := now.Sub(k.planned); !k.planned.IsZero() && late > k.slack {
		for id := range k.deadlines {
			k.deadlines[id] = k.deadlines[id].Add(late)
		}
		clear(k.suspected)
		return nil
	}
	for id := range k.deadlines {
		if k.ending[id] || now.Before(k.look(id)) {
			continue
		}
		if _, ok := k.suspected[id]; !ok {
			k.suspected[id] = now
			continue
		}
		k.ending[id] = true
		over = append(over, id)
	}
	return over
}
