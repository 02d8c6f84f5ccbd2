package txn

import (
	"sync"
	"time"
)

// aborts is the one timer for transactions that are open for too long.
type aborts struct {
	mu      sync.Mutex
	timer   *time.Timer
	at      time.Time // when the timer fires, zero while it isn't set
	last    time.Time // of the last round
	stopped bool
}

func (a *aborts) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// watch sees to it that a transaction which is due at that time is aborted then, but there is no second round within
// Config.AbortInterval.
func (m *Manager) watch(due time.Time) {
	if due.IsZero() {
		return
	}
	a := &m.aborts
	a.mu.Lock()
	defer a.mu.Unlock()
	if earliest := a.last.Add(m.o.Config.AbortInterval); !a.last.IsZero() && due.Before(earliest) {
		due = earliest
	}
	if a.stopped || !a.at.IsZero() && !due.Before(a.at) {
		return
	}
	a.at = due
	wait := max(due.Sub(m.o.Now()), 0)
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, func() { m.background(m.AbortTimedOut) })
		return
	}
	a.timer.Reset(wait)
}

// AbortTimedOut aborts what has been open for longer than its producer allowed, and fences the producers. It returns when
// that is stored.
func (m *Manager) AbortTimedOut() {
	now := m.o.Now()
	m.aborts.mu.Lock()
	m.aborts.at, m.aborts.last = time.Time{}, now
	m.aborts.mu.Unlock()
	var next time.Time
	m.each(func(e *entry) *Change {
		c := e.txn.TimeOut(now)
		if c != nil {
			m.log.Info("transaction timed out, it is aborted", "id", e.txn.ID(), "producer", c.ProducerID, "open since", time.UnixMilli(c.Started))
		}
		if due := e.txn.Due(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
		return c
	})
	m.watch(next)
}

// Expire removes transactional ids with which nothing was done for Config.Expiration. It returns when that is stored.
func (m *Manager) Expire() {
	now := m.o.Now()
	m.each(func(e *entry) *Change { return e.txn.Expire(now, m.o.Config.Expiration) })
}

// each gives every loaded transaction an event and stores what it changes.
func (m *Manager) each(event func(*entry) *Change) {
	m.mu.RLock()
	var shards []*shard
	for _, s := range m.shards {
		if !s.loading {
			shards = append(shards, s)
		}
	}
	m.mu.RUnlock()
	for _, s := range shards {
		for _, e := range s.all() {
			if s.ctx.Err() != nil {
				break
			}
			e.mu.Lock()
			var c *Change
			if !e.gone {
				c = event(e)
			}
			e.mu.Unlock()
			if c != nil {
				_ = m.store(e, c) // told there; the next round tries again
			}
		}
	}
}
