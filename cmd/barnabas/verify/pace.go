package verify

import (
	"context"
	"sync"
	"time"
)

// pace says when a record may be sent, to all producers of a run together.
type pace struct {
	rate  int   // a second; 0 is no bound
	most  int64 // 0 is no bound
	until time.Time

	mu    sync.Mutex
	given int64
	begin time.Time
}

// next takes a turn and gives the time to wait before it; false means that there are no more.
func (p *pace) next(now time.Time) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most > 0 && p.given >= p.most || !p.until.IsZero() && now.After(p.until) {
		return 0, false
	}
	p.given++
	if p.rate == 0 {
		return 0, true
	}
	const burst = 20 * time.Millisecond // who was kept waiting may catch up by so much, not by more
	p.begin = later(p.begin, now.Add(-burst))
	due := p.begin
	p.begin = p.begin.Add(time.Second / time.Duration(p.rate))
	return due.Sub(now), true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// turn waits for a producer's turn to send a record; false means that it has to end.
func (r *Run) turn(ctx context.Context) bool {
	select {
	case <-r.stop:
		return false
	default:
	}
	wait, ok := r.pace.next(time.Now())
	if !ok {
		return false
	}
	if wait < time.Millisecond { // timers aren't finer
		return ctx.Err() == nil
	}
	return r.pause(ctx, wait)
}

// pause waits; false means that the run's producers are to stop.
func (r *Run) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stop:
	case <-ctx.Done():
	}
	return false
}
