package broker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
)

// This file has what the broker itself writes into its journal, and keeps for those who ask how it is.

// The phases of a broker that aren't steps of Start.
const (
	notStarted   = "not started"
	servingPhase = "serving"
)

// phase is what a broker is at.
type phase struct {
	what  string
	since time.Time
}

// enter says what the broker is at from now on. Steps of a start that are done within a moment aren't worth remembering.
func (b *Broker) enter(what string) {
	now := time.Now()
	last := b.phase.Load()
	if last != nil && last.what == what {
		return
	}
	b.phase.Store(&phase{what, now})
	if what == servingPhase || what == "stopping" || last != nil && now.Sub(last.since) > time.Second {
		b.journal.Record(journal.Phase{Broker: b.id, Phase: what})
	}
}

// registered says that the broker is known to its cluster under an epoch.
func (b *Broker) registered(epoch int64, again bool) {
	b.epoch.Store(epoch)
	b.lostAt.Store(0)
	b.mu.Lock()
	b.lost = make(chan struct{})
	b.mu.Unlock()
	b.journal.Record(journal.Registered{Broker: b.id, Epoch: epoch, Again: again})
}

func (b *Broker) unregistered(epoch int64) {
	b.lostAt.Store(time.Now().UnixNano())
	b.mu.Lock()
	close(b.lost)
	b.mu.Unlock()
	b.journal.Record(journal.RegistrationLost{Broker: b.id, Epoch: epoch})
}

// noteCluster remembers who came, who went, and who is controller. The first word of a controller is no news.
func (b *Broker) noteCluster(before, after *metadata.Snapshot) {
	from, _ := before.Controller()
	if to, epoch := after.Controller(); to != from {
		b.journal.Record(journal.ControllerChanged{Broker: b.id, From: from, To: to, Epoch: epoch})
	}
	if len(before.Brokers()) == 0 {
		return
	}
	for _, other := range before.Brokers() {
		if _, alive := after.Broker(other.ID); !alive {
			b.journal.Record(journal.WentAway{Broker: other.ID})
		}
	}
	for _, other := range after.Brokers() {
		if _, was := before.Broker(other.ID); !was {
			b.journal.Record(journal.CameAlive{Broker: other.ID})
		}
	}
}

// remembering is the log of a plug-in, whose warnings and errors are events, too.
type remembering struct {
	slog.Handler
	journal    *journal.Journal
	role, name string
}

// Enabled also takes what is to be remembered.
func (r remembering) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || r.Handler.Enabled(ctx, level)
}

// Handle logs a record, and remembers it if it is a warning at least.
func (r remembering) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Level >= slog.LevelWarn {
		var text strings.Builder
		text.WriteString(rec.Message)
		rec.Attrs(func(a slog.Attr) bool {
			fmt.Fprintf(&text, " %s=%v", a.Key, a.Value)
			return text.Len() < maxRemembered
		})
		short := text.String()
		if len(short) > maxRemembered {
			short = strings.ToValidUTF8(short[:maxRemembered], "") + "…"
		}
		r.journal.Record(journal.PluginSaid{Role: r.role, Name: r.name, Level: rec.Level.String(), Text: short})
	}
	if !r.Handler.Enabled(ctx, rec.Level) {
		return nil
	}
	return r.Handler.Handle(ctx, rec)
}

// maxRemembered is how much of a plug-in's message is kept, in bytes: it may come from another process.
const maxRemembered = 1000

// WithAttrs keeps remembering.
func (r remembering) WithAttrs(attrs []slog.Attr) slog.Handler {
	r.Handler = r.Handler.WithAttrs(attrs)
	return r
}

// WithGroup keeps remembering.
func (r remembering) WithGroup(name string) slog.Handler {
	r.Handler = r.Handler.WithGroup(name)
	return r
}
