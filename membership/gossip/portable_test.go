package gossip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
)

func aDump(controllerEpoch int32, topics ...string) election.Dump {
	d := election.Dump{ClusterID: "QmFybmFiYXNCYXJuYWJhcw", ControllerEpoch: controllerEpoch, BrokerEpoch: 1 << 40}
	for i, name := range topics {
		d.Topics = append(d.Topics, election.Topic{Name: name, ID: election.TopicID{byte(i + 1)}, Partitions: []election.Partition{
			{Assignment: election.Assignment{Replicas: []int32{1}}, State: &election.PartitionState{Leader: 1, ISR: []int32{1}, PartitionEpoch: 7}}}})
	}
	return d
}

func inTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestExportsOfServersThatVote takes what three servers agreed on out of their stores: any two of them know it, and no single one.
func TestExportsOfServersThatVote(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	all := g.voters(3)
	ctx := inTime(t)
	_, err := all[1].Membership().ClusterID(ctx, "QmFybmFiYXNCYXJuYWJhcw")
	require.NoError(t, err)
	term, err := all[2].Election().Campaign(ctx, 3)
	require.NoError(t, err)
	for i := range 20 {
		create := func() ([]error, error) {
			return all[2].Metadata().CreateTopics(ctx, term.Epoch(), []election.NewTopic{{Name: fmt.Sprintf("t%02d", i), ID: election.TopicID{byte(i + 1)}, Partitions: []election.Assignment{{Replicas: []int32{1}}}}})
		}
		errs, err := create()
		if i == 11 && errors.Is(err, election.ErrUnavailable) { // it was sent to the leader that has just stopped, which may have done it
			errs, err = create()
			if errs != nil && errors.Is(errs[0], election.ErrTopicExists) {
				errs[0] = nil
			}
		}
		require.NoError(t, err)
		require.NoError(t, errs[0])
		if i == 10 { // from here on two of three have it
			require.NoError(t, all[0].Stop(ctx))
		}
	}
	require.NoError(t, all[1].Stop(ctx))
	require.NoError(t, all[2].Stop(ctx))
	of := func(first int, others ...int) (election.Export, error) {
		var more []election.Coordination
		for _, n := range others {
			more = append(more, g.coordination(n))
		}
		return g.coordination(first).ExportAmong(ctx, more, election.ExportOptions{})
	}
	for broker := 1; broker <= 3; broker++ {
		_, err := of(broker)
		require.ErrorIs(t, err, election.ErrUnavailable)
		require.ErrorContains(t, err, "3 servers vote")
		e, err := of(broker, broker%3+1)
		require.NoError(t, err)
		require.Len(t, e.Dump.Topics, 20)
		require.Equal(t, term.Epoch(), e.Dump.ControllerEpoch)
	}
	_, err = of(1, 1)
	require.ErrorIs(t, err, election.ErrInUse, "the same one twice")
	_, err = of(1, 7)
	require.ErrorIs(t, err, election.ErrUnavailable, "one that has nothing")

	err = g.coordination(1).Import(ctx, aDump(9), election.ImportOptions{Replace: true})
	require.ErrorIs(t, err, election.ErrConflict, "the others would go on")
	require.ErrorContains(t, err, "vote, too, and would go on with it")
	require.ErrorContains(t, err, "coordination reset")
}

// TestAnImportReachesServersThatFollow replaces the state of a cluster whose other server follows: it takes the new state over.
func TestAnImportReachesServersThatFollow(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	voter := g.voters(1)[0]
	ctx := inTime(t)
	require.NoError(t, voter.Stop(ctx))
	dir := voter.server.(*host).dir
	require.NoError(t, g.coordination(1).Import(ctx, aDump(3, "a", "b"), election.ImportOptions{Replace: true}))
	voter = g.run(1)
	follower := g.run(2)
	has := func(names ...string) {
		t.Helper()
		for _, c := range []*coordination{voter, follower} {
			require.Eventually(t, func() bool { // it may take a while until somebody leads, and until it is added
				topics, err := c.Metadata().Topics(ctx)
				var have []string
				for _, topic := range topics {
					have = append(have, topic.Name)
				}
				return err == nil && slices.Equal(names, have)
			}, patience, 10*time.Millisecond)
		}
	}
	has("a", "b")
	require.NoError(t, follower.Stop(ctx))
	require.NoError(t, voter.Stop(ctx))
	e, err := g.coordination(1).Export(ctx, election.ExportOptions{})
	require.NoError(t, err)
	e.Dump.Topics = aDump(0, "c").Topics
	e.Dump.Topics[0].ID = election.TopicID{9}
	require.NoError(t, g.coordination(1).Import(ctx, e.Dump, election.ImportOptions{Replace: true}))
	voter, follower = g.run(1), g.run(2)
	has("c")
	require.NoError(t, follower.Stop(ctx))
	require.NoError(t, voter.Stop(ctx))

	// One that dies leaves a file that says so, and how to begin anew.
	stored, err := consensus.ReadStore(dir, logger(t))
	require.NoError(t, err)
	require.NoError(t, consensus.RemoveStore(dir))
	file := filepath.Join(dir, unfinishedFile)
	text, err := json.Marshal(unfinished{Index: stored.Index + 1, Term: stored.Term + 1, Servers: stored.Servers})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o644))
	require.ErrorIs(t, g.coordination(1).Start(ctx), election.ErrUnfinished)
	_, err = g.coordination(1).Export(ctx, election.ExportOptions{})
	require.ErrorIs(t, err, election.ErrUnfinished)
	require.NoError(t, g.coordination(1).Import(ctx, aDump(30, "d"), election.ImportOptions{}))
	require.NoFileExists(t, file)
	voter, follower = g.run(1), g.run(2)
	has("d")
}
