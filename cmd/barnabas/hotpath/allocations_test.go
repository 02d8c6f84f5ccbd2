//go:build !race

package hotpath_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAllocations holds what a request may allocate. Everything in this process counts; whatever else goes on in the broker
// is spread over many requests, and the best of some tries counts. It isn't for the race detector, under which pools forget on
// purpose.
func TestAllocations(t *testing.T) {
	onBothStorages(t, func(t *testing.T, p hotPath, request func()) {
		const requests, tries = 1000, 6
		for range 50 { // buffers are made, maps grow
			request()
		}
		least := allocations(requests, request)
		for try := 1; try < tries && least > p.allocations; try++ {
			least = min(least, allocations(requests, request))
		}
		t.Logf("%.3f allocations a request", least)
		assert.LessOrEqual(t, least, p.allocations, "allocations a request")
	})
}

// allocations counts those of one of n requests, to a tenth.
func allocations(n int, request func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		request()
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs-before.Mallocs)*10/uint64(n)) / 10
}
