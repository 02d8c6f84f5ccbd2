package election

import (
	"context"
	"errors"
)

// Errors of a [Portable].
var (
	// ErrInUse says that a broker is alive, or that a process has the state open.
	ErrInUse = errors.New("coordination is in use")
	// ErrEmpty says that there is no cluster in the coordination.
	ErrEmpty = errors.New("coordination is empty")
	// ErrNotEmpty says that the coordination has a cluster already, which an import would destroy.
	ErrNotEmpty = errors.New("coordination is not empty")
	// ErrUnfinished says that an import was begun and not finished: what is there is no cluster. Brokers don't start on it; the next
	// import begins anew.
	ErrUnfinished = errors.New("an import into this coordination was begun and not finished")
)

// Portable is implemented by a [Coordination] whose state can be taken out as a whole and put into another one, of the same kind or not.
// What is moved is in [Dump].
//
// Its methods are called on a Coordination that isn't started, in place of Start: they open what they need and give everything
// back before they return. One call is made at a time.
type Portable interface {
	// Export reads all that there is.
	//
	//  12.1  ErrInUse while a broker is alive or a process has the state open, unless o.Living. Then what is written meanwhile may be
	//        in the dump or not, but no topic in parts.
	//  12.2  The dump is valid (Dump.Validate), and no epoch, broker id or producer id was ever given that is beyond it.
	//  12.3  What can't be read is an error that names it, never left out. ErrEmpty when there is no cluster, ErrUnfinished after an
	//        import that wasn't finished.
	Export(ctx context.Context, o ExportOptions) (Export, error)

	// Import makes a dump the state.
	//
	//  12.4  Afterwards Topics returns the dump's topics, and Configs its configurations, each under a version of its own. Partition
	//        epochs are the dump's; controller epochs, broker epochs, broker ids and producer ids go on above it.
	//  12.5  It is done as a whole or not at all: after an error the coordination is as empty as before, or members and exports find it
	//        unfinished (ErrUnfinished), and so do they when the process dies meanwhile. The next import begins anew.
	//  12.6  ErrNotEmpty for a coordination with a cluster, unless o.Replace; then ErrConflict if that is another cluster, or has epochs
	//        or ids that are beyond the dump's. ErrInUse as in 12.1. ErrInvalid for a dump that isn't valid, or that this kind of
	//        coordination has no place for. Nothing is changed.
	//  12.7  With o.DryRun nothing is changed, and the errors of 12.6 are returned all the same.
	Import(ctx context.Context, d Dump, o ImportOptions) error
}

// ExportOptions say how to export.
type ExportOptions struct {
	// Living allows that brokers are alive meanwhile.
	Living bool
}

// Export is what was exported.
type Export struct {
	Dump Dump
	// Omitted says, for people, what else is kept where the state is and isn't part of a dump.
	Omitted []string
}

// ImportOptions say how to import.
type ImportOptions struct {
	// Replace allows that the dump takes the place of an earlier state of the same cluster.
	Replace bool
	// DryRun only looks whether the import could begin.
	DryRun bool
	// Progress, when not nil, is told how much of all there is to write was written. It is called from one goroutine at a time.
	Progress func(done, total int)
}

// Shared is implemented by a Portable that keeps the state on each member, where one member alone may not know all that was agreed on.
type Shared interface {
	Portable
	// ExportAmong is Export over the stores of several members: this one's and those of others, of the same kind and as little started.
	//
	//  12.8  ErrUnavailable when these can't tell what was agreed on, because too few are there; it names those that are missing. So does Export.
	ExportAmong(ctx context.Context, others []Coordination, o ExportOptions) (Export, error)
}
