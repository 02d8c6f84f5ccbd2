package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// quiet is go-plugin's logger: what go-plugin says is for debugging it. Under a name, which go-plugin asks for, it is off:
// then the lines of the plug-in are handed to us as they are. go-plugin would parse them itself, and panic at one like
// {"@message": 1}.
type quiet struct {
	hclog.Logger // says nothing; it stands in for the methods that nobody calls
	to           *slog.Logger
	level        hclog.Level
}

func newQuiet(to *slog.Logger) hclog.Logger {
	return &quiet{Logger: hclog.NewNullLogger(), to: to, level: hclog.Debug}
}

// GetLevel implements hclog.Logger.
func (q *quiet) GetLevel() hclog.Level { return q.level }

// Named implements hclog.Logger.
func (q *quiet) Named(string) hclog.Logger {
	return &quiet{Logger: q.Logger, to: q.to, level: hclog.Off}
}

// Trace, Debug, Info, Warn and Error implement hclog.Logger.
func (*quiet) Trace(string, ...any) {}

// Debug is described at Trace.
func (q *quiet) Debug(text string, args ...any) { q.to.Debug("go-plugin: "+text, args...) }

// Info is described at Trace.
func (q *quiet) Info(text string, args ...any) { q.Debug(text, args...) }

// Warn is described at Trace.
func (q *quiet) Warn(text string, args ...any) { q.Debug(text, args...) }

// Error is described at Trace.
func (q *quiet) Error(text string, args ...any) { q.Debug(text, args...) }

// output takes what a plug-in writes, into the log and no faster than one can read. Any goroutine may use it.
type output struct {
	to *slog.Logger

	mu      sync.Mutex
	last    string // the last line, for the message about the plug-in's end
	limiter limiter
}

// lastWords is the last line that was written, cut short.
func (o *output) lastWords() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// line logs one line.
func (o *output) line(text string) {
	text = strings.TrimRight(text, "\r")
	if text == "" {
		return
	}
	level, message, args := parse(text)
	const longest = 300
	o.mu.Lock()
	o.last = message[:min(len(message), longest)]
	ok, dropped := o.limiter.allow(time.Now())
	o.mu.Unlock()
	if dropped > 0 {
		o.to.Warn("the plug-in logs too much: lines were left out", "lines", dropped)
	}
	if ok {
		o.to.Log(context.Background(), level, message, args...)
	}
}

// parse reads a line as hclog and plugins/sdk write it: JSON with @level, @message, @timestamp and fields. Every other line
// is a message as it stands.
func parse(text string) (level slog.Level, message string, args []any) {
	var fields map[string]any
	if text[0] != '{' || json.Unmarshal([]byte(text), &fields) != nil {
		return slog.LevelInfo, text, nil
	}
	message, ok := fields["@message"].(string)
	if !ok {
		return slog.LevelInfo, text, nil
	}
	switch fields["@level"] {
	case "trace", "debug":
		level = slog.LevelDebug
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !strings.HasPrefix(key, "@") {
			args = append(args, key, fields[key])
		}
	}
	return level, message, args
}

// longestLogged is the longest line that is logged in one piece, in bytes.
const longestLogged = 8 << 10

// lines cuts what is written to it into lines, for an output. One goroutine uses it.
type lines struct {
	to   *output
	rest []byte
}

// Write implements io.Writer. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		switch {
		case i >= 0 && i <= longestLogged:
			l.to.line(string(l.rest[:i]))
			l.rest = l.rest[i+1:]
		case len(l.rest) > longestLogged:
			l.to.line(string(l.rest[:longestLogged]))
			l.rest = l.rest[longestLogged:]
		default:
			return len(p), nil
		}
	}
}

// How much a plug-in may log: some lines at once, and so many per second in the long run.
const logBurst, logRate = 200, 20

// limiter counts lines.
type limiter struct {
	tokens  float64
	last    time.Time
	dropped int
}

// allow says whether one more line may pass, and when it may, how many didn't before.
func (l *limiter) allow(now time.Time) (ok bool, dropped int) {
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
