package remote

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// hostLog gives go-plugin a logger. What go-plugin says itself is for debugging it; what the plug-in wrote comes through a
// logger with a name, which go-plugin asks for, and goes to the broker's log.
type hostLog struct {
	hclog.Logger // says nothing; it stands in for the methods that nobody calls
	to           *slog.Logger
	limit        *limiter // nil for go-plugin's own
	tail         *tail
}

func newHostLog(to *slog.Logger, t *tail) hclog.Logger {
	return &hostLog{Logger: hclog.NewNullLogger(), to: to, tail: t}
}

// GetLevel implements hclog.Logger: go-plugin doesn't parse what is below.
func (*hostLog) GetLevel() hclog.Level { return hclog.Debug }

// Named implements hclog.Logger. go-plugin names the logger of the plug-in's standard error after the executable.
func (l *hostLog) Named(name string) hclog.Logger {
	if name == "stdio" {
		return l
	}
	return &hostLog{Logger: l.Logger, to: l.to, tail: l.tail, limit: &limiter{}}
}

// ResetNamed implements hclog.Logger.
func (l *hostLog) ResetNamed(name string) hclog.Logger { return l.Named(name) }

// With implements hclog.Logger.
func (l *hostLog) With(args ...any) hclog.Logger {
	with := *l
	with.to = l.to.With(args...)
	return &with
}

// Trace, Debug, Info, Warn, Error and Log implement hclog.Logger.
func (l *hostLog) Trace(string, ...any) {}

// Debug is described at Trace.
func (l *hostLog) Debug(text string, args ...any) { l.Log(hclog.Debug, text, args...) }

// Info is described at Trace.
func (l *hostLog) Info(text string, args ...any) { l.Log(hclog.Info, text, args...) }

// Warn is described at Trace.
func (l *hostLog) Warn(text string, args ...any) { l.Log(hclog.Warn, text, args...) }

// Error is described at Trace.
func (l *hostLog) Error(text string, args ...any) { l.Log(hclog.Error, text, args...) }

// Log is described at Trace.
func (l *hostLog) Log(level hclog.Level, text string, args ...any) {
	if l.limit == nil {
		l.to.Debug("go-plugin: "+text, args...)
		return
	}
	l.tail.add(text)
	ok, dropped := l.limit.allow(time.Now())
	if dropped > 0 {
		l.to.Warn("the plug-in logs too much: lines were left out", "lines", dropped)
	}
	if !ok {
		return
	}
	to := slog.LevelDebug
	switch level {
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
		to = slog.LevelError
	case hclog.Debug:
		if len(args) == 0 {
			to = slog.LevelInfo // a plain line: lines with a level have a timestamp among their arguments
		}
	}
	l.to.Log(context.Background(), to, text, without(args, "timestamp")...)
}

// without leaves a key and its value out of arguments.
func without(args []any, key string) []any {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == key {
			return append(args[:i:i], args[i+2:]...)
		}
	}
	return args
}

// How much a plug-in may log: some lines at once, and so many per second in the long run.
const logBurst, logRate = 200, 20

// limiter counts lines.
type limiter struct {
	mu      sync.Mutex
	tokens  float64
	last    time.Time
	dropped int
}

// allow says whether one more line may pass, and when it may, how many didn't before.
func (l *limiter) allow(now time.Time) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		l.tokens = logBurst
	} else {
		l.tokens = min(logBurst, l.tokens+now.Sub(l.last).Seconds()*logRate)
	}
	l.last = now
	if l.tokens < 1 {
		l.dropped++
		return false, 0
	}
	l.tokens--
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}

// tail keeps the last line that a plug-in wrote, for the message about its end.
type tail struct {
	mu   sync.Mutex
	line string
}

func (t *tail) add(line string) {
	const longest = 300
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = line[:min(len(line), longest)]
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.line
}
