package consensus

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// patientRaft is a raft, one of two servers, that looks for its leader in one to two hours.
func patientRaft(t *testing.T) (*raft.Raft, *raft.InmemTransport) {
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = "one", NewLogger(slog.New(slog.DiscardHandler), "")
	conf.HeartbeatTimeout, conf.ElectionTimeout = time.Hour, time.Hour
	store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
	_, transport := raft.NewInmemTransport("one")
	servers := raft.Configuration{Servers: []raft.Server{{ID: "one", Address: "one"}, {ID: "two", Address: "two"}}}
	require.NoError(t, raft.BootstrapCluster(conf, store, store, snapshots, transport, servers))
	r, err := raft.NewRaft(conf, newReplica(nil), store, store, snapshots, transport)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Shutdown().Error()) })
	return r, transport
}

// TestStands has another server ask for the vote of this one, which is told so.
func TestStands(t *testing.T) {
	r, transport := patientRaft(t)
	asked := stands(r)
	_, other := raft.NewInmemTransport("two")
	other.Connect(transport.LocalAddr(), transport)
	request := &raft.RequestPreVoteRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("two"), Addr: []byte("two")}, Term: 1}
	require.NoError(t, other.RequestPreVote("one", transport.LocalAddr(), request, &raft.RequestPreVoteResponse{}))
	require.Eventually(t, func() bool { return len(asked) > 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, "two", string((<-asked).Data.(raft.RequestPreVoteRequest).ID))
}

// TestLook has a raft find now that it has no leader.
func TestLook(t *testing.T) {
	r, _ := patientRaft(t)
	before := r.ReloadableConfig()
	require.Equal(t, raft.Follower, r.State())
	require.NoError(t, look(r))
	require.Eventually(t, func() bool { return r.State() == raft.Candidate }, 10*time.Second, time.Millisecond)
	require.Equal(t, before, r.ReloadableConfig())
}

// TestTurn holds that voters don't stand for election at the same time, and that all have done so by when raft itself would have.
func TestTurn(t *testing.T) {
	require.Equal(t, time.Second, turn(time.Second, 0), "raft misses nobody before that")
	for before := range 4 {
		require.Equal(t, 500*time.Millisecond, turn(time.Second, before+1)-turn(time.Second, before))
	}
	require.Equal(t, 3*time.Second, turn(time.Second, 100))
}

// TestBefore has voters take their turns: each when the one before it has asked for its vote, and nobody who doesn't vote before one who does.
func TestBefore(t *testing.T) {
	servers := []Server{{ID: "a", Voter: true}, {ID: "b", Voter: true}, {ID: "x"}, {ID: "leader", Voter: true}, {ID: "c", Voter: true}, {ID: "d", Voter: true}}
	for asked, want := range map[string][]int{"": {0, 1, 2, 3, 4}, "a": {0, 0, 1, 2, 3}, "b": {0, 1, 0, 1, 2}, "c": {0, 1, 2, 0, 1}, "d": {0, 1, 2, 3, 0}} {
		for i, server := range []string{"a", "b", "c", "d", "x"} {
			require.Equal(t, want[i], before(servers, server, "leader", asked), "%s, when %q has asked", server, asked)
		}
	}
}
