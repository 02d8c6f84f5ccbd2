// Package logging decides which records of which logger are written, and lets that be changed while they are.
//
// A broker has a logger for each of its rooms, by name, and the one called root. A logger without a level of its own has root's. Who asks
// whether a record is written pays for an atomic load or two.
//
// What isn't its business: formats and where records go, which a [slog.Handler] decides, and who may change levels.
package logging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
)

// Root is the name of the logger that the others take their level from.
const Root = "root"

// The levels that Kafka's tools know beside slog's.
const (
	LevelTrace = slog.LevelDebug - 4
	LevelFatal = slog.LevelError + 4
)

var (
	// ErrUnknown is the answer to the name of a logger that isn't there.
	ErrUnknown = errors.New("no such logger")
	// ErrRoot is the answer to whoever wants to take root's level away.
	ErrRoot = errors.New("the root logger has nobody to take a level from")
)

// Levels has the level of every logger. Its methods may be called from any goroutine.
type Levels struct {
	root  slog.LevelVar
	names []string
	own   map[string]*atomic.Int64 // unset: none
}

// unset is the level of a logger that has none of its own.
const unset = math.MinInt64

// NewLevels makes levels of loggers by these names, which have root's.
func NewLevels(root slog.Level, names ...string) *Levels {
	l := &Levels{own: make(map[string]*atomic.Int64, len(names))}
	l.root.Set(root)
	for _, name := range names {
		level := new(atomic.Int64)
		level.Store(unset)
		l.own[name] = level
	}
	l.names = append([]string{Root}, slices.Sorted(slices.Values(names))...)
	return l
}

// Level is the level of one logger. Own says that it isn't root's.
type Level struct {
	Logger string
	Level  slog.Level
	Own    bool
}

// All lists the loggers, root first, the others by name.
func (l *Levels) All() []Level {
	all := make([]Level, len(l.names))
	for i, name := range l.names {
		all[i] = Level{Logger: name, Level: l.root.Level(), Own: name == Root}
		if own := l.own[name]; own != nil && own.Load() != unset {
			all[i].Level, all[i].Own = slog.Level(own.Load()), true
		}
	}
	return all
}

// Set gives a logger a level; root's is that of all that have none of their own. ErrUnknown.
func (l *Levels) Set(logger string, level slog.Level) error {
	if logger == Root {
		l.root.Set(level)
		return nil
	}
	own := l.own[logger]
	if own == nil {
		return l.unknown(logger)
	}
	own.Store(int64(level))
	return nil
}

// Reset lets a logger have root's level again. ErrUnknown, ErrRoot.
func (l *Levels) Reset(logger string) error {
	if logger == Root {
		return ErrRoot
	}
	own := l.own[logger]
	if own == nil {
		return l.unknown(logger)
	}
	own.Store(unset)
	return nil
}

// Check says what Set would say of a logger's name.
func (l *Levels) Check(logger string) error {
	if logger != Root && l.own[logger] == nil {
		return l.unknown(logger)
	}
	return nil
}

func (l *Levels) unknown(logger string) error {
	return fmt.Errorf("%w as %q: there are %s", ErrUnknown, logger, strings.Join(l.names, ", "))
}

// Handler writes what the logger of that name writes to next, whatever level that has itself: next decides only where records go. An unknown
// name is root's.
func (l *Levels) Handler(logger string, next slog.Handler) slog.Handler {
	return handler{next, l, l.own[logger]}
}

// handler is a logger's gate.
type handler struct {
	next   slog.Handler
	levels *Levels
	own    *atomic.Int64 // nil: root's
}

func (h handler) Enabled(_ context.Context, level slog.Level) bool {
	if h.own != nil {
		if own := h.own.Load(); own != unset {
			return int64(level) >= own
		}
	}
	return level >= h.levels.root.Level()
}

func (h handler) Handle(ctx context.Context, r slog.Record) error { return h.next.Handle(ctx, r) }

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.next = h.next.WithAttrs(attrs)
	return h
}

func (h handler) WithGroup(name string) slog.Handler {
	h.next = h.next.WithGroup(name)
	return h
}

// Parse reads a level by a name of Kafka's or slog's, in capitals or not: TRACE, DEBUG, INFO, WARN, ERROR or FATAL.
func Parse(text string) (slog.Level, error) {
	for _, level := range []slog.Level{LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, LevelFatal} {
		if strings.EqualFold(text, Name(level)) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("want TRACE, DEBUG, INFO, WARN, ERROR or FATAL, not %q", text)
}

// Name is what Kafka's tools call a level: that of the records which it lets through at the least.
func Name(level slog.Level) string {
	switch {
	case level <= LevelTrace:
		return "TRACE"
	case level <= slog.LevelDebug:
		return "DEBUG"
	case level <= slog.LevelInfo:
		return "INFO"
	case level <= slog.LevelWarn:
		return "WARN"
	case level <= slog.LevelError:
		return "ERROR"
	}
	return "FATAL"
}
