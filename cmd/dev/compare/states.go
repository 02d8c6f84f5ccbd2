package compare

import (
	"cmp"
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
	name   string
	unit   string
	target Target
	sample string // what its samples are noted as, unless that is name
}

// The rows, by name.
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
		{name: startEmpty, unit: "ms to the first Metadata, empty", target: atMost(1.0 / 30)},
		{name: startEmpty, unit: "ms to the first Metadata, empty", target: Target{Limit: 100}},
		{name: memoryIdle, unit: "MB RssAnon, idle", target: atMost(1.0 / 12)},
		{name: memoryIdle, unit: "MB RssAnon, idle", target: Target{Limit: 30}},
		{name: cpuIdle, unit: "% of a core, idle", target: atMost(0.1)},
		{name: cpuIdle, unit: "% of a core, idle", target: Target{Limit: 0.3}},
		{name: startFull, unit: "ms to the first Metadata, 1,000 partitions", target: Target{Limit: 1000}},
		{name: memoryFull, unit: "MB RssAnon, 1,000 partitions and connections", target: Target{Limit: 150}},
	}
}

// noted are samples by row, one a round.
type noted map[string][]float64

func (n noted) note(name string, sample float64) { n[name] = append(n[name], sample) }

// figuresOf makes the figures of wanted states; the first of of is Kafka's.
func (c *Comparison) figuresOf(all []state, of []noted) []Figure {
	var figures []Figure
	for _, s := range all {
		if !c.wants(s.name) {
			continue
		}
		for i, k := range c.kinds()[1:] {
			sample := cmp.Or(s.sample, s.name)
			figures = append(figures, Figure{Name: s.name, Broker: k.String(), Unit: s.unit, Target: s.target, Ours: of[i+1][sample], Theirs: of[0][sample]})
		}
	}
	return figures
}

// measureStates measures each storage, and Kafka for comparison where that costs no time.
func (c *Comparison) measureStates(ctx context.Context) ([]Figure, error) {
	if !c.wants(startEmpty, memoryIdle, cpuIdle, startFull, memoryFull) {
		return nil, nil
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	of := make([]noted, len(c.kinds()))
	for i := range of {
		of[i] = noted{}
	}
	if c.wants(startEmpty, memoryIdle, cpuIdle) {
		p, err := c.startKafka(ctx, "idle-kafka", 0) // formats its storage, and brings what it needs into the page cache
		if err != nil {
			return nil, err
		}
		if err := p.Stop(); err != nil {
			return nil, err
		}
		for range c.Rounds {
			if err := c.measureIdle(ctx, of); err != nil {
				return nil, err
			}
		}
	}
	if c.wants(startFull, memoryFull) {
		for i, k := range c.kinds()[1:] {
			if err := c.measureFull(ctx, k, of[i+1]); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return c.figuresOf(states(), of), nil
}

// measureIdle starts brokers on nothing, one after the other, and watches them together while they do nothing.
func (c *Comparison) measureIdle(ctx context.Context, of []noted) (err error) {
	kinds := c.kinds()
	running := make([]*peers.Peer, len(kinds))
	defer func() {
		for i, p := range running {
			if p == nil {
				continue
			}
			err = errors.Join(err, p.Stop())
			if kinds[i].storage != "" {
				err = errors.Join(err, os.RemoveAll(filepath.Join(c.Dir, "idle-"+kinds[i].storage)))
			}
		}
	}()
	for i := len(kinds) - 1; i >= 0; i-- { // Kafka last: it is busy for a while after it has started
		name := "idle-" + kinds[i].storage
		if i == 0 {
			name = "idle-kafka"
		}
		p, took, err := c.startTimed(ctx, kinds[i], name)
		if err != nil {
			return err
		}
		running[i] = p
		of[i].note(startEmpty, took.Seconds()*1e3)
	}
	if !c.wants(memoryIdle, cpuIdle) {
		return nil
	}
	if err := pause(ctx, 6*time.Second); err != nil { // what follows a start is over then
		return err
	}
	before := make([]bench.Usage, len(kinds))
	for i, p := range running {
		if before[i], err = bench.Measure(p.Pid()); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := pause(ctx, c.Idle); err != nil {
		return err
	}
	for i, p := range running {
		after, err := bench.Measure(p.Pid())
		if err != nil {
			return err
		}
		of[i].note(cpuIdle, 100*(after.CPU-before[i].CPU).Seconds()/time.Since(begin).Seconds())
		of[i].note(memoryIdle, float64(after.RSSAnon)/1e6)
		c.Env.Say("%s started in %.0f ms, is idle with %.2f %% of a core and %.1f MB", kinds[i], last(of[i][startEmpty]), last(of[i][cpuIdle]), last(of[i][memoryIdle]))
	}
	return nil
}

func last(all []float64) float64 { return all[len(all)-1] }

// measureFull makes many partitions with something in each, and measures the memory with as many connections, and how long
// a start takes after a clean stop.
func (c *Comparison) measureFull(ctx context.Context, k kind, of noted) (err error) {
	name := "full-" + k.storage
	p, err := c.start(ctx, k, name, 0)
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
		of.note(memoryFull, float64(u.RSSAnon)/1e6)
		return err
	})
	if err != nil {
		return err
	}
	for range c.Rounds {
		if err := p.Stop(); err != nil {
			return err
		}
		var took time.Duration
		if p, took, err = c.startTimed(ctx, k, name); err != nil {
			return err
		}
		of.note(startFull, took.Seconds()*1e3)
	}
	c.Env.Say("%s with %d partitions: %.1f MB with as many connections, starts in %.0f ms", k, many, of[memoryFull], of[startFull])
	return errors.Join(p.Stop(), os.RemoveAll(filepath.Join(c.Dir, name)))
}
