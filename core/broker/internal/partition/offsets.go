package partition

import "github.com/barnabas-mq/barnabas/core/log"

// Special timestamps of ListOffsets.
const (
	Latest        int64 = -1
	Earliest      int64 = -2
	MaxTimestamp  int64 = -3 // KIP-734
	EarliestLocal int64 = -4 // KIP-405; without tiered storage the same as Earliest
	LatestTiered  int64 = -5 // KIP-1005; without tiered storage there is none
)

// Debugging is the replica id of tools that may ask any replica.
const Debugging int32 = -2

// ListOffset is one partition of a ListOffsets request.
type ListOffset struct {
	Timestamp   int64 // milliseconds, or a special one
	Isolation   Isolation
	ReplicaID   int32 // a broker, Consumer or Debugging
	LeaderEpoch int32 // -1 unchecked
}

// ListOffset finds an offset by time: the first record at or after the timestamp, below what the caller may see. Offset and
// timestamp are -1 when there is none.
//
// Errors: those of leadership, ErrOffsetNotAvailable to consumers of a leader that has only just begun, and
// ErrUnsupportedTimestamp.
func (p *Partition) ListOffset(q ListOffset) (offset, timestamp int64, leaderEpoch int32, err error) {
	none := func(err error) (int64, int64, int32, error) { return -1, -1, -1, err }
	v, err := p.leading(q.LeaderEpoch)
	if err == ErrNotLeader && q.ReplicaID == Debugging && v.role == RoleFollower {
		err = nil
	}
	if err != nil {
		return none(err)
	}
	if q.Timestamp < LatestTiered {
		return none(ErrUnsupportedTimestamp)
	}
	now := p.offsets()
	upTo := now.HighWatermark
	switch {
	case q.ReplicaID >= 0:
		upTo = p.log.EndOffset()
	case q.Isolation == ReadCommitted:
		upTo = now.LastStableOffset
	}
	switch q.Timestamp {
	case Earliest, EarliestLocal:
		return now.LogStartOffset, -1, p.log.EpochAt(now.LogStartOffset), nil
	case LatestTiered:
		return none(nil)
	}
	if q.ReplicaID == Consumer && !p.knowsHighWatermark() {
		return none(ErrOffsetNotAvailable)
	}
	switch q.Timestamp {
	case Latest:
		return upTo, -1, v.epoch, nil
	case MaxTimestamp:
		return p.found(p.log.MaxTimestamp(upTo))
	}
	return p.found(p.log.OffsetForTimestamp(q.Timestamp, upTo))
}

func (p *Partition) found(at log.TimeOffset, found bool, err error) (int64, int64, int32, error) {
	if err != nil || !found {
		return -1, -1, -1, p.failed(err)
	}
	return at.Offset, at.Timestamp, at.LeaderEpoch, nil
}

func (p *Partition) knowsHighWatermark() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.role != RoleLeader || p.state.knowsHighWatermark()
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest epoch not above the one asked for and the offset where it ends;
// -1, -1 when unknown (KIP-101, KIP-279). currentLeaderEpoch is what the caller believes, -1 unchecked.
func (p *Partition) EndOffsetForEpoch(currentLeaderEpoch, epoch int32) (e int32, end int64, err error) {
	if _, err := p.leading(currentLeaderEpoch); err != nil {
		return -1, -1, err
	}
	e, end = p.log.EndOffsetForEpoch(epoch)
	return e, end, nil
}

// DeleteRecords moves the log start offset up to offset (-1: the high watermark), so that older records are neither served
// nor, in time, kept. It returns the low watermark: the lowest log start offset of all replicas.
//
// Errors: those of leadership, ErrPolicy when the topic isn't deleted by policy, and ErrOffsetOutOfRange beyond the high watermark.
func (p *Partition) DeleteRecords(offset int64) (lowWatermark int64, err error) {
	p.role.RLock()
	defer p.role.RUnlock()
	if _, err := p.leading(-1); err != nil {
		return -1, err
	}
	if !p.log.Config().Delete {
		return -1, ErrPolicy
	}
	hw := p.log.HighWatermark()
	if offset == -1 {
		offset = hw
	}
	if offset < 0 || offset > hw {
		return -1, ErrOffsetOutOfRange
	}
	before := p.log.StartOffset()
	start, err := p.log.AdvanceStartOffset(offset)
	if err != nil {
		return -1, p.failed(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if start != before {
		p.signal(all)
	}
	return p.state.lowWatermark(start), nil
}
