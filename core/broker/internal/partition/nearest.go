package partition

import "slices"

// Nearest gives the replica that a consumer in some rack should read an offset from (KIP-392), as Kafka's RackAwareReplicaSelector chooses:
// with the leader in its rack, the leader; else the in-sync follower there that has the offset and has come furthest. ok is false when that
// is this replica, the leader, or when leaderEpoch (-1: any) isn't its own; then it reads, or says what is wrong.
func (p *Partition) Nearest(offset int64, leaderEpoch int32, inRack func(broker int32) bool) (broker int32, ok bool) {
	if _, err := p.leading(leaderEpoch); err != nil || inRack(p.state.self) {
		return -1, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.state.nearest(offset, inRack)
	if r == nil {
		return -1, false
	}
	return r.id, true
}

// nearest is the best of the followers for a consumer; nil for none.
func (s *state) nearest(offset int64, inRack func(broker int32) bool) *remote {
	var best *remote
	for i := range s.remotes {
		r := &s.remotes[i]
		switch {
		case s.role != RoleLeader, r.start > offset, r.start < 0, r.end < offset, !slices.Contains(s.ISR, r.id), !inRack(r.id), !s.isAlive(r.id):
		case best == nil, r.end > best.end, r.end == best.end && r.caughtUp.After(best.caughtUp):
			best = r
		}
	}
	return best
}

// Offsets are those that an answer carries that has no records: what Read fills in, without reading. Errors as Read's.
func (p *Partition) Offsets(leaderEpoch int32) (ReadResult, error) {
	if _, err := p.serving(leaderEpoch); err != nil {
		return ReadResult{}, err
	}
	return p.offsets(), nil
}
