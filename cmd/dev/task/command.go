package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tailBytes is how much of a failing command's output its error shows.
const tailBytes = 6 << 10

// Command is a program to run.
type Command struct {
	Dir    string    // "" is the repository
	Env    []string  // NAME=value, beside this process's own environment
	Args   []string  // the program and its arguments
	Stdin  io.Reader // nil is an empty input
	Stdout io.Writer // nil keeps the end of it, for the error
	Stderr io.Writer // nil keeps the end of it, for the error
}

// Run runs c to its end. An error shows the end of what the program printed and
// nobody took. When ctx ends, the program and all that it
// started are killed.
func (e *Env) Run(ctx context.Context, c Command) error {
	tail := &Tail{Max: tailBytes}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Stdin = c.Dir, c.Stdin
	if cmd.Dir == "" {
		cmd.Dir = e.Root
	}
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = io.Writer(tail), io.Writer(tail)
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	OwnGroup(cmd)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, tail)
	}
	return nil
}

// Output runs c and returns its standard output.
func (e *Env) Output(ctx context.Context, c Command) (string, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := e.Run(ctx, c)
	return out.String(), err
}

// OwnGroup makes cmd the head of a process group, so that a signal to it reaches what it starts, and has the whole
// group killed when the command's context ends.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return SignalGroup(cmd, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
}

// SignalGroup sends sig to a started command and all that it started.
func SignalGroup(cmd *exec.Cmd, sig syscall.Signal) error {
	if err := syscall.Kill(-cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
