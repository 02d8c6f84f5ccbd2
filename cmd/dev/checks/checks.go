// Package checks are the checks of the project's own Go code: format, vet, lint, builds for other systems, tests, the race
// detector and the fuzzers. Each is one function that returns an error with what it found.
package checks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// linter is the version that .golangci.yml is written for.
const linter = "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0"

// Checks runs checks in one repository.
type Checks struct {
	Env   *task.Env
	Tools *tools.Tools
}

// run runs a command and shows its output as it comes.
func (c Checks) run(ctx context.Context, args ...string) error {
	return c.Env.Run(ctx, task.Command{Args: args, Stdout: c.Env, Stderr: c.Env})
}

// Format says which Go files of the repository gofmt would change.
func (c Checks) Format(ctx context.Context) error {
	files, err := c.goFiles(ctx)
	if err != nil {
		return err
	}
	bad, err := c.Env.Output(ctx, task.Command{Args: append([]string{"gofmt", "-l"}, files...)})
	if err != nil {
		return err
	}
	if bad != "" {
		return fmt.Errorf("gofmt would change:\n%s", bad)
	}
	return nil
}

// goFiles are the Go files that git knows or would take.
func (c Checks) goFiles(ctx context.Context) ([]string, error) {
	out, err := c.Env.Output(ctx, task.Command{Args: []string{"git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.go"}})
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// Vet runs go vet over everything.
func (c Checks) Vet(ctx context.Context) error {
	return c.run(ctx, "go", "vet", "./...")
}

// Cross builds everything for the other systems and processors that are promised. Nobody runs it, so it is neither optimized nor made fit for a
// debugger, which would be a quarter of the work.
func (c Checks) Cross(ctx context.Context) error {
	var errs []error
	for _, p := range []struct{ os, arch string }{{"darwin", "arm64"}, {"linux", "arm64"}, {"linux", "amd64"}} {
		if p.os == runtime.GOOS && p.arch == runtime.GOARCH {
			continue
		}
		c.Env.Say("building for %s/%s", p.os, p.arch)
		errs = append(errs, c.Env.Run(ctx, task.Command{
			Env:  []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0"},
			Args: []string{"go", "build", "-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w", "./..."}, Stdout: c.Env, Stderr: c.Env,
		}))
	}
	return errors.Join(errs...)
}

// Linter installs golangci-lint and returns it. Most of a minute goes into fetching its modules, in which another check can use the processors.
func (c Checks) Linter(ctx context.Context) (string, error) { return c.Tools.GoTool(ctx, linter) }

// Lint runs golangci-lint as .golangci.yml says.
func (c Checks) Lint(ctx context.Context) error {
	bin, err := c.Linter(ctx)
	if err != nil {
		return err
	}
	return c.run(ctx, bin, "run", "--timeout", "10m")
}

// Test runs all Go tests. What go test itself vets is left to Vet.
func (c Checks) Test(ctx context.Context) error {
	return c.goTest(ctx, []string{"-timeout", "15m"}, []string{"./..."})
}

// ofProcesses are tests of cmd/barnabas that watch the program from outside, built as it is built for others: the race detector
// would see the tests alone.
func ofProcesses() []string {
	return []string{"TestCommitsOutliveTheProcess", "TestDevCluster", "TestDevClusterWithoutZooKeeper", "TestExactlyOnce", "TestProcess", "TestTopicsOutliveTheProcess"}
}

// Race runs the tests of the packages where goroutines meet, under the race detector. Those that only compute are left to
// Test, and so are those of processes.
func (c Checks) Race(ctx context.Context) error {
	packages, err := c.concurrent(ctx)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("no package to run: none imports sync, sync/atomic or context")
	}
	skip := "^(" + strings.Join(ofProcesses(), "|") + ")$"
	return c.goTest(ctx, []string{"-race", "-short", "-skip", skip, "-timeout", "20m"}, packages)
}

// concurrent are the packages with tests in which goroutines meet or wait: they import sync, sync/atomic or context,
// themselves or in their tests. The project's tasks are left out: their goroutines wait for processes.
func (c Checks) concurrent(ctx context.Context) ([]string, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	out, err := c.Env.Output(ctx, task.Command{Args: []string{"go", "list", "-f", format, "./..."}})
	if err != nil {
		return nil, err
	}
	return pickConcurrent(out), nil
}

// pickConcurrent takes lines of a package followed by its imports.
func pickConcurrent(list string) []string {
	var picked []string
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.Contains(words[0], "/cmd/dev") || strings.Contains(words[0], "/acceptance") {
			continue // acceptance tests run brokers as processes of an ordinary build: the detector would see the tests alone
		}
		if strings.HasSuffix(words[0], "/membership/zookeeper") || strings.HasSuffix(words[0], "/offsetstores/zookeeper") {
			continue // their client library reads a number without a lock while it connects again, which these tests make it do a lot
		}
		for _, imported := range words[1:] {
			if imported == "sync" || imported == "sync/atomic" || imported == "context" {
				picked = append(picked, words[0])
				break
			}
		}
	}
	return picked
}
