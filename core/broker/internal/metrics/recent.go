package metrics

import (
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
)

// Quantiles are of the last minutes: one of all time since the broker started would hardly move any more.
const (
	recentSpan = 5 * time.Minute
	recentStep = 30 * time.Second
)

// recent remembers what was counted at some scrapes of the last minutes, so that quantiles can be told of those alone. How often
// anybody scrapes doesn't matter.
type recent struct {
	now func() time.Time

	mu   sync.Mutex
	kept []reading // oldest first
}

// reading is what was counted up to a moment.
type reading struct {
	at      time.Time
	took    map[meter.Kind]meter.Distribution
	flushes meter.Distribution
}

func newRecent(now func() time.Time) *recent { return &recent{now: now} }

// distributions gives what came within the last minutes, as far as there were scrapes to remember.
func (r *recent) distributions(answered []meter.Answered, flushes meter.Distribution) reading {
	now := r.now()
	all := reading{at: now, took: make(map[meter.Kind]meter.Distribution, len(answered)), flushes: flushes}
	for i := range answered {
		all.took[answered[i].Kind] = answered[i].Took
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.kept) > 1 && now.Sub(r.kept[1].at) >= recentSpan { // one that is older stays, to count from
		r.kept = r.kept[1:]
	}
	later := all
	if len(r.kept) > 0 {
		first := &r.kept[0]
		later.took = make(map[meter.Kind]meter.Distribution, len(all.took))
		for kind, d := range all.took {
			before := first.took[kind]
			later.took[kind] = d.Since(&before)
		}
		later.flushes = flushes.Since(&first.flushes)
	}
	if n := len(r.kept); n == 0 || now.Sub(r.kept[n-1].at) >= recentStep {
		r.kept = append(r.kept, all)
	}
	return later
}
