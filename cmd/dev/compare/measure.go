package compare

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/limits"
)

// samples are what was read off a load: by broker, measure and round.
type samples [][][]float64

func newSamples(brokers, measures int) samples {
	s := make(samples, brokers)
	for i := range s {
		s[i] = make([][]float64, measures)
	}
	return s
}

// measureLoads starts all brokers and puts each load on each of them, in turn.
func (c *Comparison) measureLoads(ctx context.Context) ([]Figure, error) {
	var wanted []load
	for _, l := range loads() {
		if c.wants(l.name) {
			wanted = append(wanted, l)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	brokers, stop, err := c.startAll(ctx)
	defer stop()
	if err != nil {
		return nil, err
	}
	if err := c.warmUp(ctx, wanted, brokers); err != nil {
		return nil, err
	}
	var figures []Figure
	for i := range wanted {
		of, err := c.measureLoad(ctx, &wanted[i], brokers)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			c.fails(err)
			continue
		}
		figures = append(figures, of...)
	}
	return figures, nil
}

// calmAfter is how long a virtual machine is left alone before delays are measured: what was used and freed may be taken back
// after seconds, and everything on the machine stands still for up to 30 ms at a time meanwhile.
const calmAfter = 30 * time.Second

// touch has the machine give the memory that what is measured next will need.
func (c *Comparison) touch(ctx context.Context) error {
	if err := limits.Touch(ctx, c.Touch); err != nil {
		return fmt.Errorf("have memory there before a load (--touch 0 goes without): %w", err)
	}
	return nil
}

// startAll starts a broker of each kind, Kafka's first. stop, which is never nil, ends those that run.
func (c *Comparison) startAll(ctx context.Context) (brokers []broker, stop func(), err error) {
	var ends []func()
	stop = func() {
		for _, end := range ends {
			end()
		}
	}
	for _, k := range c.kinds() {
		p, err := c.start(ctx, k, "loads-"+k.storage, 0)
		if err != nil {
			return nil, stop, err
		}
		ends = append(ends, p.Kill)
		brokers = append(brokers, broker{k.String(), p.Addr, []int{p.Pid()}, 1})
	}
	return brokers, stop, nil
}

// warmUp puts all loads on all brokers.
func (c *Comparison) warmUp(ctx context.Context, wanted []load, brokers []broker) error {
	each := c.WarmUp / time.Duration(len(wanted))
	if each <= 0 {
		return nil
	}
	for i, b := range brokers {
		took := each
		if i > 0 {
			took = min(each, time.Second/2) // nothing is compiled while it runs
		}
		c.Env.Say("warming %s up for %s", b.name, took*time.Duration(len(wanted)))
		for _, l := range wanted {
			if _, err := l.put(ctx, b, took); err != nil {
				return err
			}
			if err := pause(ctx, settle/2); err != nil {
				return err
			}
		}
	}
	return pause(ctx, settle)
}

// measureLoad puts one load on all brokers, in turn; each round begins with another one. What bounds it is measured in each round.
func (c *Comparison) measureLoad(ctx context.Context, l *load, brokers []broker) ([]Figure, error) {
	of := newSamples(len(brokers), len(l.measures))
	bound, reference := newSamples(1, len(l.measures))[0], newSamples(1, len(l.measures))[0]
	touch := c.touch
	if l.calm {
		if err := pause(ctx, calmAfter); err != nil {
			return nil, err
		}
		touch = func(context.Context) error { return nil }
	}
	for round := range c.Rounds {
		if err := touch(ctx); err != nil {
			return nil, err
		}
		now, err := c.bounds.measure(ctx, c.Dir, l.limits)
		if err != nil {
			return nil, err
		}
		for i, m := range l.measures {
			if m.bound != nil {
				bound[i] = append(bound[i], m.bound(now))
			}
			if m.reference != nil {
				reference[i] = append(reference[i], m.reference(now))
			}
		}
		for turn := range brokers {
			i := (round + turn) % len(brokers)
			if err := touch(ctx); err != nil {
				return nil, err
			}
			result, err := l.put(ctx, brokers[i], c.Duration*time.Duration(max(l.longer, 1)))
			if err != nil {
				return nil, err
			}
			for j, m := range l.measures {
				of[i][j] = append(of[i][j], m.of(result))
			}
			c.Env.Say("%-15s %-17s %s", l.name, brokers[i].name, told(result))
			if err := pause(ctx, settle); err != nil {
				return nil, err
			}
		}
	}
	var figures []Figure
	for j, m := range l.measures {
		for i, b := range brokers[1:] {
			figures = append(figures, Figure{Name: l.name, Broker: b.name, Unit: m.unit, Target: m.target,
				Ours: of[i+1][j], Theirs: of[0][j], Reference: reference[j], Bound: bound[j]})
		}
	}
	return figures, nil
}

// told is a result for who watches.
func told(r *bench.Result) string {
	s := fmt.Sprintf("%6.0f MiB/s %8.0f requests/s, p50 %.3f p99 %.3f p99.9 %.3f ms", r.MiBPerSecond(), r.RequestsPerSecond(),
		r.Latency.P50/1e3, r.Latency.P99/1e3, r.Latency.P999/1e3)
	if r.Broker != nil && r.Broker.CPU > 0 {
		s += fmt.Sprintf(", %.3f CPU-s/GB, %.1f µs/request, kernel %.0f %%", r.CPUPerGB(), r.CPUPerRequest(), 100*r.Broker.System/r.Broker.CPU)
	}
	return s + fmt.Sprintf(", generator %.2f of a core", r.ClientCPU/r.Seconds)
}
