package meter

import (
	"sync/atomic"
	"time"
)

// limits are the upper bounds of the buckets of every histogram, inclusive: from what a request takes that finds everything in
// memory to the longest that a client waits by default.
var limits = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// buckets is the number of bounds, and the place of the bucket for all that is beyond them.
const buckets = len(limits)

// Histogram counts durations. The zero Histogram is ready; it must not be copied. Any goroutine may use it.
type Histogram struct {
	counts [buckets + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	h.counts[bucketOf(d)].Add(1)
	h.sum.Add(int64(d))
}

// bucketOf finds the first bound that isn't below d.
func bucketOf(d time.Duration) int {
	low, high := 0, buckets
	for low < high {
		if middle := (low + high) / 2; d <= limits[middle] {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// Read adds what was counted to d. Counts that come in meanwhile may be missing from it; none is there twice.
func (h *Histogram) Read(d *Distribution) {
	for i := range h.counts {
		d.counts[i] += h.counts[i].Load()
	}
	d.sum += time.Duration(h.sum.Load())
}

// Distribution is what histograms counted, as of one moment. The zero Distribution is empty.
type Distribution struct {
	counts [buckets + 1]uint64
	sum    time.Duration
}

// Count is how many durations there were, and Sum what they come to.
func (d *Distribution) Count() (n uint64) {
	for _, c := range d.counts {
		n += c
	}
	return n
}

// Sum is what all durations come to.
func (d *Distribution) Sum() time.Duration { return d.sum }

// Buckets gives, by upper bound in seconds, how many durations were not above it, as Prometheus wants them.
func (d *Distribution) Buckets() map[float64]uint64 {
	all := make(map[float64]uint64, buckets)
	n := uint64(0)
	for i, bound := range limits {
		n += d.counts[i]
		all[bound.Seconds()] = n
	}
	return all
}

// Since is what came after an earlier reading of the same histograms.
func (d *Distribution) Since(before *Distribution) Distribution {
	later := *d
	for i := range later.counts {
		later.counts[i] -= min(later.counts[i], before.counts[i])
	}
	later.sum -= before.sum
	return later
}

// Quantile is the duration that a share q of all, from 0 to 1, isn't above, as closely as the buckets tell: within a bucket all
// durations count as evenly spread. It is 0 when there are none, and the last bound for those beyond it.
func (d *Distribution) Quantile(q float64) time.Duration {
	total := d.Count()
	if total == 0 {
		return 0
	}
	rank := q * float64(total)
	below := 0.0
	for i, bound := range limits {
		n := float64(d.counts[i])
		if below+n >= rank && n > 0 {
			from := time.Duration(0)
			if i > 0 {
				from = limits[i-1]
			}
			return from + time.Duration((rank-below)/n*float64(bound-from))
		}
		below += n
	}
	return limits[buckets-1]
}

// Add adds what another one has.
func (d *Distribution) Add(o *Distribution) {
	for i := range d.counts {
		d.counts[i] += o.counts[i]
	}
	d.sum += o.sum
}
