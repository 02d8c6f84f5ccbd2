package bench

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// recorder takes in delays from many goroutines. It keeps few histograms, whatever the number of connections: one of them is
// a quarter of a megabyte.
type recorder struct {
	shards []shard
	total  *hdrhistogram.Histogram // of all intervals that collect has ended
}

// shard is the part of a recorder that some connections share.
type shard struct {
	mu       sync.Mutex
	interval *hdrhistogram.Histogram
}

// maxShards is how many goroutines note delays without waiting for each other.
const maxShards = 8

func newRecorder(workers int) *recorder {
	r := &recorder{shards: make([]shard, min(max(workers, 1), maxShards)), total: newHistogram()}
	for i := range r.shards {
		r.shards[i].interval = newHistogram()
	}
	return r
}

// shard is that of a worker.
func (r *recorder) shard(worker int) *shard { return &r.shards[worker%len(r.shards)] }

// note takes one delay in, in nanoseconds. What is out of range counts as the end of it.
func (s *shard) note(ns int64) {
	s.mu.Lock()
	_ = s.interval.RecordValue(min(max(ns, shortest), longest))
	s.mu.Unlock()
}

// collect ends an interval: it adds what was noted in it to the total, and gives it.
func (r *recorder) collect() Latency {
	all := newHistogram()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		all.Merge(s.interval)
		s.interval.Reset()
		s.mu.Unlock()
	}
	r.total.Merge(all)
	return latencyOf(all)
}
