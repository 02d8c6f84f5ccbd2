package bench

import "time"

// schedule says when the requests of one connection are due. Without a rate they always are.
type schedule struct {
	next     int64 // nanoseconds, as meter.now has it
	first    int64
	interval float64 // nanoseconds between requests; 0 without a rate
	count    int64
}

// newSchedule is that of one of n connections that together send so many requests a second, evenly spread, from begin on.
func newSchedule(begin int64, perSecond float64, i, n int) schedule {
	if perSecond <= 0 {
		return schedule{}
	}
	all := 1e9 / perSecond // between two requests of all connections together
	first := begin + int64(float64(i)*all)
	return schedule{next: first, first: first, interval: all * float64(n)}
}

// paced reports whether there is a rate.
func (s *schedule) paced() bool { return s.interval > 0 }

// step moves to the request after the next one. Errors of rounding don't add up.
func (s *schedule) step() {
	s.count++
	s.next = s.first + int64(float64(s.count)*s.interval)
}

// nap is how long a paced sender sleeps at most before it looks whether the run is over.
const nap = 100 * time.Millisecond

// sleepUntil waits until a moment, or for the length of a nap.
func (m *meter) sleepUntil(ns int64) {
	wait := min(time.Duration(ns-m.now()), nap)
	if wait > coarse {
		time.Sleep(wait - coarse)
		wait = time.Duration(ns - m.now())
	}
	if wait > 0 {
		sleepExactly(min(wait, coarse))
	}
}
