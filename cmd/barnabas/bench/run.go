package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// Load is what all kinds of load have in common.
type Load struct {
	Addr        string // host:port of a broker of the cluster
	Topic       string // must exist
	Connections int
	Duration    time.Duration // how long it is measured
	WarmUp      time.Duration // of load before, that isn't measured
	Pids        []int         // of the brokers' processes on this machine, none when they are not to be measured
	// Progress is told about every so often how far the run has come; nil for not at all. It is called from one goroutine.
	Progress func(done time.Duration, bytes int64)
}

func (l *Load) check() error {
	switch {
	case l.Connections < 1:
		return fmt.Errorf("%d connections: at least 1 is needed", l.Connections)
	case l.Duration <= 0:
		return fmt.Errorf("a duration of %s: it must be positive", l.Duration)
	case l.WarmUp < 0:
		return fmt.Errorf("a warm-up of %s: it can't be negative", l.WarmUp)
	}
	return nil
}

// worker is one connection under load.
type worker struct {
	meter     *meter
	histogram *hdrhistogram.Histogram
	left      int64 // requests to send before it ends by itself; 0 is no such number
}

// more reports whether one more request is to be sent.
func (w *worker) more() bool {
	if w.left > 0 {
		if w.left--; w.left == 0 {
			w.left = -1 // this one, then no more
		}
		return !w.meter.stop.Load()
	}
	return w.left == 0 && !w.meter.stop.Load()
}

// meter counts for all workers. Workers send until stop is set.
type meter struct {
	measuring atomic.Bool
	stop      atomic.Bool
	requests  atomic.Int64
	records   atomic.Int64
	bytes     atomic.Int64
}

// done counts one request that began at start and was answered now.
func (w *worker) done(start time.Time, records, bytes int64) {
	if !w.meter.measuring.Load() {
		return
	}
	w.meter.requests.Add(1)
	w.meter.records.Add(records)
	w.meter.bytes.Add(bytes)
	note(w.histogram, time.Since(start))
}

// drive runs the workers, each until the meter says stop, and measures.
func (l *Load) drive(ctx context.Context, work []func(ctx context.Context, w *worker) error) (*Result, error) {
	m := &meter{}
	group, ctx := errgroup.WithContext(ctx)
	workers := make([]*worker, len(work))
	for i, f := range work {
		w := &worker{meter: m, histogram: newHistogram()}
		workers[i] = w
		group.Go(func() error { return f(ctx, w) })
	}
	result := &Result{Connections: len(work)}
	group.Go(func() error {
		defer m.stop.Store(true)
		return l.measure(ctx, m, result)
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := newHistogram()
	for _, w := range workers {
		all.Merge(w.histogram)
	}
	result.Latency = latencyOf(all)
	if result.Requests == 0 {
		return nil, errors.New("no request was answered in all that time: make it longer")
	}
	return result, nil
}

// measure waits out the warm-up, then the time that counts.
func (l *Load) measure(ctx context.Context, m *meter, result *Result) error {
	if err := pause(ctx, l.WarmUp); err != nil {
		return err
	}
	before, err := l.usage()
	if err != nil {
		return err
	}
	mine := ownCPU()
	start := time.Now()
	m.measuring.Store(true)
	for elapsed := time.Duration(0); elapsed < l.Duration; elapsed = time.Since(start) {
		if l.Progress != nil {
			l.Progress(elapsed, m.bytes.Load())
		}
		if err := pause(ctx, min(l.Duration-elapsed, time.Second/4)); err != nil {
			return err
		}
	}
	m.measuring.Store(false)
	result.Seconds = time.Since(start).Seconds()
	result.Requests, result.Records, result.Bytes = m.requests.Load(), m.records.Load(), m.bytes.Load()
	result.ClientCPU = (ownCPU() - mine).Seconds()
	if l.Progress != nil {
		l.Progress(l.Duration, result.Bytes)
	}
	after, err := l.usage()
	if err != nil {
		return err
	}
	if len(l.Pids) > 0 {
		result.Broker = &Cost{CPU: (after.CPU - before.CPU).Seconds(), System: (after.System - before.System).Seconds(), RSS: after.RSS, RSSAnon: after.RSSAnon}
	}
	return nil
}

// usage is that of all processes together.
func (l *Load) usage() (all Usage, err error) {
	for _, pid := range l.Pids {
		u, err := Measure(pid)
		if err != nil {
			return all, err
		}
		all.CPU += u.CPU
		all.System += u.System
		all.RSS += u.RSS
		all.RSSAnon += u.RSSAnon
	}
	return all, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
