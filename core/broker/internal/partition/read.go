package partition

import (
	"slices"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Isolation is how much of the log a consumer may see.
type Isolation int8

// The isolation levels of Fetch and ListOffsets.
const (
	ReadUncommitted Isolation = 0 // up to the high watermark
	ReadCommitted   Isolation = 1 // up to the last stable offset: no open transactions (KIP-98)
)

// Consumer is the replica id of whoever is no broker.
const Consumer int32 = -1

// Read is one partition of a fetch request.
type Read struct {
	Offset   int64 // the first offset wanted
	MaxBytes int
	// MinOneBatch lets the first batch come whole even when it is larger than MaxBytes (KIP-74).
	MinOneBatch bool
	// HardLimit is Fetch v0-v2: MaxBytes holds, if need be in the middle of the first batch.
	HardLimit bool
	Isolation Isolation
	// ReplicaID is the broker that fetches, or Consumer. A follower's fetch moves the high watermark.
	ReplicaID int32
	// ReplicaStart is that follower's log start offset.
	ReplicaStart int64
	// LeaderEpoch is the epoch that the caller knows, -1 unchecked (KIP-320).
	LeaderEpoch int32
	// LastFetchedEpoch is the epoch of the last record that the caller has, -1 unknown (KIP-595).
	LastFetchedEpoch int32
	// FollowerOK allows an answer by a follower, up to the high watermark it knows (KIP-392).
	FollowerOK bool
	// TopicID is the topic that the caller means, zero unchecked (KIP-516).
	TopicID [16]byte
}

// EpochEnd is the largest leader epoch not above the one asked for, and the offset where it ends.
type EpochEnd struct {
	Epoch int32
	End   int64
}

// ReadResult is the answer to a Read.
type ReadResult struct {
	// View has the batches, from the one that holds Offset on; nil when there are none. The caller releases it.
	View storage.View
	// Records is how many offsets the view spans, from Offset on.
	Records int64
	// Cut says that there is more, and MaxBytes is why the view ends.
	Cut              bool
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	// Aborted lists the aborted transactions that overlap with the view, for ReadCommitted.
	Aborted []log.AbortedTxn
	// Diverging is set, and View nil, when the caller's log parted from ours after that epoch and offset.
	Diverging *EpochEnd
}

// Read looks batches up. It never waits, and reads no record bytes itself.
//
// Errors: ErrUnknownPartition, ErrInconsistentTopicID, ErrOffline, ErrNotLeader, ErrFencedLeaderEpoch, ErrUnknownLeaderEpoch,
// and log.ErrOffsetOutOfRange; with the latter the offsets of the result are filled in.
func (p *Partition) Read(r Read) (ReadResult, error) {
	if r.TopicID != ([16]byte{}) && r.TopicID != p.topicID {
		return ReadResult{}, ErrInconsistentTopicID
	}
	v, err := p.serving(r.LeaderEpoch)
	if err != nil {
		return ReadResult{}, err
	}
	replica := r.ReplicaID >= 0
	if v.role != RoleLeader && (replica || !r.FollowerOK || v.role == RoleNone) {
		return ReadResult{}, ErrNotLeader
	}
	// Mostly followers have all there is: then the last epochs are the same, too, and there is nothing to look up.
	caughtUp := replica && r.Offset == p.log.EndOffset() && (r.LastFetchedEpoch < 0 || r.LastFetchedEpoch == p.log.LatestEpoch())
	if replica && !caughtUp && !p.isFollower(r.ReplicaID) || caughtUp && !p.fetched(r, v.epoch) {
		return ReadResult{}, r.notFollowed()
	}
	res := p.offsets()
	if caughtUp {
		return res, nil
	}
	if r.LastFetchedEpoch >= 0 {
		if res.Diverging, err = p.diverging(r); err != nil || res.Diverging != nil {
			return res, err
		}
	}
	upTo := res.HighWatermark
	switch {
	case replica:
		upTo = p.log.EndOffset()
	case r.Isolation == ReadCommitted:
		upTo = res.LastStableOffset
	}
	got, err := p.log.Read(log.ReadRequest{
		Offset:      r.Offset,
		MaxBytes:    r.MaxBytes,
		MinOneBatch: r.MinOneBatch,
		HardLimit:   r.HardLimit,
		UpTo:        upTo,
		Aborted:     r.Isolation == ReadCommitted && !replica,
	})
	if err != nil {
		return res, p.failed(err)
	}
	if replica {
		if !p.fetched(r, v.epoch) {
			if got.View != nil {
				got.View.Release()
			}
			return ReadResult{}, r.notFollowed()
		}
		res.HighWatermark = p.log.HighWatermark()
		if p.withheld(r.ReplicaID, got.View) {
			got.View.Release()
			return res, nil
		}
	}
	res.View, res.Cut, res.Aborted = got.View, got.Cut, got.Aborted
	if got.View != nil {
		res.Records = max(0, got.NextOffset-max(got.FirstBatchOffset, r.Offset))
	}
	return res, nil
}

// withheld says whether a follower has to wait for what was read because of the quota, and lets what it gets count. Who is in sync isn't
// throttled: others wait for it.
func (p *Partition) withheld(replica int32, v storage.View) bool {
	if v == nil || p.sent == nil || !p.throttledOut.Load() {
		return false
	}
	p.mu.Lock()
	inSync := slices.Contains(p.state.ISR, replica)
	p.mu.Unlock()
	now := p.now()
	if !inSync && !p.sent.Owes(now).IsZero() {
		return true
	}
	p.sent.Took(now, v.Len())
	return false
}

// offsets are the three that each answer carries. The high watermark is read first: the others may only be newer.
func (p *Partition) offsets() ReadResult {
	hw := p.log.HighWatermark()
	return ReadResult{
		HighWatermark:    hw,
		LastStableOffset: min(hw, p.log.LastStableOffset()),
		LogStartOffset:   p.log.StartOffset(),
	}
}

// diverging compares the caller's last epoch with our history (KIP-595).
func (p *Partition) diverging(r Read) (*EpochEnd, error) {
	epoch, end := p.log.EndOffsetForEpoch(r.LastFetchedEpoch)
	if epoch < 0 || end < 0 {
		return nil, log.ErrOffsetOutOfRange
	}
	if epoch < r.LastFetchedEpoch || end < r.Offset {
		return &EpochEnd{Epoch: epoch, End: end}, nil
	}
	return nil, nil
}

// isFollower says whether that is one of the other replicas. This one doesn't fetch from itself: whoever says so is somebody who
// wants to see more than a consumer may.
func (p *Partition) isFollower(id int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return id != p.state.self && slices.Contains(p.state.Replicas, id)
}

// fetched records how far a follower has come, which may move the high watermark. It reports false, and does nothing, when that is none of
// the other replicas, or when this one leads under another epoch by now: what a follower has was compared under the one that it asked for.
func (p *Partition) fetched(r Read, epoch int32) bool {
	p.mu.Lock()
	var e effects
	ok := p.state.LeaderEpoch == epoch
	if ok {
		e, ok = p.state.fetched(r.ReplicaID, r.Offset, r.ReplicaStart, p.now())
	}
	done := p.take(e)
	p.mu.Unlock()
	done.call()
	return ok
}

// notFollowed is the answer to a replica that doesn't follow this one, or doesn't any more.
func (r *Read) notFollowed() error {
	if r.LeaderEpoch >= 0 {
		return ErrUnknownLeaderEpoch
	}
	return ErrNotLeader
}
