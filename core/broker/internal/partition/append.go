package partition

import (
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Append is what a producer, or a coordinator on this broker, wants in the log.
type Append struct {
	// Batches are one batch or, from Produce v0-v2, an older message set: the caller has checked that its version may carry
	// it. They are stamped in place (base offset, leader epoch) and are the caller's again on return.
	Batches []byte
	// Acks is the producer's: -1 asks that enough replicas are in sync before anything is written.
	Acks int16
	// Coordinator marks appends of the group and transaction coordinators, which may write control batches and are not
	// checked for sequence numbers.
	Coordinator bool
	// Client is who sends it, when it isn't a coordinator.
	Client log.Client
	// Verify is asked, with the log locked, whether a producer may open a transaction here; see log.LeaderAppend. Nil: it may.
	Verify func(producerID int64, epoch int16) error
}

// Appended is where an append went.
type Appended struct {
	log.AppendInfo
	LeaderEpoch int32
}

// Append appends as the leader, on the caller's goroutine. On return the batches are in the log and visible to followers;
// whether they are acknowledged is for [Partition.Committed] to say.
//
// Errors: ErrUnknownPartition, ErrOffline, ErrNotLeader, ErrNotEnoughReplicas, and what core/log and core/record find wrong with
// the batches, or Verify says. After any error nothing was appended.
func (p *Partition) Append(a Append) (Appended, error) {
	size := len(a.Batches)
	done, err := p.append(a)
	if !a.Coordinator {
		p.produced(size, done, err)
	}
	return done, err
}

// append is Append.
func (p *Partition) append(a Append) (Appended, error) {
	p.role.RLock()
	defer p.role.RUnlock()

	v, err := p.leading(-1)
	if err != nil {
		return Appended{}, err
	}
	if a.Acks == -1 && v.underMin {
		return Appended{}, ErrNotEnoughReplicas
	}
	origin := record.FromClient
	if a.Coordinator {
		origin = record.FromCoordinator
	}
	info, err := p.log.AppendLeader(log.LeaderAppend{
		Batches:     a.Batches,
		LeaderEpoch: v.epoch,
		Origin:      origin,
		Client:      a.Client,
		Verify:      a.Verify,
	})
	if err != nil {
		return Appended{}, p.failed(err)
	}
	done := Appended{AppendInfo: info, LeaderEpoch: v.epoch}
	if info.Flush && !info.Duplicate {
		// It doesn't count yet, but followers may have it while it is flushed.
		p.mu.Lock()
		p.signal(appended)
		p.mu.Unlock()
	}
	switch {
	case info.Flush && a.Acks == 0:
		// Nobody will ask whether it is committed, but readers wait for it.
		p.committedAfterFlush(done, 0, func(error) {})
	case !info.Flush && !info.Duplicate:
		p.advance(info.LastOffset + 1) // others' appends behind it may have to be flushed first
	}
	return done, nil
}

// advance lets the log count up to end for the high watermark, and wakes whoever waited for that.
func (p *Partition) advance(end int64) {
	p.mu.Lock()
	done := p.take(p.state.appended(end, p.now()))
	p.signal(appended)
	p.mu.Unlock()
	done.call()
}

// take carries the effects of a decision out. Called with mu held; the callbacks returned are to be called without.
func (p *Partition) take(e effects) callbacks {
	if e.propose != nil && p.propose != nil {
		p.propose(p.id, *e.propose)
	}
	for _, ev := range e.events {
		p.journal.Record(ev)
	}
	if e.lowMoved {
		p.signal(appended)
	}
	if !e.hwMoved {
		return nil
	}
	p.log.SetHighWatermark(p.state.hw)
	done := p.settle(nil)
	p.signal(committed)
	return done
}

// Committed says whether an append may be acknowledged as acks asks: flushed, when the topic's flush.messages says so, and
// for acks=-1 replicated up to the high watermark with enough replicas in sync.
//
// With done it may be answered at once, with err. Otherwise f is called exactly once, quickly and from some goroutine, with
// nil or the error (ErrNotLeader, ErrNotEnoughReplicasAfterAppend, ErrOffline, ErrUnknownPartition). cancel takes the
// registration back, for requests that time out; it reports false when f was called or is about to be.
func (p *Partition) Committed(a Appended, acks int16, f func(error)) (done bool, err error, cancel func() bool) {
	if a.Flush {
		return p.committedAfterFlush(a, acks, f)
	}
	if acks != -1 {
		return true, nil, nil
	}
	return p.register(a, f)
}

// register waits for the high watermark to pass the append.
func (p *Partition) register(a Appended, f func(error)) (bool, error, func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done, err := p.answer(a.LastOffset+1, a.LeaderEpoch); done {
		return true, err, nil
	}
	id := new(byte)
	p.waiting = append(p.waiting, waiter{id: id, offset: a.LastOffset + 1, epoch: a.LeaderEpoch, f: f})
	return false, nil, func() bool { return p.withdraw(id) }
}
