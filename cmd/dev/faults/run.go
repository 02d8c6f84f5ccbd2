package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify"
	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
	"github.com/barnabas-mq/barnabas/cmd/dev/logcheck"
)

// partitions is how many the topic under load has.
const partitions = 6

// Setting is what scenarios are run with.
type Setting struct {
	Options
	Seed uint64 // of everything that is left to chance
	Long bool   // more of everything
	Say  func(format string, args ...any)
}

// Result is what a run brought.
type Result struct {
	Report  *verify.Report
	Took    time.Duration
	Printed string // the ends of what brokers printed, when it failed
}

// ErrPromise is in what Run returns when a cluster has broken a promise about what is stored: records lost, twice or in another
// order, replicas or files that disagree, two controllers. Other failures are of time: something did not come about while it
// was waited for, or a leader was deposed without knowing it, because the machine let it stand still, and told an end that was none any more.
var ErrPromise = errors.New("a promise was broken")

// Run runs one scenario on a cluster of its own. The error says what doesn't hold. Files stay in the folder of the options.
func (s Scenario) Run(ctx context.Context, o Setting) (Result, error) {
	begin := time.Now()
	if s.Brokers > 0 {
		o.Brokers = s.Brokers
	}
	o.Votes = s.Votes
	c, err := NewCluster(o.Options)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	r, err := s.run(ctx, c, o)
	result := Result{Report: r, Took: time.Since(begin)}
	if err != nil {
		for _, b := range c.Brokers {
			result.Printed += fmt.Sprintf("%s ends with:\n%s\n", b.name(), b.Output())
		}
	}
	return result, err
}

func (s Scenario) run(ctx context.Context, c *Cluster, o Setting) (*verify.Report, error) {
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	load := verify.Options{
		Bootstrap: c.Bootstrap(), Partitions: partitions, Replication: int16(len(c.Brokers)), MinInSync: 2, Keep: true, Rate: 2000,
		Patience: 2 * time.Minute, EveryLeader: true, Tolerate: s.tolerate(),
		Configs: map[string]string{"segment.bytes": "1000000"}, Say: func(what string) { o.Say("verify: %s", what) },
	}
	if s.Load != nil {
		s.Load(&load)
	}
	run, err := verify.Start(ctx, load)
	if err != nil {
		return nil, err
	}
	f := &Field{Cluster: c, Random: rand.New(rand.NewPCG(o.Seed, 1)), Long: o.Long, Say: o.Say, run: run}
	broken := f.goesOn(ctx, patience)
	if broken == nil {
		broken = s.Break(ctx, f)
	}
	broken = errors.Join(broken, c.Mend(ctx))
	report, err := run.Finish(ctx)
	if report != nil {
		o.Say("%d records acknowledged; the longest silence was %s, of partition %d, from %s on", report.Acknowledged, report.Silence.Round(time.Millisecond), report.SilentOne,
			report.Started.Add(report.SilentAt).Format("15:04:05.000"))
		for what, n := range report.Complaints {
			o.Say("%d times: %s", n, what)
		}
	}
	if err = errors.Join(broken, err); err != nil {
		if s.Finds == "" { // otherwise what it says against the cluster is what was to be found
			err = errors.Join(err, verdict(report))
		}
		return report, err
	}
	if s.Finds != "" {
		if report.Counts[s.Finds] == 0 {
			return report, fmt.Errorf("%w on purpose, and nothing was found to be %s: %v", ErrPromise, s.Finds, report.Counts)
		}
	} else if err := verdict(report); err != nil {
		return report, err
	}
	return report, afterwards(c)
}

// verdict is what a report says against the cluster.
func verdict(r *verify.Report) error {
	if r == nil {
		return nil
	}
	var errs []error
	if !r.OK {
		err := fmt.Errorf("%w: %v", ErrPromise, r.Counts)
		if r.Counts[history.Stale] > 0 && len(r.Counts) == 1 {
			err = fmt.Errorf("%d times an end was told that was none any more", r.Counts[history.Stale])
		}
		errs = append(errs, err)
		for i, fault := range r.Faults {
			if i < 10 {
				errs = append(errs, errors.New(fault.String()))
			}
		}
	}
	for _, what := range r.Unread {
		errs = append(errs, errors.New("not read: "+what))
	}
	return errors.Join(errs...)
}

// afterwards stops the brokers and looks at their files.
func afterwards(c *Cluster) error {
	if err := c.Stop(); err != nil {
		return err
	}
	var dirs []string
	for _, b := range c.Brokers {
		dirs = append(dirs, b.Data())
		if _, err := logcheck.Directory(b.Data()); err != nil {
			return fmt.Errorf("%w: %s: its files: %w", ErrPromise, b.name(), err)
		}
	}
	compared, err := Replicas(dirs...)
	if err == nil && compared == 0 {
		err = errors.New("no partition has replicas")
	}
	if err = errors.Join(err, c.controllers()); err != nil {
		return fmt.Errorf("%w: %w", ErrPromise, err)
	}
	return nil
}
