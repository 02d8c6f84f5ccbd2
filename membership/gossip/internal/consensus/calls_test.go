package consensus

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// silent is a call that is answered when the test ends, which is long after anybody has lost patience.
type silent struct{ end <-chan struct{} }

func (s silent) Error() error { <-s.end; return nil }

// TestAwait asks what is never answered: the wait ends with its context, and with raft.
func TestAwait(t *testing.T) {
	n := &Node{down: make(chan struct{})}
	require.NoError(t, n.await(t.Context(), answered{}))
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, soon(t, func() error { return n.await(short, silent{t.Context().Done()}) }), context.DeadlineExceeded)
	require.ErrorIs(t, soon(t, func() error {
		time.AfterFunc(10*time.Millisecond, func() { close(n.down) })
		return n.await(t.Context(), silent{t.Context().Done()})
	}), raft.ErrRaftShutdown)
}

type answered struct{}

func (answered) Error() error { return nil }

// TestAwaitAfterShutdown calls a raft that has been shut down: about half of the calls get into its queues, and nobody is there to answer them.
func TestAwaitAfterShutdown(t *testing.T) {
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger, conf.BatchApplyCh = "one", NewLogger(slog.New(slog.DiscardHandler), ""), true
	store := raft.NewInmemStore()
	_, transport := raft.NewInmemTransport("one")
	r, err := raft.NewRaft(conf, newReplica(nil), store, store, raft.NewInmemSnapshotStore(), transport)
	require.NoError(t, err)
	require.NoError(t, r.Shutdown().Error())
	n := &Node{down: make(chan struct{})}
	close(n.down)
	for range 10 {
		require.ErrorIs(t, soon(t, func() error { return n.await(t.Context(), r.VerifyLeader()) }), raft.ErrRaftShutdown)
		require.ErrorIs(t, soon(t, func() error { return n.await(t.Context(), r.Barrier(0)) }), raft.ErrRaftShutdown)
		require.ErrorIs(t, soon(t, func() error { return n.await(t.Context(), r.Apply(nil, time.Second)) }), raft.ErrRaftShutdown)
	}
}

// soon is what do returns, which must be before anybody loses patience.
func soon(t *testing.T, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		require.FailNow(t, "waits for ever")
		return assert.AnError
	}
}
