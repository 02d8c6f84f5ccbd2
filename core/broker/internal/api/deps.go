package api

import (
	"log/slog"
	"time"
)

// Deps is what the handlers work with. The composition fills it in; a room that is nil isn't served.
type Deps struct {
	Logger *slog.Logger
	Now    func() time.Time
}

// handlers holds the handlers' dependencies, and what they keep between requests.
type handlers struct {
	Deps
}

func newHandlers(d Deps) *handlers {
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &handlers{Deps: d}
}
