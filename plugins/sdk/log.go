package sdk

import (
	"io"
	"log/slog"
	"strings"
	"time"
)

// timeFormat is how go-plugin's hosts read times.
const timeFormat = "2006-01-02T15:04:05.000Z0700"

// newLogger makes a logger whose lines the host reads and puts into its own log, with their levels.
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 {
				return a
			}
			switch a.Key {
			case slog.TimeKey:
				if t, ok := a.Value.Any().(time.Time); ok {
					return slog.String("@timestamp", t.Format(timeFormat))
				}
			case slog.LevelKey:
				return slog.String("@level", strings.ToLower(a.Value.String()))
			case slog.MessageKey:
				return slog.String("@message", a.Value.String())
			}
			return a
		},
	}))
}
