package task

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Stage is a part of a test run that can be chosen by name.
type Stage struct {
	Name  string
	About string // one line for the help text
	Run   func(context.Context) error
	// Again lets the stage run once more after it failed, and says so at the end: its programs aren't ours, or wait for each
	// other in more ways than can be told apart from a fault. No stage that judges what was stored has it.
	Again bool
	// Beside names a group: stages of one group that follow each other run at the same time. It is for those that wait most of the
	// time, and don't fail because the machine is busy meanwhile.
	Beside string
}

// Pick returns the stages with the given names, in the order of stages; no name means all.
func Pick(stages []Stage, names []string) ([]Stage, error) {
	if len(names) == 0 {
		return stages, nil
	}
	known := make([]string, len(stages))
	for i, s := range stages {
		known[i] = s.Name
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("no stage %q; there are %s", n, strings.Join(known, ", "))
		}
	}
	var picked []Stage
	for _, s := range stages {
		if slices.Contains(names, s.Name) {
			picked = append(picked, s)
		}
	}
	return picked, nil
}

// How much of an error Brief shows.
const (
	briefLines = 12
	briefLine  = 400 // bytes
)

// Brief is the beginning of what an error says, its lines after the first one indented: for the end of a run, where everything is named
// once more that went wrong, and where all that brokers printed would hide it.
func Brief(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if len(lines) > briefLines {
		lines = append(lines[:briefLines], "…")
	}
	for i, line := range lines {
		if len(line) > briefLine {
			lines[i] = strings.ToValidUTF8(line[:briefLine], "") + "…"
		}
	}
	return strings.Join(lines, "\n    ")
}

// RunStages runs one stage, or group of stages, after the other, the later ones also after a failure, and ends with a table, with what failed stages
// failed with, and with what passed only when it was run again: of a log that was cut short the end is what is left. The error says how many failed.
func (e *Env) RunStages(ctx context.Context, stages []Stage) error {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"stage", "result", "seconds"})
	var failed []string
	begin := time.Now()
	for rest := stages; len(rest) > 0 && ctx.Err() == nil; {
		group := together(rest)
		rest = rest[len(group):]
		errs, took := make([]error, len(group)), make([]time.Duration, len(group))
		var running sync.WaitGroup
		for i, s := range group {
			running.Go(func() {
				start := time.Now()
				errs[i] = e.runStage(ctx, s)
				took[i] = time.Since(start)
			})
		}
		running.Wait()
		for i, s := range group {
			result := "ok"
			if errs[i] != nil {
				failed = append(failed, s.Name+": "+Brief(errs[i]))
				result = "FAILED"
			}
			t.AppendRow(table.Row{s.Name, result, fmt.Sprintf("%.1f", took[i].Seconds())})
		}
	}
	t.AppendFooter(table.Row{"", fmt.Sprintf("%d failed", len(failed)), fmt.Sprintf("%.1f", time.Since(begin).Seconds())})
	e.Print("\n" + t.Render() + "\n")
	if len(failed) > 0 {
		e.Print("\nFailed:\n  " + strings.Join(failed, "\n  ") + "\n")
	}
	if unsteady := e.unsteadyOnes(); len(unsteady) > 0 {
		e.Print("\nFailed at first, and passed when run again (look into these):\n  " + strings.Join(unsteady, "\n  ") + "\n")
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d stages failed", len(failed), len(stages))
	}
	return nil
}

// together are the first stages that run at the same time: one, or a group.
func together(stages []Stage) []Stage {
	n := 1
	for n < len(stages) && stages[0].Beside != "" && stages[n].Beside == stages[0].Beside {
		n++
	}
	return stages[:n]
}

// runStage runs one stage, and again when it may.
func (e *Env) runStage(ctx context.Context, s Stage) error {
	e.Say("== %s: %s", s.Name, s.About)
	err := s.Run(ctx)
	if err != nil && s.Again && ctx.Err() == nil {
		e.Print(fmt.Sprintf("\n%s FAILED, and is run again: %v\n\n", s.Name, err))
		first := err
		if err = s.Run(ctx); err == nil {
			e.Unsteady("the stage "+s.Name, first)
		}
	}
	if err != nil {
		e.Print(fmt.Sprintf("\n%s FAILED: %v\n\n", s.Name, err))
	}
	return err
}
