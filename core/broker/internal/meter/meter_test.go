package meter

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestBucketsHoldWhatTheirBoundsSay(t *testing.T) {
	assert.True(t, slices.IsSorted(limits[:]))
	for _, c := range []struct {
		took time.Duration
		le   time.Duration
	}{{0, 50 * time.Microsecond}, {50 * time.Microsecond, 50 * time.Microsecond}, {50*time.Microsecond + 1, 100 * time.Microsecond}, {time.Second, time.Second}, {30 * time.Second, 30 * time.Second}} {
		var h Histogram
		h.Observe(c.took)
		var d Distribution
		h.Read(&d)
		for _, bound := range limits {
			want := uint64(0)
			if bound >= c.le {
				want = 1
			}
			assert.Equal(t, want, d.Buckets()[bound.Seconds()], "%v in %v", c.took, bound)
		}
	}
	var h Histogram
	h.Observe(math.MaxInt64)
	var d Distribution
	h.Read(&d)
	assert.EqualValues(t, 1, d.Count())
	assert.EqualValues(t, 0, d.Buckets()[30])
}

// TestQuantiles compares with the sorted durations: the answer lies in the same bucket.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, int64(29*time.Second)), 1, 200).Draw(t, "durations")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		var h Histogram
		for _, d := range all {
			h.Observe(time.Duration(d))
		}
		var d Distribution
		h.Read(&d)
		slices.Sort(all)
		want := time.Duration(all[int(math.Ceil(q*float64(len(all))))-1])
		got := d.Quantile(q)
		if bucketOf(got) != bucketOf(want) {
			t.Fatalf("%v is in another bucket than %v", got, want)
		}
	})
	var none Distribution
	assert.Zero(t, none.Quantile(0.99))
}

func TestSince(t *testing.T) {
	var h Histogram
	var before, after Distribution
	h.Observe(time.Second)
	h.Read(&before)
	h.Observe(time.Millisecond)
	h.Read(&after)
	later := after.Since(&before)
	assert.EqualValues(t, 1, later.Count())
	assert.Equal(t, time.Millisecond, later.Sum())
}

func TestRequests(t *testing.T) {
	r := NewRequests()
	assert.Empty(t, r.Read())
	assert.Empty(t, r.ReadFailed())
	var all sync.WaitGroup
	for shard := range uint32(8) {
		all.Go(func() {
			for range 100 {
				r.Served(shard, 0, 9, time.Millisecond, 10, 20)
				r.Served(shard, FetchFollower, 99, time.Second, 1, 2)
				r.Failed(0, 6)
				r.Failed(0, 0)
				r.Failed(0, math.MinInt16)
				r.Refused(3, 77, 13)
				r.Refused(3, -1, 13)
				r.Refused(math.MaxInt16, 0, -1)
				r.Broken()
			}
		})
	}
	all.Wait()
	got := r.Read()
	assert.Len(t, got, 2)
	assert.Equal(t, "Produce", got[0].Kind.String())
	assert.EqualValues(t, 800, got[0].Took.Count())
	assert.Equal(t, 800*time.Millisecond, got[0].Took.Sum())
	assert.EqualValues(t, 8000, got[0].In)
	assert.EqualValues(t, 16000, got[0].Out)
	assert.EqualValues(t, 800, got[0].ByVersion[9])
	assert.Equal(t, "FetchFollower", got[1].Kind.String())
	assert.EqualValues(t, 800, got[1].ByVersion[versions-1])
	assert.Equal(t, []Failures{{0, -1, 800}, {0, 6, 800}}, r.ReadFailed())
	refused, unknown, broken := r.ReadRefused()
	assert.Equal(t, []Refusals{{3, 800, 800}}, refused)
	assert.EqualValues(t, 800, unknown)
	assert.EqualValues(t, 800, broken)
}

// TestCountingDoesNotAllocate: it is done for every request.
func TestCountingDoesNotAllocate(t *testing.T) {
	r := NewRequests()
	r.Served(1, 0, 9, time.Millisecond, 10, 20)
	r.Failed(0, 6)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		r.Served(1, 0, 9, time.Millisecond, 10, 20)
		r.Failed(0, 6)
	}))
}

func BenchmarkServed(b *testing.B) {
	r := NewRequests()
	b.ReportAllocs()
	for b.Loop() {
		r.Served(1, 0, 9, time.Millisecond, 10, 20)
	}
}
