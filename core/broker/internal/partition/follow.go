package partition

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Position is where a follower stands, and under which leader epoch. What its leader answers to a question holds for the position it
// was asked from and for no other: an answer that comes after a change of leadership, or after the log has moved by other hands, is
// refused with ErrNotFollower or ErrMoved.
type Position struct {
	LeaderEpoch int32 // of the leader that is followed
	Offset      int64 // the log end offset
	LastEpoch   int32 // the last leader epoch that the log knows (LastFetchedEpoch), -1 for none
}

// Fetched is what a follower got from its leader.
type Fetched struct {
	// Batches are the leader's, byte for byte. A batch that isn't whole at the end is left out. They are the caller's again on return.
	Batches []byte
	// HighWatermark and LogStart are the leader's.
	HighWatermark int64
	LogStart      int64
}

// Following says whom this replica follows and from where on it has to fetch. ErrNotFollower when it leads, or has no leader to follow.
func (p *Partition) Following() (leader int32, at Position, err error) {
	p.role.RLock()
	defer p.role.RUnlock()
	v := p.view.Load()
	if err := v.follows(v.epoch); err != nil {
		return -1, Position{}, err
	}
	if v.leader < 0 {
		return -1, Position{}, ErrNotFollower
	}
	return v.leader, p.position(v.epoch), nil
}

// AppendAsFollower appends what the leader answered to a fetch from a position, then raises the high watermark to the leader's as far as
// the log reaches, and the log start offset to the leader's: in this order, so that the high watermark never counts what isn't the
// leader's (KAFKA-14704). What flush.messages asks for is on the device when it returns, for the next fetch tells the leader that it is.
//
// It returns where the replica stands then, also after an error: batches before the one that is refused stay. Errors: ErrNotFollower,
// ErrMoved, ErrUnknownPartition, ErrOffline, and what core/log finds wrong with the batches.
func (p *Partition) AppendAsFollower(at Position, f Fetched) (Position, error) {
	if err := p.beginFollowing(at); err != nil {
		return at, err
	}
	defer p.endFollowing()
	if len(f.Batches) > 0 {
		if err := p.replicate(f.Batches); err != nil {
			return p.position(at.LeaderEpoch), p.failed(err)
		}
		p.traffic.replicatedIn.Add(uint64(len(f.Batches)))
	}
	p.committedThere.Store(f.HighWatermark)
	before := p.log.HighWatermark()
	hw := p.log.SetHighWatermark(f.HighWatermark)
	if f.LogStart > p.log.StartOffset() {
		if _, err := p.log.AdvanceStartOffset(min(f.LogStart, hw)); err != nil {
			return p.position(at.LeaderEpoch), p.failed(err)
		}
	}
	if hw != before {
		p.mu.Lock()
		p.signal(committed) // consumers may read from followers (KIP-392)
		p.mu.Unlock()
	}
	if len(f.Batches) == 0 {
		return at, nil
	}
	return p.position(at.LeaderEpoch), nil
}

// replicate appends batches, and syncs them if the topic wants that.
func (p *Partition) replicate(batches []byte) error {
	info, err := p.log.AppendFollower(batches)
	if errors.Is(err, log.ErrUnexpectedOffset) && info.LastOffset < 0 && p.log.StartOffset() == p.log.EndOffset() {
		// A log that has just been begun at the leader's start offset, which lies within a batch: the batch comes whole, and so the
		// log begins with it.
		b, _, short := record.Next(batches)
		if end := p.log.EndOffset(); short == nil && b.Header().BaseOffset < end && b.Header().LastOffset() >= end {
			if err = p.log.TruncateFully(b.Header().BaseOffset); err == nil {
				info, err = p.log.AppendFollower(batches)
			}
		}
	}
	if err == nil && info.Flush {
		err = p.log.Flush(context.Background(), info.LastOffset+1)
	}
	return err
}

// TruncateAsFollower removes all records from offset on, with the whole batch that holds it: the leader has others there, or none.
// Errors as AppendAsFollower's.
func (p *Partition) TruncateAsFollower(at Position, offset int64) (Position, error) {
	if err := p.beginFollowing(at); err != nil {
		return at, err
	}
	defer p.endFollowing()
	err := p.failed(p.log.TruncateTo(offset))
	return p.position(at.LeaderEpoch), err
}

// RestartAsFollower drops everything and lets the log begin at start: the leader has nothing earlier any more. Errors as
// AppendAsFollower's.
func (p *Partition) RestartAsFollower(at Position, start int64) (Position, error) {
	if err := p.beginFollowing(at); err != nil {
		return at, err
	}
	defer p.endFollowing()
	err := p.failed(p.log.TruncateFully(start))
	return p.position(at.LeaderEpoch), err
}

// beginFollowing keeps leadership still, and other fetchers out, until endFollowing; or says why the position doesn't hold.
func (p *Partition) beginFollowing(at Position) error {
	p.role.RLock()
	p.following.Lock()
	err := p.view.Load().follows(at.LeaderEpoch)
	if err == nil && p.log.EndOffset() != at.Offset {
		err = ErrMoved
	}
	if err != nil {
		p.endFollowing()
	}
	return err
}

func (p *Partition) endFollowing() {
	p.following.Unlock()
	p.role.RUnlock()
}

func (p *Partition) position(leaderEpoch int32) Position {
	return Position{LeaderEpoch: leaderEpoch, Offset: p.log.EndOffset(), LastEpoch: p.log.LatestEpoch()}
}

// follows says why a replica doesn't follow under a leader epoch; nil when it does.
func (v *view) follows(leaderEpoch int32) error {
	switch {
	case v.removed:
		return ErrUnknownPartition
	case v.offline != nil:
		return ErrOffline
	case v.role != RoleFollower || v.epoch != leaderEpoch:
		return ErrNotFollower
	}
	return nil
}
