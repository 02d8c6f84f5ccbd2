package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// firstBackoff is the pause before the first try to start a plug-in again. It doubles with each that fails.
const firstBackoff = 100 * time.Millisecond

// steady is how long a plug-in must have worked for its next failure to count as the first.
const steady = time.Minute

// Status says how a plug-in is.
type Status struct {
	Name     string // what it calls itself; "" before it ever ran
	Version  string
	Command  string
	PID      int // 0 when it doesn't run
	Restarts int
	Fault    error // why it doesn't run; nil when it does
}

// host keeps one plug-in running. Its methods may be called from any goroutine.
type host struct {
	launcher
	// lenient says that a plug-in that can't be started at first is no reason to fail: something else answers.
	lenient bool
	// verify checks what the plug-in says of itself when it is configured.
	verify func(*pluginv1.ConfigureResponse) error
	// ready brings a plug-in that was started again to where it was. It may be nil.
	ready func(context.Context, *session) error

	tally tally

	mu       sync.Mutex
	session  *session // nil while it doesn't run
	fault    error    // why
	first    *pluginv1.ConfigureResponse
	info     *pluginv1.InfoResponse
	restarts int
	begun    bool
	stopped  bool
	cancel   context.CancelFunc
	done     chan struct{}
}

var errStopped = errors.New("it wasn't started, or was stopped")

func newHost(role string, options Options, log *slog.Logger) *host {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("command", options.Command)
	return &host{launcher: launcher{role: role, options: options, log: log}, fault: errStopped, verify: func(*pluginv1.ConfigureResponse) error { return nil }}
}

// wrap names the plug-in in an error.
func (h *host) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("plug-in %s: %w", h.options.Command, err)
}

// Start starts the plug-in and waits until it is ready, at most start_timeout. Without it, the start fails, unless the host
// is lenient.
func (h *host) Start(ctx context.Context) error {
	h.mu.Lock()
	if h.begun || h.stopped {
		h.mu.Unlock()
		return h.wrap(errors.New("started twice, or after the stop"))
	}
	h.begun = true
	running, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.done = make(chan struct{})
	h.mu.Unlock()
	// The start ends with ctx, and with Stop.
	starting, release := context.WithCancel(ctx)
	defer release()
	defer context.AfterFunc(running, release)()
	s, err := h.begin(starting)
	if err != nil && (!h.lenient || ctx.Err() != nil || running.Err() != nil) {
		cancel()
		close(h.done)
		return h.wrap(err)
	}
	if err != nil {
		h.log.Error("the plug-in doesn't start; what on_failure names answers, and it is tried again", "fallback", h.options.OnFailure, "error", err)
	}
	go h.run(running, s)
	return nil
}

// begin launches the plug-in and makes it the one that answers.
func (h *host) begin(ctx context.Context) (*session, error) {
	s, err := h.launch(ctx)
	if err == nil {
		if err = h.accept(ctx, s); err != nil {
			s.close(0)
			s = nil
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session, h.fault = s, err
	return s, err
}

// accept checks what was launched.
func (h *host) accept(ctx context.Context, s *session) error {
	if err := h.verify(s.configured); err != nil {
		return err
	}
	h.mu.Lock()
	first := h.first
	h.mu.Unlock()
	if first != nil && !proto.Equal(first, s.configured) {
		return errors.New("it isn't what it was at the start of the broker (keyed, codec or levels differ): the broker has to be started again for that")
	}
	if first != nil && h.ready != nil {
		limited, cancel := context.WithTimeout(ctx, h.options.StartTimeout)
		defer cancel()
		if err := h.ready(limited, s); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.first, h.info = s.configured, s.info
	h.mu.Unlock()
	h.log.Info("plug-in is ready", "name", s.info.GetName(), "version", s.info.GetVersion(), "pid", s.process.pid())
	return nil
}

// run watches the plug-in until ctx ends, and starts it again when it fails.
func (h *host) run(ctx context.Context, s *session) {
	defer close(h.done)
	backoff := firstBackoff
	for {
		if s != nil {
			began := time.Now()
			why := h.watch(ctx, s)
			h.mu.Lock()
			h.session, h.fault = nil, why
			h.mu.Unlock()
			if ctx.Err() != nil {
				s.close(grace)
				return
			}
			h.log.Error("the plug-in failed; it is started again", "error", why)
			s.close(0)
			if time.Since(began) > steady {
				backoff = firstBackoff
			}
		}
		pause := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		backoff = min(2*backoff, h.options.MaxBackoff)
		var err error
		if s, err = h.begin(ctx); err != nil {
			s = nil
			if ctx.Err() == nil {
				h.log.Error("the plug-in doesn't start; it is tried again", "error", err, "in", backoff)
			}
			continue
		}
		h.mu.Lock()
		h.restarts++
		h.mu.Unlock()
	}
}

// watch waits until this life of the plug-in is over, and says why.
func (h *host) watch(ctx context.Context, s *session) error {
	client := pluginv1.NewPluginClient(s.conn)
	ping := time.NewTicker(h.options.PingInterval)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return errStopped
		case why := <-s.fault:
			return why
		case <-s.process.exited:
			if last := s.output.lastWords(); last != "" {
				return fmt.Errorf("it ended: %s, and its last words were %q", s.process.ending(), last)
			}
			return fmt.Errorf("it ended: %s", s.process.ending())
		case <-ping.C:
			if err := h.ping(ctx, client); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// ping asks the plug-in whether it works.
func (h *host) ping(ctx context.Context, client pluginv1.PluginClient) error {
	limited, cancel := context.WithTimeout(ctx, h.options.CallTimeout)
	defer cancel()
	_, err := client.Ping(limited, &pluginv1.PingRequest{}, grpc.MaxCallRecvMsgSize(largestInfo))
	switch {
	case err == nil:
		return nil
	case limited.Err() != nil:
		return fmt.Errorf("it didn't answer a ping within %s", h.options.CallTimeout)
	}
	return fmt.Errorf("ping: %w", transport(err))
}

// use gives the plug-in's running life. The error wraps errDown.
func (h *host) use() (*session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == nil {
		return nil, fmt.Errorf("%w: it doesn't run: %v", errDown, h.fault)
	}
	return h.session, nil
}

// stoppedNow says whether the host isn't to answer: before Start and after Stop.
func (h *host) stoppedNow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.begun || h.stopped
}

// Stop ends the plug-in and waits for that. When ctx ends first, it is killed at once.
func (h *host) Stop(ctx context.Context) error {
	h.mu.Lock()
	begun := h.begun
	h.stopped = true
	s := h.session
	h.mu.Unlock()
	if !begun {
		return nil
	}
	h.cancel()
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		if s != nil {
			_ = s.process.Kill(context.WithoutCancel(ctx))
		}
		return h.wrap(ctx.Err())
	}
}

// Describe gives what people want to know of the plug-in: its own name and version, and its process.
func (h *host) Describe() (name, version string, pid int) {
	s := h.Status()
	return s.Name, s.Version, s.PID
}

// Status says how the plug-in is.
func (h *host) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Status{Name: h.info.GetName(), Version: h.info.GetVersion(), Command: h.options.Command, Restarts: h.restarts, Fault: h.fault}
	if h.session != nil {
		s.PID, s.Fault = h.session.process.pid(), nil
	}
	return s
}
