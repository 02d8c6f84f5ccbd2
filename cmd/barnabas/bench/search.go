package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Search finds the highest rate that a broker sustains: one at which all that is due can be sent, nothing piles up, and the
// 99th percentile of the delays, counted from when things were due, stays within a limit.
type Search struct {
	MaxP99 time.Duration
	// Run puts a load of so many records a second on the broker; 0 is as many as go, to know where to search.
	Run func(ctx context.Context, rate float64) (*Result, error)
}

// Find gives the result at the highest rate that was sustained, and all results in the order in which they were measured.
// That no rate is sustained is an error.
func (s *Search) Find(ctx context.Context) (best *Result, all []*Result, err error) {
	if s.MaxP99 <= 0 {
		return nil, nil, fmt.Errorf("a 99th percentile of at most %s: it must be positive", s.MaxP99)
	}
	most, err := s.Run(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	most.Name, all = "without a rate", append(all, most)
	b := bisection{high: most.RecordsPerSecond(), floor: most.RecordsPerSecond() / 1000}
	for {
		rate, more := b.next()
		if !more {
			break
		}
		held := false
		for range tries {
			r, err := s.Run(ctx, rate)
			if err != nil {
				return nil, nil, err
			}
			r.Name, all = "too much", append(all, r)
			if held = sustained(r, s.MaxP99); held {
				r.Name, best = "sustained", r
				break
			}
		}
		b.note(rate, held)
	}
	if best == nil {
		return nil, nil, errors.New("no rate is sustained: allow a higher 99th percentile, or more connections or requests in flight")
	}
	return best, all, nil
}

// tries is how often a rate is tried before it is taken for too high: what else the machine does shouldn't decide.
const tries = 2

// enough is the part of a rate that has to arrive in time: a few records are always under way at the end.
const enough = 0.98

func sustained(r *Result, limit time.Duration) bool {
	return r.Unsent == 0 && r.RecordsPerSecond() >= enough*r.Rate && r.Latency.P99 <= float64(limit)/1e3
}

// bisection narrows a rate down between one that is sustained and one that isn't.
type bisection struct {
	low   float64 // is sustained; 0 when none is known
	high  float64 // isn't
	floor float64 // below it nothing is tried
}

// closeEnough is the ratio of the two at which the search ends.
const closeEnough = 1.05

// next is the rate to try; false when there is nothing more to try.
func (b *bisection) next() (float64, bool) {
	rate := (b.low + b.high) / 2
	return rate, rate > b.floor && b.high > b.low*closeEnough
}

func (b *bisection) note(rate float64, held bool) {
	if held {
		b.low = rate
	} else {
		b.high = rate
	}
}
