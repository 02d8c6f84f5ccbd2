package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// Options are how much of everything there is.
type Options struct {
	Storages      []string
	Coordinations []string // of clusters
	Partitions    int
	Connections   int
	Groups        int
	Segments      int
	Lasts         time.Duration // of the endurance run
}

// Defaults are the options that the bounds are meant for.
func Defaults() Options {
	return Options{
		Storages: []string{"mmap", "sendfile"}, Coordinations: []string{target.ZooKeeper, target.Memberlist},
		Partitions: 10_000, Connections: 5000, Groups: 1000, Segments: 200, Lasts: 5 * time.Minute,
	}
}

// check says which option makes no sense.
func (o *Options) check() error {
	var errs []error
	for _, n := range []struct {
		name         string
		value, least int
	}{{"partitions", o.Partitions, 100}, {"connections", o.Connections, 10}, {"groups", o.Groups, 1}, {"segments", o.Segments, 2}} {
		if n.value < n.least {
			errs = append(errs, fmt.Errorf("--%s %d: at least %d are needed", n.name, n.value, n.least))
		}
	}
	if o.Lasts < 30*time.Second {
		errs = append(errs, fmt.Errorf("--duration %s: it takes 30s until anything can be said", o.Lasts))
	}
	return errors.Join(errs...)
}

// Scenario is one way to strain brokers.
type Scenario struct {
	Name  string
	About string

	clusters bool // it is for each coordination, not for each storage
	run      func(ctx context.Context, f *field) error
}

// Scenarios lists all, in the order in which they run.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "partitions", About: "10,000 partitions on one broker: made, written to, idle, started again cleanly and after kill -9, deleted", run: partitions},
		{Name: "segments", About: "a log of 200 segments: a start with nothing cached doesn't read them", run: segments},
		{Name: "connections", About: "5,000 connections, mostly idle, some slow: memory, and delays of the others", run: connections},
		{Name: "groups", About: "1,000 groups with two members each: heartbeats, a restart, members that go", run: groups},
		{Name: "endurance", About: "hours in minutes: segments roll, are deleted and compacted; memory, descriptors, maps and delays stay what they are", run: endurance},
		{Name: "takeover", About: "three brokers with 10,000 partitions of three replicas: their controller resigns, and is killed", clusters: true, run: takeover},
	}
}

// Pick gives the scenarios of these names, or all.
func Pick(names []string) ([]Scenario, error) {
	if len(names) == 0 {
		return Scenarios(), nil
	}
	var picked []Scenario
	for _, name := range names {
		var known []string
		found := false
		for _, s := range Scenarios() {
			known = append(known, s.Name)
			if s.Name == name {
				picked, found = append(picked, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no scenario %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return picked, nil
}

// Run is one run of scenarios.
type Run struct {
	Options
	Env   *task.Env
	Tools *tools.Tools
}

// Play plays the scenarios, one after the other, each for every storage or coordination. A scenario that can't be played to its end
// doesn't keep the others from it.
func (r *Run) Play(ctx context.Context, scenarios []Scenario) (*Report, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	bin, err := r.Tools.GoBuild(ctx, "./cmd/barnabas")
	if err != nil {
		return nil, err
	}
	report := &Report{}
	var errs []error
	for _, s := range scenarios {
		of := r.Storages
		if s.clusters {
			of = r.Coordinations
		}
		for _, broker := range of {
			if err := ctx.Err(); err != nil {
				return report, errors.Join(append(errs, err)...)
			}
			if err := r.play(ctx, s, broker, bin, report); err != nil {
				r.Env.Say("%s, %s: %v", s.Name, broker, err)
				errs = append(errs, fmt.Errorf("%s, %s: %w", s.Name, broker, err))
			}
		}
	}
	return report, errors.Join(errs...)
}

func (r *Run) play(ctx context.Context, s Scenario, broker, bin string, report *Report) error {
	dir, cleanup, err := r.Env.TempDir("scale-")
	if err != nil {
		return err
	}
	defer cleanup()
	f := &field{Options: r.Options, scenario: s.Name, broker: broker, bin: bin, dir: dir, report: report, env: r.Env,
		opener: target.Opener{Env: r.Env, Tools: r.Tools}}
	return s.run(ctx, f)
}
