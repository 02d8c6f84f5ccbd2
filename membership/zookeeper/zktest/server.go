package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTimeout is how long a server may take to answer; a busy machine with several JVMs is slow.
const startTimeout = 90 * time.Second

// Server is one ZooKeeper server. Its methods may be called from any goroutine; what they do is up to the caller to order.
type Server struct {
	ID   int    // from 1
	Addr string // host:port for clients

	dir     string
	command []string

	mu   sync.Mutex // guards what follows
	cmd  *exec.Cmd  // nil while it doesn't run
	done chan struct{}
	err  error // of the process that ended last
}

// Start starts the server on the data that it has, and returns when it serves. One that runs is left alone.
func (s *Server) Start(ctx context.Context) error {
	done, err := s.launch()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for s.Mode() == "" {
		select {
		case <-done:
			s.mu.Lock()
			err := s.err
			s.mu.Unlock()
			return fmt.Errorf("zktest: server %d ended: %w\n%s", s.ID, err, s.Output())
		case <-ctx.Done():
			return fmt.Errorf("zktest: server %d does not answer at %s: %w\n%s", s.ID, s.Addr, ctx.Err(), s.Output())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// launch starts the process, if there is none.
func (s *Server) launch() (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return s.done, nil
	}
	out, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.SysProcAttr = processAttributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("zktest: start server %d: %w", s.ID, err)
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() { // ends with the process, which Stop and Kill see to
		err := cmd.Wait()
		s.mu.Lock()
		s.cmd, s.err = nil, err
		s.mu.Unlock()
		close(done)
	}()
	return done, nil
}

// Stop ends the server as an operator does (SIGTERM) and waits for it. It may be called when it doesn't run.
func (s *Server) Stop() error { return s.end(syscall.SIGTERM) }

// Kill ends the server at once (SIGKILL), paused or not, and waits for it.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Pause stops the server's process without ending it (SIGSTOP): its connections stay open and nothing is answered.
func (s *Server) Pause() error { _, err := s.signal(pauseSignal); return err }

// Resume lets a paused server go on.
func (s *Server) Resume() error { _, err := s.signal(resumeSignal); return err }

func (s *Server) end(sig syscall.Signal) error {
	done, err := s.signal(sig)
	if done == nil || err != nil {
		return err
	}
	if _, err := s.signal(resumeSignal); err != nil { // a paused process takes no SIGTERM
		return err
	}
	select {
	case <-done:
		return nil
	case <-time.After(20 * time.Second):
		_, err := s.signal(syscall.SIGKILL)
		<-done
		return errors.Join(fmt.Errorf("zktest: server %d did not stop and was killed", s.ID), err)
	}
}

// signal sends a signal to the process, and returns what is closed when the process has ended; nil when there is none.
func (s *Server) signal(sig syscall.Signal) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil, nil
	}
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, fmt.Errorf("zktest: %v to server %d: %w", sig, s.ID, err)
	}
	return s.done, nil
}

// Running says whether there is a process, paused or not.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil
}

// Pid is the process's id, 0 when there is none.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Mode is what the server is at the moment: "standalone", "leader" or "follower"; empty when it doesn't serve.
func (s *Server) Mode() string {
	answer, err := s.Ask("srvr")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(answer) {
		if mode, ok := strings.CutPrefix(strings.TrimSpace(line), "Mode: "); ok {
			return mode
		}
	}
	return ""
}

// Ask sends one of ZooKeeper's four-letter words and returns the answer: "srvr", "stat", "cons", "dump", "ruok".
func (s *Server) Ask(word string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	return string(answer), err
}

// Output is the end of what the server has printed.
func (s *Server) Output() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8<<10):])
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "zookeeper.log") }
