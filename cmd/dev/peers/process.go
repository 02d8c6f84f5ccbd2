package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// How long a broker may take to answer, and to stop when asked to.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
)

// Peer is a broker that runs as a process of its own.
type Peer struct {
	Addr string // host:port of its client listener
	Data string // the folder with its topic-partition folders

	cmd  *exec.Cmd
	tail *task.Tail
	done chan struct{} // closed when the process has ended, after err was set
	err  error
}

// Start starts a broker's command and returns once it answers at addr. When it does not in time, or ends before, the
// error shows the end of what it printed.
func Start(ctx context.Context, cmd *exec.Cmd, addr, data string) (*Peer, error) {
	p := &Peer{Addr: addr, Data: data, cmd: cmd, tail: &task.Tail{Max: 8 << 10}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.tail, p.tail
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C at the terminal is ours to pass on
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process, which Stop and Kill see to
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := p.ready(ctx); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w\n%s", cmd.Path, err, p.tail)
	}
	return p, nil
}

// ready waits for an answer to ApiVersions and Metadata.
func (p *Peer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Addr), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		try, stop := context.WithTimeout(ctx, 2*time.Second)
		err := client.Ping(try)
		stop()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("no answer at %s: %w", p.Addr, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Pid is the process's id.
func (p *Peer) Pid() int { return p.cmd.Process.Pid }

// Output is the end of what the broker printed.
func (p *Peer) Output() string { return p.tail.String() }

// Stop asks the broker to stop and waits for it. That it takes too long, or ends with anything but success or the signal,
// is an error; it is gone in any case.
func (p *Peer) Stop() error {
	select {
	case <-p.done:
		return fmt.Errorf("the broker had ended by itself: %w\n%s", p.err, p.tail)
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("the broker did not stop within %s and was killed\n%s", stopTimeout, p.tail)
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		const javaSIGTERM = 128 + int(syscall.SIGTERM) // how a JVM ends after a clean stop by signal
		if exit.ExitCode() == javaSIGTERM {
			return nil
		}
	}
	if p.err != nil {
		return fmt.Errorf("the broker stopped badly: %w\n%s", p.err, p.tail)
	}
	return nil
}

// Wait waits until the process has ended by itself, and says how: nil for success, an *exec.ExitError, or why ctx ended.
func (p *Peer) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the broker to end: %w", ctx.Err())
	}
}

// Kill ends the process at once (SIGKILL) and waits for it. It may be called more than once.
func (p *Peer) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// FreePort is a TCP port of 127.0.0.1 that nobody listens on at the moment. It lies below the ports that systems give to
// outgoing connections, so that a broker that is started again finds it free again.
func FreePort() (int, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// FreePorts are n different ones.
func FreePorts(n int) (ports []int, err error) {
	const lowest, beyond, tries = 10_000, 32_768, 100
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close() // nothing was done with it
		}
	}()
	var last error
	for range tries * n {
		if len(ports) == n {
			return ports, nil
		}
		port := lowest + rand.IntN(beyond-lowest)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		held, ports = append(held, l), append(ports, port)
	}
	return nil, fmt.Errorf("no free port: %w", last)
}
