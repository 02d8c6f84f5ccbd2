package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// gate lets heartbeats in until it is shut. Raft deals with a heartbeat on the goroutine of the connection that it came over, which its
// Shutdown doesn't wait for; one that brings a higher term is written to the store, and raft panics when the store is closed by then.
type gate struct {
	mu   sync.RWMutex // held for reading while a heartbeat is dealt with
	shut bool
}

// guard is handle, for as long as the gate is open. Later heartbeats are answered with an error.
func (g *gate) guard(handle func(raft.RPC)) func(raft.RPC) {
	return func(heartbeat raft.RPC) {
		g.mu.RLock()
		defer g.mu.RUnlock()
		if g.shut {
			heartbeat.Respond(nil, raft.ErrTransportShutdown)
			return
		}
		handle(heartbeat)
	}
}

// close waits for heartbeats that are in, and lets no other in.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}
