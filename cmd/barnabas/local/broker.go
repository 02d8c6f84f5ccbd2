package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Broker is one broker's process. Its methods may be called from any goroutine.
type Broker struct {
	ID     int
	Addr   string // HOST:PORT
	Config string // its configuration file
	Log    string // the file with what it prints

	command      []string
	data         string // its log directory
	coordination string // HOST:PORT of its own end of it; "" with ZooKeeper

	mu   sync.Mutex
	cmd  *exec.Cmd     // nil before the first start
	done chan struct{} // closed when the process has ended, after err was set
	err  error
}

// Start starts the process. One that runs is left alone.
func (b *Broker) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd != nil {
		select {
		case <-b.done:
		default:
			return nil
		}
	}
	out, err := os.OpenFile(b.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close() // the process has its own
	cmd := exec.Command(b.command[0], b.command[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C at the terminal isn't for it
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start broker %d: %w", b.ID, err)
	}
	done := make(chan struct{})
	b.cmd, b.done, b.err = cmd, done, nil
	go func() { // ends with the process
		err := cmd.Wait()
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
		close(done)
	}()
	return nil
}

// Pid is the process, 0 before the first start. It may have ended.
func (b *Broker) Pid() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd == nil {
		return 0
	}
	return b.cmd.Process.Pid
}

// Ended says whether the process has ended, and how.
func (b *Broker) Ended() (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd == nil {
		return false, nil
	}
	select {
	case <-b.done:
		if b.err == nil {
			return true, errors.New("exit status 0")
		}
		return true, b.err
	default:
		return false, nil
	}
}

// Stop ends the process with SIGTERM, and with SIGKILL when it hasn't ended before ctx. One that doesn't run is left alone.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	cmd, done := b.cmd, b.done
	b.mu.Unlock()
	if cmd == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	default:
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop broker %d: %w", b.ID, err)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		_ = cmd.Process.Kill() // it may just have ended
		<-done
		return fmt.Errorf("broker %d did not stop, and was killed: %w", b.ID, ctx.Err())
	}
}

// tailBytes is how much of a broker's log an error shows.
const tailBytes = 4 << 10

// Tail is the end of the broker's log.
func (b *Broker) Tail() string {
	text, err := os.ReadFile(b.Log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-tailBytes):])
}
