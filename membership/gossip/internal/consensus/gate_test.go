package consensus

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGate(t *testing.T) {
	var g gate
	in, out, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	busy := true
	handle := g.guard(func(raft.RPC) {
		close(in) // panics when it is called again
		<-out
		busy = false
	})
	go handle(raft.RPC{})
	<-in
	go func() {
		g.close()
		assert.False(t, busy, "closed while a heartbeat was dealt with")
		close(closed)
	}()
	select {
	case <-closed:
		t.Fatal("close doesn't wait")
	default:
	}
	close(out)
	<-closed
	answers := make(chan raft.RPCResponse, 1)
	handle(raft.RPC{RespChan: answers})
	require.ErrorIs(t, (<-answers).Error, raft.ErrTransportShutdown)
}
