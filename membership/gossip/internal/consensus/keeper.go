package consensus

import "time"

// keeper decides when sessions are over, at the leader. It has no clock of its own.
type keeper struct {
	timeout   time.Duration
	deadlines map[uint64]time.Time
	ending    map[uint64]bool // sessions that are being ended: they can't be kept any more
	planned   time.Time       // when due is to be called at the latest, as next has said
}

// newKeeper gives each session a full timeout.
func newKeeper(timeout time.Duration, sessions []uint64, now time.Time) *keeper {
	k := &keeper{timeout: timeout, deadlines: map[uint64]time.Time{}, ending: map[uint64]bool{}}
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
	return true
}

// close forgets a session that has ended.
func (k *keeper) close(id uint64) {
	delete(k.deadlines, id)
	delete(k.ending, id)
}

// next says when due is to be called, zero while there is nothing to wait for.
func (k *keeper) next() time.Time {
	k.planned = time.Time{}
	for id, d := range k.deadlines {
		if !k.ending[id] && (k.planned.IsZero() || d.Before(k.planned)) {
			k.planned = d
		}
	}
	return k.planned
}

// due gives the sessions that are to be ended now. When it is called much later than planned, this process hasn't run meanwhile and
// couldn't hear anybody: nobody is to blame for that, and all get the time that is missing.
func (k *keeper) due(now time.Time) (over []uint64) {
	if late := now.Sub(k.planned); !k.planned.IsZero() && late > k.timeout/4 {
		for id := range k.deadlines {
			k.deadlines[id] = k.deadlines[id].Add(late)
		}
		return nil
	}
	for id, d := range k.deadlines {
		if !k.ending[id] && !now.Before(d) {
			k.ending[id] = true
			over = append(over, id)
		}
	}
	return over
}
