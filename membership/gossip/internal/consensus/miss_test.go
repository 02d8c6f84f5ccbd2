package consensus

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestLook has a raft that would look for its leader in one to two hours find now that it has none.
func TestLook(t *testing.T) {
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = "one", NewLogger(slog.New(slog.DiscardHandler), "")
	conf.HeartbeatTimeout, conf.ElectionTimeout = time.Hour, time.Hour
	store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
	_, transport := raft.NewInmemTransport("one")
	servers := raft.Configuration{Servers: []raft.Server{{ID: "one", Address: "one"}, {ID: "two", Address: "two"}}}
	require.NoError(t, raft.BootstrapCluster(conf, store, store, snapshots, transport, servers))
	r, err := raft.NewRaft(conf, newReplica(nil), store, store, snapshots, transport)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Shutdown().Error()) }()
	before := r.ReloadableConfig()
	require.Equal(t, raft.Follower, r.State())
	require.NoError(t, look(r))
	require.Eventually(t, func() bool { return r.State() == raft.Candidate }, 10*time.Second, time.Millisecond)
	require.Equal(t, before, r.ReloadableConfig())
}

// TestTurn holds that voters don't stand for election at the same time, and that all have done so before raft itself would have to.
func TestTurn(t *testing.T) {
	require.Equal(t, time.Second, turn(time.Second, 0), "raft misses nobody before that")
	for before := range 5 {
		require.Equal(t, 200*time.Millisecond, turn(time.Second, before+1)-turn(time.Second, before))
	}
	require.Equal(t, 2*time.Second, turn(time.Second, 100))
}
