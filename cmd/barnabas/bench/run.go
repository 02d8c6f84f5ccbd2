package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// drive runs the workers, of which those that send end when the meter says stop, and measures. Followers, unless nil, are told
// when the senders have ended, and end by themselves after that. When one fails, or ctx ends, hangUp ends all of them.
func (l *Load) drive(ctx context.Context, m *meter, senders []work, f *followers, hangUp func()) (*Result, error) {
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, hangUp)()
	var sending sync.WaitGroup
	for _, work := range senders {
		sending.Add(1)
		group.Go(func() error {
			defer sending.Done()
			return work(ctx)
		})
	}
	if f != nil {
		for _, work := range f.work {
			group.Go(func() error { return work(ctx) })
		}
	}
	group.Go(func() error {
		sending.Wait()
		close(m.ended)
		if f != nil {
			f.sendersEnded()
		}
		return nil
	})
	result := &Result{Connections: len(senders)}
	group.Go(func() error {
		defer m.stop.Store(true)
		return l.measure(ctx, m, result)
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	m.report(result)
	if result.Requests == 0 {
		return nil, errors.New("no request was answered in all that time: make it longer")
	}
	return result, nil
}

// followers are workers that outlast the senders: what these sent has to arrive.
type followers struct {
	work         []work
	sendersEnded func()
}

// measure waits out the warm-up, then the time that counts: until all senders have ended, where they do by themselves.
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
	m.from.Store(m.now())
	close(m.opened)
	line := timeline{meter: m, every: max(time.Second, l.Duration/maxSamples)}
	for elapsed := time.Duration(0); elapsed < l.Duration && !over(m.ended); elapsed = time.Since(start) {
		line.sample(elapsed, false)
		if l.Progress != nil {
			l.Progress(elapsed, m.counts().bytes)
		}
		if err := m.wait(ctx, min(l.Duration-elapsed, time.Second/4)); err != nil {
			return err
		}
	}
	m.to.Store(m.now())
	m.stop.Store(true)
	elapsed := time.Since(start)
	result.Seconds = elapsed.Seconds()
	result.ClientCPU = (ownCPU() - mine).Seconds()
	line.sample(elapsed, true)
	result.Timeline = line.samples
	if l.Progress != nil {
		l.Progress(l.Duration, m.counts().bytes)
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

// because says with an error that ctx has ended, when it has: what failed may have failed for that.
func because(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(ctx.Err(), err)
}

// wait waits for so long, or until all senders have ended by themselves.
func (m *meter) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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
