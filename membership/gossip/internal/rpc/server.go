package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Handler carries a request out: body is its JSON, empty when it has none; ctx ends when the caller doesn't wait any more or the
// server stops. What it returns is the answer's body. Errors that aren't an [*Error] reach the caller with [CodeFailed].
type Handler func(ctx context.Context, body []byte) (any, error)

// maxAtOnce is how many requests of one connection are carried out at a time. More are answered with CodeBusy.
const maxAtOnce = 1024

// writeTimeout is how long a caller may take to receive an answer.
const writeTimeout = 30 * time.Second

// Server answers requests. Its methods may be called from any goroutine.
type Server struct {
	handlers map[string]Handler
	log      *slog.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// NewServer makes a server for these methods.
func NewServer(handlers map[string]Handler, log *slog.Logger) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{handlers: handlers, log: log, ctx: ctx, cancel: cancel, conns: map[net.Conn]struct{}{}}
}

// Serve accepts connections until the listener is closed, which Close does too.
func (s *Server) Serve(l net.Listener) {
	if !s.begin() {
		l.Close()
		return
	}
	stop := context.AfterFunc(s.ctx, func() { l.Close() })
	go func() {
		defer s.running.Done()
		defer stop()
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil {
				if err == nil {
					conn.Close()
				}
				return
			}
			if err != nil { // such as too many open files
				select {
				case <-time.After(50 * time.Millisecond):
				case <-s.ctx.Done():
				}
				continue
			}
			s.take(conn)
		}
	}()
}

// begin counts a goroutine, unless the server is closed.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

func (s *Server) take(conn net.Conn) {
	if !s.begin() {
		conn.Close()
		return
	}
	s.mu.Lock()
	s.conns[conn] = struct{}{}
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		err := s.serve(conn)
		if err != nil && !errors.Is(err, io.EOF) && s.ctx.Err() == nil {
			s.log.Debug("a connection to the coordination port ended", "from", conn.RemoteAddr().String(), "because", err)
		}
	}()
}

// serve reads requests until the connection ends, and answers each from a goroutine of its own.
func (s *Server) serve(conn net.Conn) error {
	var answering sync.WaitGroup
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() {
		conn.Close()
		cancel() // who asked is gone
		answering.Wait()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	var mu sync.Mutex // over writes
	reply := func(a answer) {
		text, err := encode(a)
		if err != nil {
			text, _ = encode(answer{ID: a.ID, Error: &Error{Code: CodeFailed, Text: err.Error()}})
		}
		mu.Lock()
		defer mu.Unlock()
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(text); err != nil {
			conn.Close()
		}
	}
	slots := make(chan struct{}, maxAtOnce)
	in := bufio.NewReaderSize(conn, 4096)
	for {
		var r request
		if err := decode(in, &r); err != nil {
			return err
		}
		handler, ok := s.handlers[r.Method]
		if !ok {
			reply(answer{ID: r.ID, Error: &Error{Code: CodeUnknownMethod, Text: "unknown method " + shorten(r.Method)}})
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			reply(answer{ID: r.ID, Error: &Error{Code: CodeBusy, Text: "too many requests at a time"}})
			continue
		}
		answering.Go(func() {
			defer func() { <-slots }()
			reply(s.handle(ctx, handler, r))
		})
	}
}

func shorten(method string) string {
	if len(method) > 40 {
		return method[:40] + "…"
	}
	return method
}

func (s *Server) handle(ctx context.Context, handler Handler, r request) answer {
	if r.Wait > 0 && r.Wait < int64(time.Hour/time.Millisecond) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Wait)*time.Millisecond)
		defer cancel()
	}
	out, err := handler(ctx, r.Body)
	if err == nil {
		var body json.RawMessage
		if body, err = json.Marshal(out); err == nil {
			return answer{ID: r.ID, Body: body}
		}
	}
	var coded *Error
	if !errors.As(err, &coded) {
		coded = &Error{Code: CodeFailed, Text: err.Error()}
	}
	return answer{ID: r.ID, Error: coded}
}

// Close ends all connections, and waits for the handlers.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
