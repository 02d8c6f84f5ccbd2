package checks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// secondChances is how many failed tests may be run again: more are no accident.
const secondChances = 3

// goTest runs go test. Tests that failed are run once more, alone: the tests wait for real processes on whatever machine this
// is, and a run of everything should not be lost to one of them. Which those were is told at the end of the whole run. A data
// race, a panic, a leaked goroutine, a package that doesn't build and more than a few failures get no second chance; what a
// property test found is played again from its file, and fails again.
func (c Checks) goTest(ctx context.Context, args, packages []string) error {
	failed := &failures{out: c.Env}
	err := c.Env.Run(ctx, task.Command{Args: slices.Concat([]string{"go", "test", "-vet=off"}, args, packages), Stdout: failed, Stderr: failed})
	if err == nil || ctx.Err() != nil {
		return err
	}
	tests, why := failed.again()
	if why != nil {
		return errors.Join(why, err)
	}
	for _, t := range tests {
		c.Env.Say("again: %s", t)
		again := []string{"go", "test", "-vet=off", "-count=1", "-run", "^(" + strings.Join(t.names, "|") + ")$"}
		if second := c.run(ctx, slices.Concat(again, withoutRun(args), []string{t.pkg})...); second != nil {
			return errors.Join(fmt.Errorf("%s: failed, and failed again alone", t), err, second)
		}
		c.Env.Unsteady(t.String(), nil)
	}
	return nil
}

// withoutRun takes -skip and its value away: -run names the tests already.
func withoutRun(args []string) []string {
	if i := slices.Index(args, "-skip"); i >= 0 {
		return slices.Delete(slices.Clone(args), i, i+2)
	}
	return args
}

// failedTests are the top-level tests of a package that failed.
type failedTests struct {
	pkg   string
	names []string
}

func (t failedTests) String() string { return t.pkg + ": " + strings.Join(t.names, ", ") }

// failures passes go test's output on, and notes what failed. It is written to by one goroutine: both outputs are the same
// writer, which os/exec then copies to one pipe.
type failures struct {
	out io.Writer

	line     []byte
	names    []string // failed, of the package whose output comes
	tests    []failedTests
	hopeless []string // what no second run would excuse
}

// Write takes output in pieces of any size.
func (f *failures) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			f.line = append(f.line, rest...)
			break
		}
		f.take(string(append(f.line, rest[:i]...)))
		f.line, rest = f.line[:0], rest[i+1:]
	}
	return f.out.Write(p)
}

func (f *failures) take(line string) {
	for _, bad := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: ", "goleak: "} {
		if strings.HasPrefix(line, bad) {
			f.hopeless = append(f.hopeless, line)
		}
	}
	if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
		name, _, _ = strings.Cut(name, " ")
		f.names = append(f.names, name)
		return
	}
	if rest, ok := strings.CutPrefix(line, "FAIL\t"); ok {
		pkg, _, _ := strings.Cut(rest, "\t")
		if len(f.names) == 0 {
			f.hopeless = append(f.hopeless, line)
		}
		f.tests = append(f.tests, failedTests{pkg, f.names})
		f.names = nil
	}
}

// again is what may be run again, or why nothing may.
func (f *failures) again() ([]failedTests, error) {
	if len(f.hopeless) > 0 {
		return nil, fmt.Errorf("not run again, because of: %s", strings.Join(f.hopeless, "; "))
	}
	n := 0
	for _, t := range f.tests {
		n += len(t.names)
	}
	if n == 0 || n > secondChances {
		return nil, fmt.Errorf("not run again: %d tests failed: %v", n, f.tests)
	}
	return f.tests, nil
}
