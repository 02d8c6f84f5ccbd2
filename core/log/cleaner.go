package log

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/log/compact"
)

// CleanerOptions are how logs are compacted. All of them may be changed at any time, see Manager.SetCleaner.
type CleanerOptions struct {
	// Threads is log.cleaner.threads: how many logs are compacted at once. With 0 none is.
	Threads int
	// Memory is log.cleaner.dedupe.buffer.size: the most bytes that the tables of keys have, all together. A table is made when
	// a log is compacted, no larger than that log needs.
	Memory int64
	// Load is log.cleaner.io.buffer.load.factor: how full such a table may get.
	Load float64
	// Buffer is log.cleaner.io.buffer.size: how many bytes are read, and written, at a time, all together.
	Buffer int
	// BytesPerSecond is log.cleaner.io.max.bytes.per.second: how much is read and written, all together.
	BytesPerSecond float64
	// Backoff is log.cleaner.backoff.ms: the pause between two looks for something to compact.
	Backoff time.Duration
}

// DefaultCleanerOptions has the values of Kafka 3.9.
func DefaultCleanerOptions() CleanerOptions {
	return CleanerOptions{Threads: 1, Memory: 128 << 20, Load: compact.DefaultLoad, Buffer: 512 << 10, BytesPerSecond: math.MaxFloat64, Backoff: 15 * time.Second}
}

// cleaner compacts the logs of a manager: the one with the largest dirty share first. One goroutine chooses, and starts
// another for each log that is being compacted. As long as no compacted log has closed segments that weren't compacted yet, it
// sleeps; nothing looks at logs that aren't compacted.
type cleaner struct {
	m     *Manager
	o     atomic.Pointer[CleanerOptions]
	pacer pacer

	some    chan struct{} // there may be something to do, after a pause
	changed chan struct{} // o was replaced
	ended   chan outcome
	stop    context.CancelFunc
	done    chan struct{}

	// Of the goroutine that chooses:
	busy map[*Log]bool
	// bad logs could not be compacted and are left alone from then on; late ones were interrupted, or found no space, and have to
	// wait for the next look.
	bad, late map[*Log]bool
}

// outcome is what became of one log.
type outcome struct {
	log *Log
	err error
}

func newCleaner(m *Manager, o CleanerOptions) *cleaner {
	c := &cleaner{m: m, some: make(chan struct{}, 1), changed: make(chan struct{}, 1), ended: make(chan outcome), done: make(chan struct{}),
		busy: map[*Log]bool{}, bad: map[*Log]bool{}, late: map[*Log]bool{}}
	c.o.Store(&o)
	return c
}

// SetCleaner changes how logs are compacted, from the next log on.
func (m *Manager) SetCleaner(o CleanerOptions) {
	if m.cleaner == nil {
		return
	}
	m.cleaner.o.Store(&o)
	signal(m.cleaner.changed)
}

// due says that there may be something to compact. It never waits.
func (c *cleaner) due() { signal(c.some) }

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (c *cleaner) start() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.due()
	go c.loop(ctx)
}

// end interrupts what runs, and waits for it.
func (c *cleaner) end() {
	c.stop()
	<-c.done
}

func (c *cleaner) loop(ctx context.Context) {
	defer close(c.done)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	armed := false
	arm := func() {
		armed = true
		timer.Reset(c.o.Load().Backoff)
	}
	for {
		look := false
		select {
		case <-ctx.Done():
			for range len(c.busy) {
				<-c.ended
			}
			return
		case <-c.some:
			if !armed {
				arm()
			}
		case <-c.changed:
			arm()
		case o := <-c.ended:
			c.took(o)
			look = true
		case <-timer.C:
			armed, look = false, true
			clear(c.late)
		}
		if look && c.fill(ctx) && !armed {
			arm()
		}
	}
}

// took notes what became of a log.
func (c *cleaner) took(o outcome) {
	delete(c.busy, o.log)
	switch {
	case o.err == nil:
	case errors.Is(o.err, ErrInterrupted), errors.Is(o.err, context.Canceled), o.log.Err() != nil:
		c.late[o.log] = true
	case noSpace(o.err):
		// It is what would give space back, so it goes on as soon as there is a little.
		c.late[o.log] = true
		c.m.o.Logger.Warn("no space to compact a log, will try again", "topic", o.log.Topic(), "partition", o.log.Partition(), "in", c.o.Load().Backoff, "err", o.err)
	default:
		c.giveUp(o.log, o.err)
	}
}

// giveUp leaves a log alone from now on.
func (c *cleaner) giveUp(l *Log, err error) {
	c.bad[l] = true
	c.m.o.Logger.Error("log can't be compacted and is left as it is until the next start", "topic", l.Topic(), "partition", l.Partition(), "err", err)
}

// fill starts as many cleanings as may run, and says whether another look is needed later.
func (c *cleaner) fill(ctx context.Context) (again bool) {
	for l := range c.bad {
		if l.Err() != nil {
			delete(c.bad, l) // closed or deleted
		}
	}
	o := *c.o.Load()
	for {
		l, what, waiting := c.filthiest()
		again = waiting
		if l == nil || len(c.busy) >= o.Threads {
			return again
		}
		c.busy[l] = true
		go func() { c.ended <- outcome{l, c.clean(ctx, l, what, o)} }()
	}
}

// filthiest finds the log that is compacted next, nil when none is due. waiting says that there are others, or will be.
func (c *cleaner) filthiest() (best *Log, what cleanable, waiting bool) {
	now := c.m.o.Now()
	for l := range c.m.All() {
		cfg := l.cfg.Load()
		if !cfg.Compact || l.Err() != nil || c.bad[l] || !l.dirty() {
			continue
		}
		waiting = true
		if c.busy[l] || c.late[l] {
			continue
		}
		found, err := l.cleanable(now)
		if err != nil {
			if l.Err() == nil {
				c.giveUp(l, err)
			}
			continue
		}
		if found.due(cfg) && (best == nil || found.ratio() > what.ratio()) {
			best, what = l, found
		}
	}
	return best, what, waiting
}

// clean compacts one log and notes how far.
func (c *cleaner) clean(ctx context.Context, l *Log, what cleanable, o CleanerOptions) error {
	began := time.Now()
	threads := max(o.Threads, 1)
	res, err := l.clean(ctx, what, CompactOptions{
		Now: c.m.o.Now(), Memory: o.Memory / int64(threads), Load: o.Load, Buffer: o.Buffer / threads / 2,
		Pace: func(ctx context.Context, n int) error { return c.pacer.wait(ctx, n, o.BytesPerSecond) },
	})
	if err != nil {
		return err
	}
	c.m.mu.Lock()
	d := c.m.in[l]
	c.m.mu.Unlock()
	if d != nil {
		if err := d.write(cleanerOffsets); err != nil {
			return err
		}
	}
	c.m.o.Logger.Debug("compacted a log", "topic", l.Topic(), "partition", l.Partition(), "from", what.from, "to", res.To, "bytes_read", res.Read,
		"bytes_written", res.Written, "records_dropped", res.Dropped, "segments_before", res.Before, "segments_after", res.After, "took", time.Since(began))
	return nil
}
