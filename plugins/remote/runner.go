package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// process is one life of an executable. It implements go-plugin's runner, because that one leaves standard input to the
// terminal, lets grandchildren live, and can wait for ever on a pipe that one of them holds.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File // open for as long as we live: its end tells the plug-in that we are gone
	stdout *os.File
	stderr *os.File
	theirs []*os.File // the child's ends

	mu      sync.Mutex // held while the process is being started
	started bool
	ended   bool // it was killed, maybe before it was started

	exited  chan struct{} // closed when the process has ended, and waitErr is set
	waitErr error
	killed  sync.Once
	opened  sync.Once
}

var _ runner.Runner = (*process)(nil)

// newProcess prepares a process; nothing runs yet. close gives back what it holds if it is never started.
func newProcess(path string, args, env []string) (*process, error) {
	p := &process{exited: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Env = env
	p.cmd.SysProcAttr = attributes()
	pipe := func(ours **os.File, theirs any, toChild bool) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		if toChild {
			*ours, p.cmd.Stdin = w, r
			p.theirs = append(p.theirs, r)
			return nil
		}
		*ours = r
		*(theirs.(*io.Writer)) = w
		p.theirs = append(p.theirs, w)
		return nil
	}
	err := errors.Join(pipe(&p.stdin, nil, true), pipe(&p.stdout, &p.cmd.Stdout, false), pipe(&p.stderr, &p.cmd.Stderr, false))
	if err != nil {
		p.close()
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	return p, nil
}

// Start implements runner.Runner. The process is started, and waited for, by one thread that does nothing else: Linux
// would kill the child as soon as the thread that started it ended.
//
// A process that was killed already isn't started any more.
func (p *process) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		p.close()
		return errors.New("it was to end before it was started")
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		for _, f := range p.theirs {
			_ = f.Close()
		}
		started <- err
		if err == nil {
			p.waitErr = p.cmd.Wait()
		}
		close(p.exited)
	}()
	if err := <-started; err != nil {
		p.close()
		return err
	}
	p.started = true
	return nil
}

// close closes our ends of the pipes.
func (p *process) close() {
	p.opened.Do(func() {
		for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
			if f != nil {
				_ = f.Close()
			}
		}
		if !p.started {
			for _, f := range p.theirs {
				_ = f.Close()
			}
		}
	})
}

// lingering is how long the rest of a dead process' output is read, when something that it started holds the pipes.
const lingering = 200 * time.Millisecond

// Kill implements runner.AttachedRunner: the process and all that it started in its group end at once.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	p.ended = true
	started := p.started
	p.mu.Unlock()
	if !started {
		return nil
	}
	p.killed.Do(func() { killGroup(p.cmd.Process) })
	<-p.exited
	timer := time.AfterFunc(lingering, p.close)
	_ = timer // fires once, and ends by itself
	return nil
}

// end tells the process to end and gives it some time before it is killed.
func (p *process) end(grace time.Duration) {
	_ = p.stdin.Close()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
	_ = p.Kill(context.Background()) // what the process started may still be there
}

// Wait implements runner.AttachedRunner.
func (p *process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return p.waitErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ending says how the process ended, once it has.
func (p *process) ending() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return "running"
	}
}

// pid is the process' id.
func (p *process) pid() int { return p.cmd.Process.Pid }

// ID implements runner.AttachedRunner.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return ""
	}
	return strconv.Itoa(p.pid())
}

// Name implements runner.Runner.
func (p *process) Name() string { return p.cmd.Path }

// Diagnose implements runner.Runner.
func (*process) Diagnose(context.Context) string { return "" }

// Stdout implements runner.Runner.
func (p *process) Stdout() io.ReadCloser { return &firstLine{File: p.stdout} }

// Stderr implements runner.Runner.
func (p *process) Stderr() io.ReadCloser { return p.stderr }

// PluginToHost implements runner.AddrTranslator: there is but one machine.
func (*process) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" && network != "tcp" {
		return "", "", fmt.Errorf("it listens on %q: want unix or tcp", network)
	}
	return network, address, nil
}

// HostToPlugin implements runner.AddrTranslator.
func (*process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// longestLine is the longest handshake line, in bytes: a certificate has about 600 in base64.
const longestLine = 16 << 10

// firstLine reads one line and swallows the rest, so that a plug-in that prints is never held up.
type firstLine struct {
	*os.File
	read int
	done bool
}

func (f *firstLine) Read(b []byte) (int, error) {
	if f.done {
		_, err := io.Copy(io.Discard, f.File)
		return 0, errors.Join(err, io.EOF)
	}
	n, err := f.File.Read(b)
	f.read += n
	if i := bytes.IndexByte(b[:n], '\n'); i >= 0 {
		f.done = true
		return i + 1, nil
	}
	if f.read > longestLine {
		return 0, fmt.Errorf("no line end in %d bytes of output", f.read)
	}
	return n, err
}
