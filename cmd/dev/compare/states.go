package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

// state is a figure of a broker that starts, or is idle.
type state struct {
	name  string
	unit  string
	limit float64
}

// The figures, by name.
const (
	startEmpty = "start"
	startFull  = "start-1000"
	memoryIdle = "memory"
	memoryFull = "memory-1000"
	cpuIdle    = "idle"
)

// many is how many partitions, and how many connections, a busy broker has.
const many = 1000

func states() []state {
	return []state{
		{startEmpty, "ms to the first Metadata, empty", 100},
		{startFull, "ms to the first Metadata, 1,000 partitions", 1000},
		{memoryIdle, "MB RssAnon, idle", 30},
		{memoryFull, "MB RssAnon, 1,000 partitions and connections", 150},
		{cpuIdle, "% of a core, idle", 0.3},
	}
}

// measureStates measures each storage, and Kafka for comparison where that costs no time.
func (c *Comparison) measureStates(ctx context.Context) (Report, error) {
	any := false
	for _, s := range states() {
		any = any || c.wants(s.name)
	}
	if !any {
		return nil, nil
	}
	theirs := map[string]float64{}
	if c.wants(startEmpty) || c.wants(memoryIdle) || c.wants(cpuIdle) {
		begin := time.Now()
		kafka, err := c.startKafka(ctx, "idle-kafka")
		if err != nil {
			return nil, err
		}
		took := time.Since(begin) // of which some is for formatting its storage
		err = c.watchIdle(ctx, kafka, "kafka", theirs)
		if err = errors.Join(err, kafka.Stop()); err != nil {
			return nil, err
		}
		c.Env.Say("kafka answered %.1f s after its start, formatting included", took.Seconds())
	}
	var report Report
	for _, storage := range c.Storages {
		ours := map[string]float64{}
		if err := c.measureStorage(ctx, storage, ours); err != nil {
			return nil, fmt.Errorf("storage %s: %w", storage, err)
		}
		for _, s := range states() {
			if c.wants(s.name) {
				report = append(report, Figure{Name: s.name, Broker: "barnabas " + storage, Unit: s.unit, Ours: ours[s.name], Theirs: theirs[s.name], Limit: s.limit})
			}
		}
	}
	return report, nil
}

func (c *Comparison) measureStorage(ctx context.Context, storage string, ours map[string]float64) error {
	var starts []float64
	for i := range 5 {
		name := fmt.Sprintf("start-%s-%d", storage, i)
		p, took, err := c.startTimed(ctx, name, storage)
		if err != nil {
			return err
		}
		starts = append(starts, took.Seconds()*1e3)
		if i == 0 && (c.wants(memoryIdle) || c.wants(cpuIdle)) {
			err = c.watchIdle(ctx, p, "barnabas "+storage, ours)
		}
		if err = errors.Join(err, p.Stop(), os.RemoveAll(filepath.Join(c.Dir, name))); err != nil {
			return err
		}
	}
	ours[startEmpty] = median(starts)
	c.Env.Say("barnabas %s starts in %.0f ms with nothing", storage, starts)
	if c.wants(startFull) || c.wants(memoryFull) {
		return c.measureFull(ctx, storage, ours)
	}
	return nil
}

// watchIdle measures a broker that has just started and does nothing.
func (c *Comparison) watchIdle(ctx context.Context, p *peers.Peer, name string, into map[string]float64) error {
	if err := pause(ctx, 2*time.Second); err != nil { // what follows a start is over then
		return err
	}
	before, err := bench.Measure(p.Pid())
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := pause(ctx, c.Idle); err != nil {
		return err
	}
	after, err := bench.Measure(p.Pid())
	if err != nil {
		return err
	}
	into[cpuIdle] = 100 * (after.CPU - before.CPU).Seconds() / time.Since(begin).Seconds()
	into[memoryIdle] = float64(after.RSSAnon) / 1e6
	c.Env.Say("%s is idle with %.2f %% of a core and %.1f MB", name, into[cpuIdle], into[memoryIdle])
	return nil
}

// measureFull makes many partitions with something in each, and measures the memory with as many connections, and how long
// a start takes after a clean stop.
func (c *Comparison) measureFull(ctx context.Context, storage string, ours map[string]float64) (err error) {
	name := "full-" + storage
	p, err := c.startBarnabas(ctx, name, storage, "")
	if err != nil {
		return err
	}
	defer func() { // p changes
		if err != nil && p != nil {
			p.Kill()
		}
	}()
	if err := bench.CreateTopic(ctx, p.Addr, "many", many, 1); err != nil {
		return err
	}
	if err := bench.Fill(ctx, p.Addr, "many", 2*many*64<<10); err != nil {
		return err
	}
	err = bench.Hold(ctx, p.Addr, many, func() error {
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
		u, err := bench.Measure(p.Pid())
		ours[memoryFull] = float64(u.RSSAnon) / 1e6
		return err
	})
	if err != nil {
		return err
	}
	var starts []float64
	for range 3 {
		if err := p.Stop(); err != nil {
			return err
		}
		var took time.Duration
		if p, took, err = c.startTimed(ctx, name, storage); err != nil {
			return err
		}
		starts = append(starts, took.Seconds()*1e3)
	}
	ours[startFull] = median(starts)
	c.Env.Say("barnabas %s with %d partitions: %.1f MB with as many connections, starts in %.0f ms", storage, many, ours[memoryFull], starts)
	return errors.Join(p.Stop(), os.RemoveAll(filepath.Join(c.Dir, name)))
}
