package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// roleTimeout bounds a whole role; each check within has a shorter limit of its own.
const roleTimeout = 5 * time.Minute

// maxLine bounds a line of a program's output.
const maxLine = 1 << 20

// installed is a client that is ready to run.
type installed struct {
	Client
	command
}

// play runs the program in the role of args and returns its results, together with a failed one for every expected
// check that it did not report.
func (c installed) play(ctx context.Context, e *task.Env, args probe.Args, expected []string) []probe.Result {
	ctx, cancel := context.WithTimeout(ctx, roleTimeout)
	defer cancel()
	args.Client = c.Name
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() { // ends with the program
		err := e.Run(ctx, task.Command{Args: append(slices.Clone(c.args), args.Flags()...), Env: c.env, Stdout: write})
		_ = write.Close()
		done <- err
	}()
	var results []probe.Result
	version := ""
	scan(read, func(line []byte) {
		var r probe.Result
		if err := json.Unmarshal(line, &r); err != nil || r.Check == "" {
			r = probe.Result{Check: "output", Detail: fmt.Sprintf("not a result: %.200q", line)}
		}
		r.Client, version = c.Name, r.Version
		results = append(results, r)
	})
	err := <-done
	for _, check := range expected {
		if !slices.ContainsFunc(results, func(r probe.Result) bool { return r.Check == check }) {
			results = append(results, probe.Result{Client: c.Name, Version: version, Check: check, Detail: "not reported"})
		}
	}
	if err != nil {
		results = append(results, probe.Result{Client: c.Name, Version: version, Check: "program (" + args.Role + ")", Detail: err.Error()})
	}
	return results
}

// scan hands over the lines of r, to its end.
func scan(r io.Reader, line func([]byte)) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		if len(s.Bytes()) > 0 {
			line(s.Bytes())
		}
	}
	_, _ = io.Copy(io.Discard, r) // after a line that was too long: the program must not block
}

// member is a running program in the role of a group member.
type member struct {
	name   string
	events chan probe.Event // closed when the program has ended
	cmd    *exec.Cmd
	stdin  io.Closer
	tail   *task.Tail
	done   chan struct{} // closed when the program has ended, after err was set
	err    error
}

// join starts the program as a member.
func (c installed) join(name string, args probe.Args) (*member, error) {
	args.Role, args.Client = probe.RoleMember, c.Name
	argv := append(slices.Clone(c.args), args.Flags()...)
	m := &member{name: name, events: make(chan probe.Event, 1024), tail: &task.Tail{Max: 4 << 10}, done: make(chan struct{})}
	m.cmd = exec.Command(argv[0], argv[1:]...)
	m.cmd.Env = append(os.Environ(), c.env...)
	m.cmd.Stderr = m.tail
	task.OwnGroup(m.cmd)
	m.cmd.Cancel = nil // there is no context: leave or kill ends it
	stdin, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	m.stdin = stdin
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the program
		scan(stdout, func(line []byte) {
			var e probe.Event
			if err := json.Unmarshal(line, &e); err != nil || e.Event == "" {
				fmt.Fprintf(m.tail, "not an event: %.200q\n", line)
				return
			}
			m.events <- e
		})
		m.err = m.cmd.Wait()
		close(m.done)
		close(m.events)
	}()
	return m, nil
}

// leave ends the member's input, upon which it leaves the group and ends.
func (m *member) leave(ctx context.Context) error {
	_ = m.stdin.Close()
	for {
		select {
		case _, ok := <-m.events: // what it still tells doesn't matter, but must be taken
			if ok {
				continue
			}
			if m.err != nil {
				return fmt.Errorf("%s ended badly: %w\n%s", m.name, m.err, m.tail)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s does not leave: %w\n%s", m.name, ctx.Err(), m.tail)
		}
	}
}

// kill ends the program and all that it started with SIGKILL. It may be called more than once.
func (m *member) kill() {
	select {
	case <-m.done:
		return
	default:
	}
	_ = task.SignalGroup(m.cmd, syscall.SIGKILL)
	for range m.events { // to the end
	}
}
