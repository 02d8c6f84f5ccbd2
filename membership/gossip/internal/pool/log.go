package pool

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// logWriter takes the lines that memberlist logs to a logger, each kind of line at most once in a while: anybody can make it log
// by sending packets.
type logWriter struct {
	log   *slog.Logger
	every time.Duration
	now   func() time.Time

	mu   sync.Mutex
	last map[string]time.Time
}

// maxKinds bounds how many kinds of lines are told apart.
const maxKinds = 64

func newLogWriter(log *slog.Logger) *logWriter {
	return &logWriter{log: log, every: 10 * time.Second, now: time.Now, last: map[string]time.Time{}}
}

// Write implements io.Writer for one line.
func (w *logWriter) Write(line []byte) (int, error) {
	text := string(bytes.TrimRight(line, "\n"))
	if i := strings.Index(text, " ["); i >= 0 && i < len("2006/01/02 15:04:05 ") {
		text = text[i+1:] // the time, which the logger has, too
	}
	if strings.Contains(text, errSurvey.Error()) {
		return len(line), nil // asked by ourselves, not refused to others
	}
	level := slog.LevelDebug
	for prefix, l := range map[string]slog.Level{
		"[DEBUG] ": slog.LevelDebug, "[INFO] ": slog.LevelDebug, "[WARN] ": slog.LevelInfo, "[ERR] ": slog.LevelWarn, "[ERROR] ": slog.LevelWarn,
	} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			text, level = rest, l
		}
	}
	text = strings.TrimPrefix(text, "memberlist: ")
	if level > slog.LevelDebug && !w.isDue(text) {
		return len(line), nil
	}
	w.log.Log(context.Background(), level, "gossip: "+text)
	return len(line), nil
}

// isDue says whether a line of this kind hasn't been logged for a while. Its kind is how it begins, up to what differs.
func (w *logWriter) isDue(text string) bool {
	kind := text[:min(len(text), 24)]
	if i := strings.IndexAny(kind, "0123456789'\":("); i >= 0 {
		kind = kind[:i]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if at, ok := w.last[kind]; ok && now.Sub(at) < w.every {
		return false
	}
	if len(w.last) >= maxKinds {
		clear(w.last)
	}
	w.last[kind] = now
	return true
}
