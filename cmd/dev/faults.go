package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/faults"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

func (d *dev) faultsCommand() *cobra.Command {
	var f faultFlags
	var about strings.Builder
	for _, s := range faults.Scenarios() {
		fmt.Fprintf(&about, "  %-19s %s\n", s.Name, s.About)
	}
	c := &cobra.Command{
		Use:   "faults [SCENARIO…]",
		Short: "Break clusters of three brokers under load, and see that they keep what they promise",
		Long: `Starts a ZooKeeper of three servers, and for each scenario a cluster of three brokers on it, and breaks it while
records are written and read; with --coordination memberlist these are brokers that need no ZooKeeper. Without names it is the
scenarios that every change has to pass, with --long all:

` + about.String(),
		RunE: func(c *cobra.Command, args []string) error { return d.faults(c.Context(), f, args) },
	}
	c.Flags().BoolVar(&f.long, "long", false, "all scenarios, and more of everything in each (an hour)")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "of what is left to chance (default: another one each time)")
	c.Flags().StringVar(&f.storage, "storage", "", "mmap or sendfile (default: the broker's)")
	c.Flags().StringVar(&f.target, "target", target.Barnabas, "what to break: barnabas (built from this tree) kafka39 (Apache Kafka, which proves the scenarios), or mixed (one of three brokers is Apache Kafka)")
	c.Flags().StringVar(&f.coordination, "coordination", target.ZooKeeper, "zookeeper or memberlist")
	c.Flags().BoolVar(&f.keep, "keep", false, "keep the files of brokers and ZooKeeper, also when all went well")
	c.Flags().IntVar(&f.rounds, "rounds", 1, "how many times, each with the next seed")
	return c
}

// mixed is the target that is two of ours and one broker of Apache Kafka's.
const mixed = "mixed"

type faultFlags struct {
	long         bool
	seed         uint64
	storage      string
	target       string
	coordination string
	rounds       int
	keep         bool
	again        bool // a scenario that failed for another reason than a broken promise is run once more
}

// pick gives the scenarios with the given names; without names those that every change has to pass, or all.
func (f faultFlags) pick(names []string) (picked []faults.Scenario, err error) {
	known := map[string]faults.Scenario{}
	for _, s := range faults.Scenarios() {
		known[s.Name] = s
		if len(names) == 0 && s.Runs(f.coordination == target.Memberlist, f.long) {
			picked = append(picked, s)
		}
	}
	for _, name := range names {
		s, ok := known[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("no scenario %q: faults --help lists them", name)
		case !s.Runs(f.coordination == target.Memberlist, true):
			return nil, fmt.Errorf("scenario %s is not for --coordination %s", name, f.coordination)
		}
		picked = append(picked, s)
	}
	return picked, nil
}

// check says what is wrong with the flags.
func (f faultFlags) check() error {
	if !slices.Contains([]string{target.Barnabas, target.Kafka39, mixed}, f.target) {
		return fmt.Errorf("target %q: not %s, %s or %s", f.target, target.Barnabas, target.Kafka39, mixed)
	}
	switch f.coordination {
	case target.ZooKeeper:
	case target.Memberlist:
		if f.target != target.Barnabas {
			return fmt.Errorf("%s needs a ZooKeeper", f.target)
		}
	default:
		return fmt.Errorf("coordination %q: not %s or %s", f.coordination, target.ZooKeeper, target.Memberlist)
	}
	return nil
}

func (d *dev) faults(ctx context.Context, f faultFlags, names []string) error {
	if err := f.check(); err != nil {
		return err
	}
	scenarios, err := f.pick(names)
	if err != nil {
		return err
	}
	o := faults.Options{Storage: f.storage}
	if o.Mixed = f.target == mixed; o.Mixed || f.target == target.Kafka39 {
		java, err := peers.Kafka39Jars(ctx, d.tools)
		if err != nil {
			return err
		}
		o.Kafka = &java
	}
	if o.Binary, err = d.tools.GoBuild(ctx, "./cmd/barnabas"); err != nil {
		return err
	}
	dir, cleanup, err := d.env.TempDir("faults-")
	if err != nil {
		return err
	}
	if f.coordination == target.ZooKeeper {
		start := func(name string) (err error) {
			o.ZooKeeper, err = zktest.Start(ctx, zktest.Options{Dir: filepath.Join(dir, name), Servers: 3})
			return err
		}
		if first := start("zookeeper"); first != nil {
			if !f.again || ctx.Err() != nil {
				return first
			}
			d.env.Print(fmt.Sprintf("\nZooKeeper FAILED, and is started again: %v\n\n", first))
			if err := start("zookeeper-again"); err != nil {
				return fmt.Errorf("%w\nand the first time: %s", err, task.Brief(first))
			}
			d.env.Unsteady("the start of ZooKeeper", first)
		}
		defer func() { _ = o.ZooKeeper.Stop() }()
	}
	if f.seed == 0 {
		f.seed = uint64(time.Now().UnixNano())
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"scenario", "result", "seconds", "acknowledged", "longest silence"})
	var failed []string
	for round := range uint64(max(1, f.rounds)) {
		for _, s := range scenarios {
			if ctx.Err() != nil {
				break
			}
			seed := f.seed + round
			place := fmt.Sprintf("%s-%d", s.Name, round)
			o.Dir, o.Root = filepath.Join(dir, place), "/"+place
			d.env.Say("%s: %s (seed %d)", s.Name, s.About, seed)
			setting := faults.Setting{Options: o, Seed: seed, Long: f.long, Say: d.env.Say}
			got, err := d.scenario(ctx, f, s.Name, setting, s.Run)
			row := table.Row{s.Name, "ok", fmt.Sprintf("%.0f", got.Took.Seconds())}
			if err != nil {
				failed = append(failed, fmt.Sprintf("%s on %s (--seed %d): %s", s.Name, f.coordination, seed, task.Brief(err)))
				row[1] = "FAILED"
				d.env.Print(fmt.Sprintf("\n%s FAILED: %v\n%s\n", s.Name, err, got.Printed))
			}
			if r := got.Report; r != nil {
				row = append(row, r.Acknowledged, r.Silence.Round(10*time.Millisecond))
			}
			t.AppendRow(row)
		}
	}
	d.env.Print("\n" + t.Render() + "\n")
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "\n") + "\nthe files are in " + dir)
	}
	if f.keep {
		d.env.Say("the files are in %s", dir)
		return nil
	}
	cleanup()
	return nil
}

// scenario runs a scenario, and once more when it may: then an error has what either attempt failed with.
func (d *dev) scenario(ctx context.Context, f faultFlags, name string, o faults.Setting, run func(context.Context, faults.Setting) (faults.Result, error)) (faults.Result, error) {
	got, first := run(ctx, o)
	if first == nil || !f.again || errors.Is(first, faults.ErrPromise) || ctx.Err() != nil {
		return got, first
	}
	d.env.Print(fmt.Sprintf("\n%s FAILED, and is run again: %v\n%s\n", name, first, got.Printed))
	o.Dir, o.Root = o.Dir+"-again", o.Root+"-again"
	got, err := run(ctx, o)
	if err == nil {
		d.env.Unsteady(fmt.Sprintf("the scenario %s on %s (--seed %d)", name, f.coordination, o.Seed), first)
		return got, nil
	}
	return got, fmt.Errorf("%w\nand the first time: %s", err, task.Brief(first))
}
