package group

import (
	"context"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// shard is the groups of one shard that this broker coordinates.
type shard struct {
	id, epoch int32
	loading   bool // guarded by the manager's lock
	ctx       context.Context
	cancel    context.CancelFunc

	mu      sync.RWMutex
	groups  map[string]*entry
	txns    map[int64]map[*entry]struct{} // by producer: the groups that have offsets of its open transaction
	dropped bool
}

// get gives a group, nil when there is none.
func (s *shard) get(group string) *entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.groups[group]
}

func (s *shard) isDropped() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.dropped
}

// all gives all groups.
func (s *shard) all() []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*entry, 0, len(s.groups))
	for _, e := range s.groups {
		list = append(list, e)
	}
	return list
}

// lock gives a group, locked, and makes it when it is missing and create says so; nil when it isn't there.
func (m *Manager) lock(s *shard, group string, create bool) (*entry, error) {
	for {
		e := s.get(group)
		if e == nil {
			if !create {
				return nil, nil
			}
			s.mu.Lock()
			if s.dropped {
				s.mu.Unlock()
				return nil, ErrNotCoordinator
			}
			if e = s.groups[group]; e == nil {
				e = newEntry(m, s)
				e.group = NewGroup(group, &m.cfg, time.Now())
				s.groups[group] = e
			}
			s.mu.Unlock()
		}
		e.mu.Lock()
		if !e.gone {
			return e, nil
		}
		e.mu.Unlock()
		if s.ctx.Err() != nil {
			return nil, ErrNotCoordinator
		}
	}
}

// entry is a group with what the loop keeps for it.
type entry struct {
	m     *Manager
	shard *shard

	mu      sync.Mutex
	group   *Group
	gone    bool // not among the shard's groups any more
	waiting map[Ticket]chan Answer
	last    Ticket
	queue   []Write // to store, in order
	writing bool    // somebody stores the queue
	timer   *time.Timer
	wakeAt  time.Time
}

func newEntry(m *Manager, s *shard) *entry { return &entry{m: m, shard: s} }

// ticket gives a ticket and where its answer will come.
func (e *entry) ticket() (Ticket, chan Answer) {
	if e.waiting == nil {
		e.waiting = map[Ticket]chan Answer{}
	}
	e.last++
	ch := make(chan Answer, 1)
	e.waiting[e.last] = ch
	return e.last, ch
}

// deliver carries out the effects of an event: answers go out, writes queue up, and what is to be remembered is.
func (e *entry) deliver(fx Effects) {
	for _, ev := range fx.Events {
		e.m.journal.Record(ev)
	}
	for _, a := range fx.Answers {
		if ch := e.waiting[a.Ticket]; ch != nil { // else the client has gone; it counts as answered
			delete(e.waiting, a.Ticket)
			ch <- a
		}
	}
	e.queue = append(e.queue, fx.Writes...)
}

// wake sets the timer for the group's next deadline.
func (e *entry) wake() {
	next := e.group.Next()
	if e.gone {
		next = time.Time{}
	}
	switch {
	case next.Equal(e.wakeAt):
		return
	case next.IsZero():
		e.timer.Stop()
	case e.timer == nil:
		e.timer = time.AfterFunc(time.Until(next), e.tick)
	default:
		e.timer.Reset(time.Until(next))
	}
	e.wakeAt = next
}

// tick is the timer's call.
func (e *entry) tick() {
	e.mu.Lock()
	if e.gone {
		e.mu.Unlock()
		return
	}
	e.wakeAt = time.Time{}
	e.deliver(e.group.Tick(time.Now()))
	e.finish(false)
}

// finish ends an event: it sets the timer, lets go of the lock and sees that what is queued is stored; by this goroutine
// if it may wait.
func (e *entry) finish(mayWait bool) {
	e.wake()
	if e.group.Vacant() && len(e.waiting) == 0 {
		e.remove()
	}
	store := len(e.queue) > 0 && !e.writing
	e.writing = e.writing || store
	e.mu.Unlock()
	switch {
	case !store:
	case mayWait:
		e.store()
	default:
		e.m.background(e.store)
	}
}

// remove takes the group out of the shard. The caller holds the lock.
func (e *entry) remove() {
	e.gone = true
	if e.timer != nil {
		e.timer.Stop()
	}
	e.shard.mu.Lock()
	defer e.shard.mu.Unlock()
	if e.shard.groups[e.group.id] == e {
		delete(e.shard.groups, e.group.id)
	}
}

// store stores what is queued as one batch, and tells the group. If there is more then, another goroutine goes on, so
// that no client waits for the others' writes.
func (e *entry) store() {
	e.mu.Lock()
	writes := e.queue
	e.queue = nil
	e.mu.Unlock()
	errs := e.m.write(e.shard, writes)
	e.mu.Lock()
	now := time.Now()
	for i, w := range writes {
		e.deliver(e.group.Written(now, w, errs[i]))
		if w.kind == writeDeath && errs[i] == nil && !e.gone {
			e.remove()
		}
	}
	e.writing = false
	e.finish(false)
}

// write stores writes in their order: those that are no part of a transaction, or of the same one, together.
func (m *Manager) write(s *shard, writes []Write) []error {
	errs := make([]error, 0, len(writes))
	for len(writes) > 0 {
		n := 1
		for n < len(writes) && sameProducer(writes[n].Producer, writes[0].Producer) {
			n++
		}
		errs = append(errs, m.writeTogether(s, writes[:n])...)
		writes = writes[n:]
	}
	return errs
}

func sameProducer(a, b *offsets.Producer) bool { return a == b || a != nil && b != nil && *a == *b }

// writeTogether stores writes as one batch; if they are too large together, one by one.
func (m *Manager) writeTogether(s *shard, writes []Write) []error {
	errs := make([]error, len(writes))
	var all []offsets.Entry
	for _, w := range writes {
		all = append(all, w.Entries...)
	}
	err := m.append(s, writes[0].Producer, all)
	if len(writes) > 1 && isTooLarge(err) {
		for i, w := range writes {
			errs[i] = m.append(s, w.Producer, w.Entries)
		}
		return errs
	}
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (m *Manager) append(s *shard, producer *offsets.Producer, entries []offsets.Entry) error {
	ctx, cancel := context.WithTimeout(m.ctx, m.cfg.CommitTimeout)
	defer cancel()
	err := m.store.Write(ctx, s.id, s.epoch, offsets.Batch{Timestamp: time.Now().UnixMilli(), Entries: entries, Producer: producer})
	if err != nil {
		m.log.Warn("can't store group records", "shard", s.id, "epoch", s.epoch, "records", len(entries), "err", err)
	}
	return err
}
