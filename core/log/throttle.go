package log

import (
	"context"
	"sync"
	"time"
)

// throttle spreads bytes over time. It is a state machine: who uses it brings the time.
type throttle struct {
	free time.Time // when what was taken so far is paid for
}

// take takes n bytes at a rate of bytes per second and says how long to wait before going on.
func (t *throttle) take(now time.Time, n int, rate float64) time.Duration {
	// A rate so low that a single batch would take for ever, or none at all, is bounded.
	cost := min(float64(n)/rate*float64(time.Second), float64(maxPause))
	if t.free.Before(now) {
		t.free = now
	}
	t.free = t.free.Add(time.Duration(cost))
	return t.free.Sub(now)
}

const (
	// maxPause bounds what one take can cost.
	maxPause = time.Minute
	// minPause is the least that is waited: timers aren't more exact.
	minPause = 5 * time.Millisecond
)

// pacer lets several goroutines share a throttle.
type pacer struct {
	mu sync.Mutex
	t  throttle
}

func (p *pacer) wait(ctx context.Context, n int, rate float64) error {
	if n <= 0 || rate >= 1e15 { // no limit
		return nil
	}
	p.mu.Lock()
	pause := p.t.take(time.Now(), n, rate)
	p.mu.Unlock()
	if pause < minPause {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
