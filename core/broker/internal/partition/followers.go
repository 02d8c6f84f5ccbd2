package partition

import (
	"slices"
	"time"
)

// Follower is what a leader knows of another replica.
type Follower struct {
	Broker int32
	// End is the offset of its last fetch, -1 before the first under this leader: all before it has.
	End int64
	// CaughtUp is when it was last known to have everything, or, until it was, when this broker began to lead. LastFetch is zero before
	// the first fetch.
	CaughtUp, LastFetch time.Time
	InSync              bool
}

// Standing is how a replica stands, as of one moment.
type Standing struct {
	Assignment
	Role    Role
	Offline error // why the replica's log directory has failed, or nil

	// The rest is a leader's.
	End       int64 // the log end offset, as far as it counts
	HW        int64
	MinISR    int  // min.insync.replicas of the topic
	UnderMin  bool // acks=all is refused
	Followers []Follower
	// Proposed is the in-sync set that the controller was asked to record and hasn't answered about; nil: none.
	Proposed []int32
}

// Standing tells how the replica stands.
func (p *Partition) Standing() Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.state
	out := Standing{Assignment: p.assignment(), Role: s.role, Offline: p.view.Load().offline, End: s.end, HW: s.hw, MinISR: s.minISR, UnderMin: s.underMinISR()}
	for i := range s.remotes {
		r := &s.remotes[i]
		f := Follower{Broker: r.id, End: r.end, CaughtUp: r.caughtUp, InSync: slices.Contains(s.ISR, r.id)}
		if r.everFetched {
			f.LastFetch = r.lastFetch
		}
		out.Followers = append(out.Followers, f)
	}
	if s.proposal != nil {
		out.Proposed = slices.Clone(s.proposal.ISR)
	}
	return out
}
