package gossip

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// stop stops a broker as an operator does.
func (w *town) stop(broker int) {
	w.t.Helper()
	require.NoError(w.t, w.brokers[broker].Stop(w.t.Context()))
	delete(w.brokers, broker)
}

// store is the directory of a broker's store.
func (w *town) store(broker int) string {
	return filepath.Join(w.dir, strconv.Itoa(broker)) + ".coordination"
}

// atRest is a broker's coordination that isn't started, with the others' addresses.
func (w *town) atRest(broker int, join ...string) *coordination { return w.make(broker, join, 0) }

// TestRecover loses the stores of two of three voters, and makes a cluster of what the third has. The others join it.
func TestRecover(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(3)
	id, err := w.brokers[1].Membership().ClusterID(t.Context(), "")
	require.NoError(t, err)
	term, err := w.brokers[1].Campaign(within(t), 1)
	require.NoError(t, err)
	_, err = w.brokers[1].Metadata().CreateTopics(t.Context(), term.Epoch(), []election.NewTopic{newTopic("kept", 1)})
	require.NoError(t, err)
	registration := register(t, w.brokers[1], 1)

	_, err = w.atRest(1).Recover(t.Context(), RecoverOptions{Confirmed: true})
	require.ErrorIs(t, err, election.ErrInUse, "its broker runs")
	at := w.addresses()
	w.stop(1)
	_, err = w.atRest(1, at...).Recover(within(t), RecoverOptions{Confirmed: true})
	require.ErrorIs(t, err, ErrNotNow)
	w.eventually("the others have a leader", func() bool {
		_, err = w.atRest(1, at...).Recover(within(t), RecoverOptions{Confirmed: true})
		return err != nil && strings.Contains(err.Error(), "a majority of the voters is there")
	})
	_, err = w.atRest(1, at...).SetAside(within(t), false)
	require.ErrorIs(t, err, ErrNotNow)
	require.ErrorContains(t, err, "votes: take its vote first")
	w.kill(2)
	w.eventually("the one that is left has no leader", func() bool {
		_, err = w.atRest(1, at...).Recover(within(t), RecoverOptions{Confirmed: true})
		return err != nil && strings.Contains(err.Error(), "stop it first")
	})
	w.kill(3)
	_, err = w.atRest(1, at...).SetAside(within(t), false)
	require.ErrorContains(t, err, "its store may be what the cluster has to be recovered from")

	// The stores of the others are at hand.
	_, err = w.atRest(1).Recover(within(t), RecoverOptions{With: []election.Coordination{w.atRest(2)}, Confirmed: true})
	require.ErrorIs(t, err, ErrNotNow)
	_, err = w.atRest(1).Recover(within(t), RecoverOptions{With: []election.Coordination{w.atRest(3)}, Confirmed: true})
	require.ErrorIs(t, err, ErrNotNow, "the third went on without the first, or they are a majority")
	require.NoError(t, os.RemoveAll(w.store(2)))
	require.NoError(t, os.RemoveAll(w.store(3)))

	seen, err := w.atRest(1, at...).Recover(within(t), RecoverOptions{})
	require.NoError(t, err)
	assert.Len(t, seen.Missing, 2)
	assert.True(t, seen.Voted)
	assert.Positive(t, seen.Index)
	assert.Empty(t, seen.Backup)
	require.Len(t, seen.Dump.Topics, 1)
	former, err := member.ReadIdentity(w.store(1))
	require.NoError(t, err)
	require.Equal(t, seen.Former, string(former.Cluster()), "nothing was changed")

	_, err = w.atRest(1).Recover(within(t), RecoverOptions{Backup: w.dir, Confirmed: true})
	require.ErrorIs(t, err, os.ErrExist, "no backup, no recovery")
	_, err = w.atRest(1).Recover(within(t), RecoverOptions{Backup: filepath.Join(w.dir, "no", "where"), Confirmed: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	done, err := w.atRest(1, at...).Recover(within(t), RecoverOptions{Confirmed: true})
	require.NoError(t, err)
	require.NotEqual(t, done.Former, done.RaftCluster)
	before, err := consensus.ReadStore(done.Backup, logger(t))
	require.NoError(t, err)
	require.Equal(t, seen.Index, before.Index)
	_, err = w.atRest(1).Recover(within(t), RecoverOptions{Confirmed: true})
	require.ErrorContains(t, err, "nothing has to be recovered", "once is enough")

	w.start(1, 0)
	w.works()
	again, err := w.brokers[1].Membership().ClusterID(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, id, again)
	next, err := w.brokers[1].Campaign(within(t), 1)
	require.NoError(t, err)
	require.Greater(t, next.Epoch(), term.Epoch()+1000, "far above what the former cluster may have come to")
	require.Greater(t, register(t, w.brokers[1], 1).Epoch(), registration.Epoch()+1000)
	topics, err := w.brokers[1].Metadata().Topics(t.Context())
	require.NoError(t, err)
	require.Len(t, topics, 1)
	require.Equal(t, "kept", topics[0].Name)
	w.start(2, 0)
	w.start(3, 0)
	w.becomes("1:voter 2:follower 3:follower")
	for _, broker := range []string{"2", "3"} {
		_, err := w.order(w.admin().Promote, broker)
		require.NoError(t, err)
	}
	w.becomes("1:voter 2:voter 3:voter")
	w.works()
}

// TestStoresOfTheFormerClusterAreStrangers recovers a cluster, and starts a broker with its former store: it doesn't come in, nor does it make the
// cluster go on that there was, until its store is set aside.
func TestStoresOfTheFormerClusterAreStrangers(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(3)
	for broker := 1; broker <= 3; broker++ {
		w.kill(broker)
	}
	_, err := w.atRest(1).Recover(within(t), RecoverOptions{Confirmed: true})
	require.NoError(t, err)
	w.start(1, 0)
	w.works()
	_, err = w.atRest(2, w.addresses()...).Recover(within(t), RecoverOptions{Confirmed: true})
	require.ErrorIs(t, err, ErrNotNow)
	require.ErrorContains(t, err, "if the cluster was recovered there")
	late := w.atRest(2, w.addresses()...)
	require.NoError(t, late.Start(t.Context()))
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			assert.NoError(t, late.Stop(context.Background()))
		}
	})
	w.eventually("it has no leader", func() bool {
		s, err := w.admin().Status(t.Context(), late.server.(*host).address)
		return err == nil && s.Leader == ""
	})
	w.becomes("1:voter")
	_, err = w.atRest(2, w.addresses()...).SetAside(within(t), false)
	require.ErrorIs(t, err, election.ErrInUse)
	require.NoError(t, late.Stop(within(t)))
	stopped = true
	a, err := w.atRest(2, w.addresses()...).SetAside(within(t), false)
	require.NoError(t, err)
	require.NoError(t, a.Damage)
	require.DirExists(t, a.To)
	require.NoDirExists(t, w.store(2))
	w.start(2, 0)
	w.becomes("1:voter 2:follower")
	_, err = w.atRest(9).SetAside(within(t), true)
	require.ErrorIs(t, err, election.ErrEmpty)
}

// TestRecoveryOfDamagedStores refuses to recover what can't be read, and sets it aside.
func TestRecoveryOfDamagedStores(t *testing.T) {
	t.Parallel()
	for _, file := range []string{member.IdentityFile, "wal/wal-meta.db"} {
		w := newTown(t)
		w.found(1)
		w.kill(1)
		path := filepath.Join(w.store(1), file)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		clear(text)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		_, err = w.atRest(1).Recover(within(t), RecoverOptions{Confirmed: true})
		require.ErrorContains(t, err, w.store(1))
		require.ErrorContains(t, err, "damaged")
		_, err = w.atRest(1).SetAside(within(t), false)
		require.ErrorIs(t, err, ErrNotNow)
		a, err := w.atRest(1).SetAside(within(t), true)
		require.NoError(t, err)
		require.Error(t, a.Damage)
		require.DirExists(t, a.To)
	}
}

// TestRecoveryThatWasCutShort finds a recovery that a crash has interrupted at its worst: the store is gone, and only the backup has what was there.
func TestRecoveryThatWasCutShort(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	all := g.voters(3)
	_, err := all[0].Membership().ClusterID(within(t), "QmFybmFiYXNCYXJuYWJhcw")
	require.NoError(t, err)
	for _, c := range all {
		require.NoError(t, c.Stop(within(t)))
	}
	at, err := g.coordination(1).enter(t.Context())
	require.NoError(t, err)
	plan := &unfinished{Index: at.stored.Index + 1, Term: at.stored.Term + 1}
	require.NoError(t, at.backUp(plan))
	require.NoError(t, at.unlock())
	dir := at.h.dir
	require.NoError(t, os.WriteFile(filepath.Join(dir, unfinishedFile), []byte(`{"index":`+strconv.FormatUint(plan.Index, 10)+`,"term":`+strconv.FormatUint(plan.Term, 10)+`,"servers":null,"backup":`+strconv.Quote(plan.Backup)+`}`), 0o600))
	require.NoError(t, consensus.RemoveStore(dir))

	err = g.coordination(1).Start(within(t))
	require.ErrorIs(t, err, election.ErrUnfinished)
	require.ErrorContains(t, err, plan.Backup)
	require.ErrorIs(t, g.coordination(1).Import(t.Context(), aDump(1), election.ImportOptions{Replace: true}), election.ErrUnfinished)
	r, err := g.coordination(1).Recover(within(t), RecoverOptions{Confirmed: true})
	require.NoError(t, err)
	require.Equal(t, plan.Backup, r.Backup)
	require.Equal(t, at.stored.Index, r.Index)
	require.Equal(t, "QmFybmFiYXNCYXJuYWJhcw", r.Dump.ClusterID)
	again := g.run(1)
	eventually(t, "it leads", func() bool { return again.node.Leads() })
}
