// Package plugincheck holds a plug-in that runs as a process of its own against its contract, and against what a host does to
// it: `barnabas plugin check` as a function, and as one call in a plug-in's own tests:
//
//	func TestPlugin(t *testing.T) {
//		plugincheck.Test(t, plugincheck.Options{Command: "./geo", Role: "partitioner"})
//	}
//
// The contracts' clauses are those of core/partitioner/partitionertest and its like; each is one check. The others are what no
// clause says: that the plug-in wants a host and its certificate, takes no nonsense, comes back when it is killed or stopped,
// ends when it is told, and doesn't shout. What it costs is measured.
package plugincheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/plugins/remote"
)

// Options say what is checked, and how.
type Options struct {
	// Command is the executable, as in the configuration file, and Args and Env what it is given.
	Command string
	Args    []string
	Env     []string
	// Role is "partitioner", "compression" or "offsets"; "" for the first that the plug-in has.
	Role string
	// Config is the plug-in's options as YAML: what stands under `config` in the configuration file. $DIR in it is replaced by
	// an empty folder, another for each check.
	Config string
	// Forgets says that an offsets store keeps nothing when its process ends.
	Forgets bool
	// Only is a part of the names of the checks to make; "" makes all and measures. What all others need is made in any case.
	Only string
	// StartTimeout and CallTimeout are how long the plug-in may take; 0 for 10 s and 1 s.
	StartTimeout time.Duration
	CallTimeout  time.Duration
}

// Check is the outcome of one check.
type Check struct {
	Name string
	// Err says what is wrong; nil when nothing is.
	Err  error
	Took time.Duration
}

// Cost is one thing that was measured.
type Cost struct {
	What   string
	Value  time.Duration
	Within time.Duration // what it should stay below; 0 for no opinion
}

// Report is the outcome of all checks.
type Report struct {
	Name, Version, Role string
	Checks              []Check
	Costs               []Cost
	// Cut says that the rest wasn't tried, for it makes no sense after what failed.
	Cut bool
}

// Failed counts the checks that failed.
func (r *Report) Failed() (n int) {
	for _, c := range r.Checks {
		if c.Err != nil {
			n++
		}
	}
	return n
}

// Grade is A when everything passes and costs what it should, B when it costs more, F when a check fails.
func (r *Report) Grade() string {
	if r.Failed() > 0 {
		return "F"
	}
	for _, c := range r.Costs {
		if c.Within > 0 && c.Value > c.Within {
			return "B"
		}
	}
	return "A"
}

// Write prints the report.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, c := range r.Checks {
		if c.Err == nil {
			fmt.Fprintf(t, "ok\t%s\t%s\n", c.Name, c.Took.Round(time.Millisecond))
			continue
		}
		fmt.Fprintf(t, "FAIL\t%s\t%s\n", c.Name, c.Took.Round(time.Millisecond))
		for line := range strings.SplitSeq(strings.TrimSpace(c.Err.Error()), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				fmt.Fprintf(t, "\t  %s\n", line)
			}
		}
	}
	if r.Cut {
		fmt.Fprintf(t, "\tthe rest wasn't tried\n")
	}
	for _, c := range r.Costs {
		note := ""
		if c.Within > 0 {
			note = "should be below " + c.Within.String()
		}
		fmt.Fprintf(t, "cost\t%s: %s\t%s\n", c.What, c.Value, note)
	}
	fmt.Fprintf(t, "\n%s %s, %s: grade %s, %d of %d checks failed\n", r.Name, r.Version, r.Role, r.Grade(), r.Failed(), len(r.Checks))
	return t.Flush()
}

// Run makes all checks. told, which may be nil, hears of each as it ends. When ctx ends, the rest isn't tried.
func Run(ctx context.Context, o Options, told func(Check)) *Report {
	c := &checker{Options: o, report: &Report{Name: o.Command, Version: "?", Role: o.Role}}
	if c.StartTimeout == 0 {
		c.StartTimeout = 10 * time.Second
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = time.Second
	}
	steps := c.first(ctx)
	found := false
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		if ctx.Err() != nil {
			c.report.Cut = true
			return c.report
		}
		chosen := strings.Contains(s.name, c.Only)
		found = found || chosen
		if !chosen && !s.vital {
			steps = c.complete(ctx, steps, i)
			continue
		}
		began := time.Now()
		done := Check{Name: s.name, Err: c.try(s)}
		done.Took = time.Since(began)
		c.report.Checks = append(c.report.Checks, done)
		if told != nil {
			told(done)
		}
		if done.Err != nil && s.vital {
			c.report.Cut = true
			return c.report
		}
		steps = c.complete(ctx, steps, i)
	}
	if !found {
		c.report.Checks = append(c.report.Checks, Check{Name: "there is something to check", Err: fmt.Errorf("no check's name has %q in it", c.Only)})
	}
	if c.report.Failed() == 0 && c.Only == "" {
		costs, err := c.measure(ctx)
		c.report.Costs = costs
		if err != nil {
			c.report.Checks = append(c.report.Checks, Check{Name: "can be measured", Err: err})
		}
	}
	return c.report
}

// Test makes all checks as one test, which fails with the report.
func Test(t *testing.T, o Options) {
	t.Helper()
	r := Run(t.Context(), o, nil)
	if r.Failed() > 0 || r.Cut {
		var text strings.Builder
		_ = r.Write(&text)
		t.Errorf("%s", text.String())
	}
}

// complete appends, behind the last of the first steps, those that depend on the role.
func (c *checker) complete(ctx context.Context, steps []step, done int) []step {
	if done < len(steps)-1 || c.all {
		return steps
	}
	c.all = true
	return append(steps, c.rest(ctx)...)
}

// step is one check. After a vital one that fails the rest makes no sense.
type step struct {
	name  string
	vital bool
	check func() error
}

// checker is what the checks share.
type checker struct {
	Options
	report *Report
	dirs   []string // of the check that runs
	all    bool     // the list of checks is complete
}

// try runs a check and clears up behind it.
func (c *checker) try(s step) error {
	defer func() {
		for _, dir := range c.dirs {
			_ = os.RemoveAll(dir)
		}
		c.dirs = nil
	}()
	return s.check()
}

// options are those of a plug-in for one check, in an empty folder.
func (c *checker) options() (remote.Options, error) {
	o := remote.Defaults()
	o.Command, o.Args, o.Env, o.StartTimeout, o.CallTimeout = c.Command, c.Args, c.Env, c.StartTimeout, c.CallTimeout
	o.PingInterval, o.MaxBackoff = 200*time.Millisecond, time.Second
	text := c.Config
	if strings.Contains(text, "$DIR") {
		dir, err := os.MkdirTemp("", "plugincheck")
		if err != nil {
			return o, err
		}
		c.dirs = append(c.dirs, dir)
		text = strings.ReplaceAll(text, "$DIR", dir)
	}
	section, err := config.Parse("config", []byte(text))
	o.Config = section
	return o, err
}

// first lists the checks that every plug-in needs to pass, whatever its role.
func (c *checker) first(ctx context.Context) []step {
	return []step{
		{"runs for a host only", false, c.wantsHost},
		{"starts and says what it is", true, func() error { return c.introduces(ctx) }},
		{"refuses strangers", false, func() error { return c.refusesStrangers(ctx) }},
		{"refuses options that it doesn't have", false, func() error { return c.refusesOptions(ctx) }},
		{"takes its options", true, func() error { return c.takesOptions(ctx) }},
		{"answers a call", true, func() error { return c.answers(ctx) }},
		{"doesn't shout", false, func() error { return c.quiet(ctx) }},
		{"gets over nonsense", false, func() error { return c.survives(ctx) }},
		{"ends when it is told", false, func() error { return c.ends(ctx) }},
	}
}

// rest lists the clauses of the role, which is known by now, and what needs a plug-in that keeps them.
func (c *checker) rest(ctx context.Context) []step {
	return append(c.clauses(ctx),
		step{"comes back after it was killed", false, func() error { return c.comesBack(ctx, kill) }},
		step{"comes back after it hung", false, func() error { return c.comesBack(ctx, pause) }},
	)
}

// silent is where plug-ins under test log to.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

var errNotEnded = errors.New("it hadn't ended 3s after the end of its standard input, and was killed")
