package partition

// Status is how a replica is, in numbers.
type Status struct {
	ID          ID
	Leader      int32 // broker id, -1 none
	LeaderEpoch int32
	Leads       bool // this replica leads
	Preferred   bool // … and is the preferred leader
	Offline     bool // its log directory failed
	// What follows is known of a partition that this replica leads.
	Replicas, InSync, MinInSync int
	Lag                         int64 // how many offsets the slowest follower that fetches is behind
	// Behind is known of a partition that this replica follows: how many offsets it lacks of what its leader last said is committed.
	Behind int64
}

// FollowerLag is how many offsets a follower is behind its leader.
type FollowerLag struct {
	Broker  int32
	Records int64
}

// UnderReplicated says that replicas of a partition that this one leads are out of sync.
func (s Status) UnderReplicated() bool { return s.Leads && s.InSync < s.Replicas }

// UnderMinISR says that a partition that this replica leads refuses acks=all; AtMinISR that it is about to.
func (s Status) UnderMinISR() bool { return s.Leads && s.InSync < s.MinInSync }

// AtMinISR says that the next replica to fall out of sync makes a partition that this replica leads refuse acks=all.
func (s Status) AtMinISR() bool { return s.Leads && s.InSync == s.MinInSync }

// Status says how the replica is now.
func (p *Partition) Status() Status {
	v := p.view.Load()
	end := p.log.EndOffset()
	p.mu.Lock()
	defer p.mu.Unlock()
	st := &p.state
	s := Status{ID: p.id, Leader: st.Leader, LeaderEpoch: st.LeaderEpoch, Leads: st.role == RoleLeader, Offline: v.offline != nil}
	if !s.Leads {
		if st.Leader >= 0 {
			s.Behind = max(0, p.committedThere.Load()-end)
		}
		return s
	}
	s.Replicas, s.InSync, s.MinInSync = len(st.Replicas), len(st.ISR), min(st.minISR, len(st.Replicas))
	s.Preferred = len(st.Replicas) > 0 && st.Replicas[0] == st.self
	for i := range st.remotes {
		if r := &st.remotes[i]; r.everFetched {
			s.Lag = max(s.Lag, end-r.end)
		}
	}
	return s
}

// FollowerLags adds to a list how far the followers are behind that have fetched from this replica since it leads; none when it doesn't.
func (p *Partition) FollowerLags(to []FollowerLag) []FollowerLag {
	end := p.log.EndOffset()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.state.remotes {
		if r := &p.state.remotes[i]; r.everFetched && p.state.role == RoleLeader {
			to = append(to, FollowerLag{r.id, max(0, end-r.end)})
		}
	}
	return to
}
