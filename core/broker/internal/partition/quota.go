package partition

import (
	"math"
	"sync/atomic"
	"time"
)

// Quota bounds the bytes a second that are replicated for throttled replicas, in one direction: what goes out to followers that catch up,
// or what comes in (KIP-73). Any goroutine may use it; without a limit it costs an atomic load.
//
// It spreads bytes over time: what was replicated has to be paid for, at the rate, before more is. So the mean over any time holds the
// rate, give or take one fetch.
type Quota struct {
	rate atomic.Int64 // bytes a second; 0 and below: none at all
	free atomic.Int64 // when all is paid for, in nanoseconds of Unix time
	took atomic.Int64 // bytes
}

// NewQuota makes a quota without a limit.
func NewQuota() *Quota {
	q := &Quota{}
	q.rate.Store(math.MaxInt64)
	return q
}

// SetRate puts another rate in force, in bytes a second; the largest int64 is no limit. What was owed at the old one is forgiven.
func (q *Quota) SetRate(bytesPerSecond int64) {
	if q.rate.Swap(bytesPerSecond) != bytesPerSecond {
		q.free.Store(0)
	}
}

// mostOwed bounds what has to be waited for after one fetch, so that a higher rate takes effect soon.
const mostOwed = 10 * time.Second

// Took says that bytes were replicated.
func (q *Quota) Took(now time.Time, bytes int64) {
	q.took.Add(bytes)
	rate := q.rate.Load()
	if rate == math.MaxInt64 || bytes <= 0 {
		return
	}
	cost := min(float64(bytes)/float64(max(rate, 1))*float64(time.Second), float64(mostOwed))
	for {
		free := q.free.Load()
		next := min(max(free, now.UnixNano())+int64(cost), now.Add(mostOwed).UnixNano())
		if q.free.CompareAndSwap(free, next) {
			return
		}
	}
}

// Owes says until when nothing more may be replicated; the zero time when something may be now.
func (q *Quota) Owes(now time.Time) time.Time {
	rate := q.rate.Load()
	switch free := q.free.Load(); {
	case rate == math.MaxInt64:
	case rate <= 0:
		return now.Add(time.Second)
	case free > now.UnixNano():
		return time.Unix(0, free)
	}
	return time.Time{}
}

// Rate is the limit in bytes a second; unlimited says that there is none. Total is how many bytes counted for it so far.
func (q *Quota) Rate() (bytesPerSecond int64, unlimited bool, total int64) {
	rate := q.rate.Load()
	return rate, rate == math.MaxInt64, q.took.Load()
}
