package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/log"
)

// ID names a partition within the cluster.
type ID struct {
	Topic     string
	Partition int32
}

// String is the name as Kafka's folders and tools write it: topic-partition.
func (id ID) String() string { return id.Topic + "-" + strconv.Itoa(int(id.Partition)) }

// Partition is one replica. Its methods may be called from any goroutine.
type Partition struct {
	id      ID
	topicID [16]byte
	log     *log.Log
	now     func() time.Time
	logger  *slog.Logger
	journal *journal.Journal
	propose func(ID, ISRProposal)

	// role is read-locked by appends and by who changes a follower's log, write-locked by changes of leadership.
	role sync.RWMutex
	view atomic.Pointer[view]
	// following is held while a fetcher changes the log of a follower, so that there is one at a time.
	following sync.Mutex

	mu      sync.Mutex
	state   state
	waiting []waiter
	watches []watchEntry
	// fewWatches is the room of watches as long as they are few, as followers mostly are.
	fewWatches [2]watchEntry

	flushes flushes

	changes atomic.Uint64
	traffic traffic
	// committedThere is the high watermark of the leader that this replica follows, as of its last answer; -1 before.
	committedThere atomic.Int64

	sent           *Quota
	throttledOut   atomic.Bool
	throttledInput atomic.Bool
}

// view is the part of the state that every request checks, as an immutable snapshot.
type view struct {
	role     Role
	leader   int32
	epoch    int32
	underMin bool  // acks=all must be refused
	offline  error // why the log dir has failed, or nil
	removed  bool
}

func newPartition(id ID, topicID [16]byte, l *log.Log, o *Options) *Partition {
	p := &Partition{id: id, topicID: topicID, log: l, now: o.Now, logger: o.Logger, journal: o.Journal, propose: o.ProposeISR, sent: o.Sent}
	p.state = state{id: id, self: o.BrokerID, alive: o.Alive, maxLag: o.ReplicaLagTimeMax, minISR: 1, Assignment: Assignment{Leader: -1, LeaderEpoch: -1, PartitionEpoch: -1}}
	p.committedThere.Store(-1)
	p.publish(nil, false)
	return p
}

// throttle notes whether the replica counts for the quotas.
func (p *Partition) throttle(throttled func(ID) (leader, follower bool)) {
	if throttled != nil {
		out, in := throttled(p.id)
		p.throttledOut.Store(out)
		p.throttledInput.Store(in)
	}
}

// Throttled says whether what this replica fetches as a follower counts for the quota (follower.replication.throttled.replicas).
func (p *Partition) Throttled() bool { return p.throttledInput.Load() }

// ID is the partition's name.
func (p *Partition) ID() ID { return p.id }

// TopicID is the topic's id, zero for a topic that has none.
func (p *Partition) TopicID() [16]byte { return p.topicID }

// Log is the replica's log. Its lookups may be used freely; appending and truncating goes through the Partition.
func (p *Partition) Log() *log.Log { return p.log }

// Leader is who leads the partition, as the controller said last: broker id (-1 none) and leader epoch (-1 before the first
// word from the controller).
func (p *Partition) Leader() (broker, leaderEpoch int32) {
	v := p.view.Load()
	return v.leader, v.epoch
}

// IsLeader says whether this replica leads.
func (p *Partition) IsLeader() bool { return p.view.Load().role == RoleLeader }

// Assignment is the controller's last word on the partition. Its slices are copies.
func (p *Partition) Assignment() Assignment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.assignment()
}

// assignment is Assignment with mu held.
func (p *Partition) assignment() Assignment {
	a := p.state.Assignment
	a.Replicas, a.ISR = slices.Clone(a.Replicas), slices.Clone(a.ISR)
	a.Adding, a.Removing = slices.Clone(a.Adding), slices.Clone(a.Removing)
	return a
}

// Producers lists the producers that the log keeps state of (DescribeProducers).
func (p *Partition) Producers() []log.ProducerState { return p.log.Producers() }

// leading gives the snapshot when this replica leads and may be asked with leaderEpoch (-1: whatever it is).
func (p *Partition) leading(leaderEpoch int32) (*view, error) {
	v, err := p.serving(leaderEpoch)
	if err == nil && v.role != RoleLeader {
		err = ErrNotLeader
	}
	return v, err
}

// serving is leading for requests that followers answer, too.
func (p *Partition) serving(leaderEpoch int32) (*view, error) {
	v := p.view.Load()
	switch {
	case v.removed:
		return v, ErrUnknownPartition
	case v.offline != nil:
		return v, fmt.Errorf("%w: %w", ErrOffline, v.offline)
	case leaderEpoch >= 0 && leaderEpoch < v.epoch:
		return v, ErrFencedLeaderEpoch
	case leaderEpoch >= 0 && leaderEpoch > v.epoch:
		return v, ErrUnknownLeaderEpoch
	}
	return v, nil
}

// publish makes a new snapshot of the state. Called with mu held, or before anybody else knows the partition.
func (p *Partition) publish(offline error, removed bool) {
	p.view.Store(&view{
		role:     p.state.role,
		leader:   p.state.Leader,
		epoch:    p.state.LeaderEpoch,
		underMin: p.state.underMinISR(),
		offline:  offline,
		removed:  removed,
	})
}

// apply takes a word of the controller whose leader epoch is newer than ours. It reports whether this replica leads now.
func (p *Partition) apply(a Assignment) (leads bool, err error) {
	p.role.Lock()
	defer p.role.Unlock()

	leads = a.Leader == p.state.self
	if leads {
		err := p.log.AssignEpoch(a.LeaderEpoch)
		if err == nil && p.log.EndOffset()-p.log.RecoveryPoint() >= p.log.Config().FlushMessages {
			// All of the log counts for the high watermark from here on. What waited for its flush, or was left without one by
			// a crash, mustn't be shown before.
			err = p.log.Flush(context.Background(), p.log.EndOffset())
		}
		if err != nil {
			return false, p.failed(err)
		}
	}
	p.committedThere.Store(-1)
	p.mu.Lock()
	var e effects
	if leads {
		e = p.state.lead(a, p.log.EndOffset(), p.log.HighWatermark(), p.now())
	} else {
		p.state.follow(a)
	}
	p.publish(p.view.Load().offline, false) // its directory may just have failed
	if e.hwMoved {
		p.log.SetHighWatermark(p.state.hw)
	}
	done := p.settle(nil)
	p.signal(all)
	p.mu.Unlock()
	done.call()
	p.journal.Record(journal.RoleTaken{Topic: p.id.Topic, Partition: p.id.Partition, Leader: a.Leader, LeaderEpoch: a.LeaderEpoch, Leads: leads})
	return leads, nil
}

// standDown makes a leader a replica without one.
func (p *Partition) standDown() {
	p.role.Lock()
	defer p.role.Unlock()
	p.mu.Lock()
	if p.state.role != RoleLeader {
		p.mu.Unlock()
		return
	}
	a := p.state.Assignment
	a.Leader = -1
	p.state.follow(a)
	old := p.view.Load()
	p.publish(old.offline, old.removed)
	done := p.settle(nil)
	p.signal(all)
	p.mu.Unlock()
	done.call()
}

// setMinISR puts a new min.insync.replicas in force.
func (p *Partition) setMinISR(n int) {
	p.mu.Lock()
	old := p.view.Load()
	p.state.minISR = n
	e := p.state.advance(effects{}, p.now())
	p.publish(old.offline, old.removed)
	done := p.take(e)
	p.mu.Unlock()
	done.call()
}

// remove ends the replica's service: whoever waits gets err.
func (p *Partition) remove(err error) {
	p.role.Lock()
	defer p.role.Unlock()
	p.mu.Lock()
	p.publish(nil, true)
	done := p.settle(err)
	p.signal(all)
	p.mu.Unlock()
	done.call()
}

// failed marks the replica as offline when err says that its log can't go on, and returns the error to answer with.
func (p *Partition) failed(err error) error {
	if err == nil || !errors.Is(err, log.ErrFailed) {
		return err
	}
	p.mu.Lock()
	old := p.view.Load()
	if old.offline == nil && !old.removed {
		p.logger.Error("replica is offline: its log dir failed; mend the disk and restart the broker", "partition", p.id.String(), "err", err)
		p.publish(err, false)
	}
	done := p.settle(ErrOffline)
	p.signal(all)
	p.mu.Unlock()
	done.call()
	return fmt.Errorf("%w: %w", ErrOffline, err)
}
