package checks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// fuzzers is how many packages are fuzzed at a time, each with one worker: while one is linked or collects what it knows, the other
// one fuzzes.
const fuzzers = 2

// Fuzz runs every fuzz function of the repository for a while each. A crasher stays in the package's testdata, as go test
// leaves it.
func (c Checks) Fuzz(ctx context.Context, each time.Duration) error {
	packages, err := c.fuzzed(ctx)
	if err != nil {
		return err
	}
	total := 0
	for _, p := range packages {
		total += len(p.functions)
	}
	if total == 0 {
		return errors.New("no fuzz function found")
	}
	dir, cleanup, err := c.Env.TempDir("fuzz-")
	if err != nil {
		return err
	}
	defer cleanup()
	known, err := c.Env.Output(ctx, task.Command{Args: []string{"go", "env", "GOCACHE"}})
	if err != nil {
		return err
	}
	var begun atomic.Int64
	errs := make([]error, len(packages))
	var group errgroup.Group
	group.SetLimit(fuzzers)
	for i, p := range packages {
		group.Go(func() error {
			r := fuzzRun{c, p, filepath.Join(dir, fmt.Sprintf("%d.test", i)), filepath.Join(strings.TrimSpace(known), "fuzz", p.path), each}
			errs[i] = r.run(ctx, func(function string) {
				c.Env.Say("fuzzing %d of %d: %s in %s", begun.Add(1), total, function, p.path)
			})
			return nil
		})
	}
	_ = group.Wait() // what was wrong is in errs: one package doesn't end the others
	return errors.Join(errs...)
}

// fuzzPackage is a package with fuzz functions.
type fuzzPackage struct {
	path, dir string
	functions []string
}

// fuzzed are the packages with fuzz functions.
func (c Checks) fuzzed(ctx context.Context) ([]fuzzPackage, error) {
	const format = `{{.ImportPath}}{{"\t"}}{{.Dir}}{{range .TestGoFiles}}{{"\t"}}{{.}}{{end}}{{range .XTestGoFiles}}{{"\t"}}{{.}}{{end}}`
	list, err := c.Env.Output(ctx, task.Command{Args: []string{"go", "list", "-f", format, "./..."}})
	if err != nil {
		return nil, err
	}
	var packages []fuzzPackage
	for line := range strings.Lines(list) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 3 {
			continue
		}
		p := fuzzPackage{path: fields[0], dir: fields[1]}
		for _, name := range fields[2:] {
			text, err := os.ReadFile(filepath.Join(p.dir, name))
			if err != nil {
				return nil, err
			}
			p.functions = append(p.functions, fuzzFunctions(string(text))...)
		}
		if len(p.functions) > 0 {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// fuzzFunctions are the names of the fuzz functions in a file.
func fuzzFunctions(file string) (names []string) {
	for _, found := range fuzzFunction.FindAllStringSubmatch(file, -1) {
		names = append(names, found[1])
	}
	return names
}

// fuzzRun fuzzes the functions of one package.
type fuzzRun struct {
	c      Checks
	of     fuzzPackage
	binary string
	cache  string // what was found to be interesting in earlier runs, where go test keeps it
	each   time.Duration
}

func (r fuzzRun) run(ctx context.Context, begin func(function string)) error {
	// -fuzz has the fuzzer's instruments built in.
	err := r.c.Env.Run(ctx, task.Command{Args: []string{"go", "test", "-vet=off", "-c", "-ldflags=-s -w", "-fuzz", "^Fuzz", "-o", r.binary, r.of.path}})
	if err != nil {
		return err
	}
	var errs []error
	for _, function := range r.of.functions {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		begin(function)
		err := r.fuzz(ctx, function)
		if err != nil && endedLate(err) {
			err = r.fuzz(ctx, function)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// fuzzPatience is how long a fuzzer may take beyond its time, which it needs for what it knows already, and for ending.
const fuzzPatience = 3 * time.Minute

func (r fuzzRun) fuzz(ctx context.Context, function string) error {
	ctx, cancel := context.WithTimeout(ctx, r.each+fuzzPatience)
	defer cancel()
	return r.c.Env.Run(ctx, task.Command{Dir: r.of.dir, Args: []string{
		r.binary, "-test.run", "^$", "-test.fuzz", "^" + function + "$", "-test.fuzztime", r.each.String(), "-test.fuzzcachedir", r.cache, "-test.parallel", "1",
	}})
}

// endedLate tells the failure of a fuzzer that found nothing, or did not end: on a busy machine a fuzzer takes it for one when a worker is in
// the middle of something as the time ends.
func endedLate(err error) bool {
	text := err.Error()
	return strings.Contains(text, "context deadline exceeded") && !strings.Contains(text, "Failing input written")
}
