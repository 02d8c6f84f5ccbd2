package plugin

import (
	"context"
	"log/slog"
)

// Component is something with a life of its own: it is built, started, used and stopped, in that order and once.
//
//  1. Building does nothing that is felt outside: no goroutine, no file, no connection. What was built and is never
//     started needs no Stop.
//  2. Start is called at most once, from one goroutine. It returns quickly: long work goes on in the background.
//     Its ctx bounds the start alone; what runs on afterwards owns a context of its own, ended by Stop.
//  3. When Start fails it has undone what it began, and Stop may still be called.
//  4. Stop ends every goroutine that the component began and gives back what it held, before it returns. When ctx ends
//     first it returns ctx's error, having told everything to end at once.
//  5. Stop is safe on a component that was never started, whose start failed, and that is stopped already; those
//     calls return nil.
//  6. Methods of the role that are called before Start or after Stop return an error; they never panic or hang.
type Component interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// Settings is what every plug-in is given beside its options. Contract packages embed it in settings of their own,
// with what their role needs.
type Settings struct {
	// Logger is never nil when a composition builds the plug-in; it carries the plug-in's role and name. Plug-ins log
	// to nothing else, and nothing per record.
	Logger *slog.Logger
}
