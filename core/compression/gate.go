package compression

import (
	"context"
	"sync/atomic"
)

// Gate is the life cycle of a codec that has nothing to start and nothing to stop but itself: embed it, and ask Check first
// in each method. The zero Gate is closed.
type Gate struct {
	open atomic.Bool
}

// Start opens the gate.
func (g *Gate) Start(context.Context) error {
	g.open.Store(true)
	return nil
}

// Stop closes the gate. It may be called in any state, and again.
func (g *Gate) Stop(context.Context) error {
	g.open.Store(false)
	return nil
}

// Check returns ErrNotRunning while the gate is closed.
func (g *Gate) Check() error {
	if !g.open.Load() {
		return ErrNotRunning
	}
	return nil
}
