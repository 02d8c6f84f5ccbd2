// Package task runs the project's own tasks: commands with their output kept, and stages with a table at the end.
//
// It knows neither what is tested nor with what; the packages beside it do.
package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Env is where tasks run and where they tell what they do.
type Env struct {
	Root  string // the repository
	Cache string // Root/.cache: what may be deleted at any time and is then fetched or made again

	mu       sync.Mutex
	out      io.Writer
	start    time.Time
	unsteady []string
}

// NewEnv finds the repository that the working directory lies in. What is told goes to out.
func NewEnv(out io.Writer) (*Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, errors.New("no go.mod in this folder or above it: run this inside the repository")
		}
		dir = parent
	}
	e := &Env{Root: dir, Cache: filepath.Join(dir, ".cache"), out: out, start: time.Now()}
	return e, os.MkdirAll(e.Cache, 0o755)
}

// Path joins names to the repository's folder.
func (e *Env) Path(names ...string) string {
	return filepath.Join(append([]string{e.Root}, names...)...)
}

// Say tells one line of progress, with the seconds since the start in front. Any goroutine may call it.
func (e *Env) Say(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fmt.Fprintf(e.out, "%6.1fs  %s\n", time.Since(e.start).Seconds(), fmt.Sprintf(format, args...))
}

// Print writes text as it is. Any goroutine may call it.
func (e *Env) Print(text string) {
	_, _ = e.Write([]byte(text))
}

// Write writes raw output, in turn with Say. Any goroutine may call it.
func (e *Env) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out.Write(p)
}

// Unsteady notes what passed only when it was run again, and what it failed with at first; nil when that was printed already.
// RunStages tells it in the end. Any goroutine may call it.
func (e *Env) Unsteady(what string, first error) {
	if first != nil {
		what += ": " + Brief(first)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unsteady = append(e.unsteady, what)
}

func (e *Env) unsteadyOnes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unsteady
}

// TempDir makes a folder under the cache and returns it with what removes it again.
func (e *Env) TempDir(pattern string) (string, func(), error) {
	base := filepath.Join(e.Cache, "tmp")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(base, pattern)
	if err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
