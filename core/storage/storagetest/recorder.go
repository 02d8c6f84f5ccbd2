package storagetest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
)

// Failures runs the clauses whose names begin with prefix against h and gives, by the clause's name, what the failing ones
// had to say. It is for tests of the suite itself: an implementation that breaks a clause on purpose must show up here. A
// panic is a failure, too. dir is where the files go.
func Failures(h Harness, dir, prefix string) map[string]string {
	failures := map[string]string{}
	for _, c := range Clauses() {
		if !strings.HasPrefix(c.Name, prefix) {
			continue
		}
		r := &recorder{name: c.Name, dir: dir}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer r.finish()
			c.Check(r, h)
		}()
		<-done
		if r.Failed() {
			failures[c.Name] = r.log.String()
		}
	}
	return failures
}

// recorder is a T that only takes note.
type recorder struct {
	name string
	dir  string

	mu       sync.Mutex
	failed   bool
	log      strings.Builder
	cleanups []func()
}

// finish ends a check as the testing package would: it catches the panic, and cleans up.
func (r *recorder) finish() {
	if p := recover(); p != nil {
		r.Errorf("panic: %v", p)
	}
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		f := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		done := make(chan struct{})
		go func() { // a clean-up may call FailNow, which ends its goroutine
			defer close(done)
			f()
		}()
		<-done
	}
}

func (r *recorder) Helper()          {}
func (r *recorder) Name() string     { return r.name }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) TempDir() string {
	dir, err := os.MkdirTemp(r.dir, "check")
	if err != nil {
		r.Fatal(err)
	}
	return dir
}

func (r *recorder) Logf(format string, args ...any) { r.Log(fmt.Sprintf(format, args...)) }

func (r *recorder) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(&r.log, args...)
}

func (r *recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *recorder) Error(args ...any)                 { r.Log(args...); r.Fail() }
func (r *recorder) Fatalf(format string, args ...any) { r.Logf(format, args...); r.FailNow() }
func (r *recorder) Fatal(args ...any)                 { r.Log(args...); r.FailNow() }

// The suite never skips; a check that does has not been made.
func (r *recorder) Skipf(format string, args ...any) { r.Fatalf(format, args...) }
func (r *recorder) Skip(args ...any)                 { r.Fatal(args...) }
func (r *recorder) SkipNow()                         { r.FailNow() }

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() { r.Fail(); runtime.Goexit() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
