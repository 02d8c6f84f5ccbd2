package adminhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// The bounds that nobody needs to change. A request here is a line and a few words of JSON.
const (
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 64 << 10
	headerTimeout  = 5 * time.Second
)

// Server serves routes. It is a plugin.Component; what was started once isn't started again.
type Server struct {
	options Options
	log     *slog.Logger
	handler http.Handler

	mu       sync.Mutex // guards what follows
	listener net.Listener
	server   *http.Server
	served   chan struct{} // closed when server has ended
	cancel   context.CancelFunc
}

// New makes a server of routes, which opens nothing until Start.
func New(o Options, log *slog.Logger, routes ...Route) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	router, err := newRouter(routes)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, log: log}
	// Scripts of pages that somebody on this machine looks at must not change anything here.
	s.handler = s.guard(sameOrigin(http.MaxBytesHandler(router.mux, maxBodyBytes)))
	return s, nil
}

func sameOrigin(next http.Handler) http.Handler {
	check := http.NewCrossOriginProtection()
	check.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Fail(w, http.StatusForbidden, "a page of another origin may not ask for this")
	}))
	return check.Handler(next)
}

// guard makes a handler that panics an error like any other: what is looked at must not end what is at work.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if fault == http.ErrAbortHandler { //nolint:errorlint // the server's own, never wrapped
				panic(fault)
			}
			s.log.Error("an HTTP request failed", "path", r.URL.Path, "panic", fault, "stack", string(debug.Stack()))
			Fail(w, http.StatusInternalServerError, "the request failed; the broker's log says why")
		}()
		next.ServeHTTP(w, r)
	})
}

// Start listens and begins to serve.
func (s *Server) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.options.Listen)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: min(headerTimeout, s.options.Timeout),
		ReadTimeout:       s.options.Timeout,
		WriteTimeout:      s.options.Timeout,
		IdleTimeout:       s.options.Timeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	served := make(chan struct{})
	s.mu.Lock()
	s.listener, s.server, s.served, s.cancel = listener, server, served, cancel
	s.mu.Unlock()
	go func() { // ends with Stop
		defer close(served)
		if err := server.Serve(newBounded(listener, s.options.MaxConnections)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the admin server no longer serves", "error", err)
		}
	}()
	s.log.Info("admin server listens", "address", listener.Addr().String())
	return nil
}

// Addr is the address that the server listens on, nil when it doesn't.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// grace is how long requests may go on when the server stops. They are about a broker that is gone by then.
const grace = time.Second

// Stop lets requests in flight finish, for a second at most, and closes everything.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	server, served, cancel := s.server, s.served, s.cancel
	s.server, s.listener = nil, nil
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	bounded, done := context.WithTimeout(ctx, grace)
	defer done()
	if server.Shutdown(bounded) != nil {
		_ = server.Close() // whoever still waits is cut off
	}
	cancel()
	<-served
	return ctx.Err()
}
