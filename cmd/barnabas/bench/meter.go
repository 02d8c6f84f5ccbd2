package bench

import (
	"sync/atomic"
	"time"
)

// meter is what all workers of a run share: its clock, and the window of time that is measured.
type meter struct {
	begin time.Time
	wall  int64 // begin, in nanoseconds since 1970

	start    atomic.Int64  // when the senders began; 0 until they do
	from, to atomic.Int64  // the window; 0 until it is known
	stop     atomic.Bool   // workers that send, end
	opened   chan struct{} // closed when the window opens
	ended    chan struct{} // closed when all workers that send have ended

	latency *recorder // what the load is about
	acks    *recorder // end to end: of the producers' requests, else nil
	late    *recorder // with a rate: from when requests were due until they were sent, else nil
	workers []*worker
}

func newMeter(workers int) *meter {
	now := time.Now()
	return &meter{begin: now, wall: now.UnixNano(), latency: newRecorder(workers),
		opened: make(chan struct{}), ended: make(chan struct{})}
}

// now is the time in nanoseconds since 1970. It never jumps, also when the system's clock does.
func (m *meter) now() int64 { return m.wall + int64(time.Since(m.begin)) }

// started is when the senders begin: all at the same time, when the first of them asks.
func (m *meter) started() int64 {
	m.start.CompareAndSwap(0, m.now())
	return m.start.Load()
}

// within reports whether a moment lies in the window.
func (m *meter) within(ns int64) bool {
	from, to := m.from.Load(), m.to.Load()
	return from != 0 && ns >= from && (to == 0 || ns < to)
}

// worker is one connection, or one client, under load. Its methods are called by one goroutine, or by the one that sends and
// the one that receives.
type worker struct {
	meter   *meter
	latency *shard
	late    *shard // nil without a rate
	feeds   bool   // others count the records, when they arrive
	// What was answered in the window.
	requests, records, bytes atomic.Int64
	wire                     atomic.Int64 // bytes of the frames, or of a client's batches
	unsent                   atomic.Int64 // records that were due in the window and could not be sent in it
	// All of the run, for an end-to-end load to know what is under way.
	acknowledged atomic.Int64
	left         int64 // requests to send before it ends by itself; 0 is no such number

	_ [64]byte // workers don't share cache lines
}

// worker makes the next worker, which notes into a recorder.
func (m *meter) worker(r *recorder) *worker {
	i := len(m.workers)
	w := &worker{meter: m, latency: r.shard(i), feeds: r == m.acks}
	if m.late != nil {
		w.late = m.late.shard(i)
	}
	m.workers = append(m.workers, w)
	return w
}

// more reports whether one more request is to be sent, and counts it.
func (w *worker) more() bool {
	if w.left > 0 {
		if w.left--; w.left == 0 {
			w.left = -1 // this one, then no more
		}
		return !w.meter.stop.Load()
	}
	return w.left == 0 && !w.meter.stop.Load()
}

// done counts one request that was due at one moment and answered at another. Throughput is what was answered in the window,
// delays are those of what was due in it, so that an answer that comes after its end isn't forgotten.
func (w *worker) done(due, answered, records, bytes, wire int64) {
	w.acknowledged.Add(records)
	if w.meter.within(answered) {
		w.requests.Add(1)
		w.wire.Add(wire)
		w.count(records, bytes)
	}
	if w.meter.within(due) {
		w.latency.note(answered - due)
	}
}

func (w *worker) count(records, bytes int64) {
	if !w.feeds {
		w.records.Add(records)
		w.bytes.Add(bytes)
	}
}

// doneRecord is done for one record of a client, whose requests are counted elsewhere.
func (w *worker) doneRecord(due, answered, size int64) {
	w.acknowledged.Add(1)
	if w.meter.within(answered) {
		w.count(1, size)
	}
	if w.meter.within(due) {
		w.latency.note(answered - due)
	}
}

// sent notes how late a request was sent that was due at some moment.
func (w *worker) sent(due, at int64) {
	if w.late != nil && w.meter.within(due) {
		w.late.note(at - due)
	}
}

// giveUp counts requests of so many records each that were due from a moment on, every so many nanoseconds, and can't be sent
// any more because the run is over. Their delay would have been at least what has passed already.
func (w *worker) giveUp(due, interval, records int64) {
	now := w.meter.now()
	for to := w.meter.to.Load(); due < min(now, to); due += interval {
		if w.meter.within(due) {
			w.unsent.Add(records)
			w.latency.note(now - due)
		}
	}
}

// counts are what all workers have counted so far.
type counts struct{ requests, records, bytes, wire, unsent int64 }

func (m *meter) counts() (c counts) {
	for _, w := range m.workers {
		c.requests += w.requests.Load()
		c.records += w.records.Load()
		c.bytes += w.bytes.Load()
		c.wire += w.wire.Load()
		c.unsent += w.unsent.Load()
	}
	return c
}
