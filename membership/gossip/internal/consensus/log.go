package consensus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// repeated is how long the same warning of raft isn't logged again: it warns of an unreachable server at each attempt.
const repeated = time.Minute

// NewLogger makes raft's and memberlist's kind of logger say what matters to a slog logger: warnings and errors, each text once a minute. Everything
// else is for debugging.
func NewLogger(to *slog.Logger, prefix string) hclog.Logger {
	return &hcLogger{Logger: hclog.NewNullLogger(), to: to, prefix: prefix, said: &said{at: map[string]time.Time{}}}
}

type said struct {
	mu sync.Mutex
	at map[string]time.Time // by text, of which there are as many as raft's source has
}

// hcLogger is a hclog.Logger.
type hcLogger struct {
	hclog.Logger // says nothing; it stands in for the methods that nobody calls
	to           *slog.Logger
	prefix       string
	args         []any
	*said
}

func (l *hcLogger) log(level slog.Level, text string, args []any) {
	if !l.to.Enabled(context.Background(), level) {
		return
	}
	if level > slog.LevelDebug {
		l.mu.Lock()
		now := time.Now()
		again := now.Sub(l.at[text]) < repeated
		if !again {
			l.at[text] = now
		}
		l.mu.Unlock()
		if again {
			level = slog.LevelDebug
		}
	}
	l.to.Log(context.Background(), level, l.prefix+text, append(l.args[:len(l.args):len(l.args)], args...)...)
}

// Trace, Debug, Info, Warn and Error implement hclog.Logger.
func (l *hcLogger) Trace(string, ...any) {}

// Debug is described at Trace.
func (l *hcLogger) Debug(text string, args ...any) { l.log(slog.LevelDebug, text, args) }

// Info is described at Trace.
func (l *hcLogger) Info(text string, args ...any) { l.log(slog.LevelDebug, text, args) }

// Warn is described at Trace.
func (l *hcLogger) Warn(text string, args ...any) { l.log(slog.LevelInfo, text, args) }

// Error is described at Trace.
func (l *hcLogger) Error(text string, args ...any) { l.log(slog.LevelWarn, text, args) }

// IsTrace, IsDebug, IsInfo, IsWarn and IsError implement hclog.Logger.
func (l *hcLogger) IsTrace() bool { return false }

// IsDebug is described at IsTrace.
func (l *hcLogger) IsDebug() bool { return l.to.Enabled(context.Background(), slog.LevelDebug) }

// IsInfo is described at IsTrace.
func (l *hcLogger) IsInfo() bool { return l.IsDebug() }

// IsWarn is described at IsTrace.
func (l *hcLogger) IsWarn() bool { return true }

// IsError is described at IsTrace.
func (l *hcLogger) IsError() bool { return true }

// With implements hclog.Logger.
func (l *hcLogger) With(args ...any) hclog.Logger {
	return &hcLogger{Logger: l.Logger, to: l.to, prefix: l.prefix, args: append(l.args[:len(l.args):len(l.args)], args...), said: l.said}
}

// Named and ResetNamed implement hclog.Logger.
func (l *hcLogger) Named(string) hclog.Logger { return l }

// ResetNamed is described at Named.
func (l *hcLogger) ResetNamed(string) hclog.Logger { return l }
