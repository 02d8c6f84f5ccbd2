package zookeeper

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

func portableOf(t *testing.T, o Options) *coordination {
	t.Helper()
	made, err := New(o, election.Settings{})
	require.NoError(t, err)
	return made.(*coordination)
}

// dumpOf has a topic with so many partitions, each at a partition epoch.
func dumpOf(partitions int, epoch int32) election.Dump {
	d := election.Dump{ClusterID: "QmFybmFiYXNCYXJuYWJhcw", ControllerEpoch: 3, Topics: []election.Topic{{Name: "t", ID: election.TopicID{1}}}}
	for range partitions {
		d.Topics[0].Partitions = append(d.Topics[0].Partitions, election.Partition{Assignment: election.Assignment{Replicas: []int32{1}},
			State: &election.PartitionState{Leader: 1, LeaderEpoch: 2, ISR: []int32{1}, ControllerEpoch: 3, PartitionEpoch: epoch}})
	}
	return d
}

// TestAnImportThatDies is cut off from ZooKeeper for good, half way: no broker starts on what is there, and the next import begins anew.
func TestAnImportThatDies(t *testing.T) {
	o, p := behindProxy(t, 5*time.Second)
	there := direct(o, p)
	d := dumpOf(400, 20) // more than one transaction
	im := portableOf(t, o)
	im.o.ConnectionTimeout = time.Second // of what tidies up
	err := im.Import(inTime(t), d, election.ImportOptions{Progress: func(done, _ int) {
		if done > 0 {
			p.sever()
		}
	}})
	require.ErrorIs(t, err, election.ErrUnavailable)
	require.ErrorContains(t, err, "marked as unfinished")

	made := portableOf(t, there)
	require.ErrorIs(t, made.Start(inTime(t)), election.ErrUnfinished)
	require.NoError(t, made.Stop(inTime(t)))
	_, err = portableOf(t, there).Export(inTime(t), election.ExportOptions{})
	require.ErrorIs(t, err, election.ErrUnfinished)
	require.NoError(t, portableOf(t, there).Import(inTime(t), d, election.ImportOptions{}))
	e, err := portableOf(t, there).Export(inTime(t), election.ExportOptions{})
	require.NoError(t, err)
	require.Equal(t, d.Topics, e.Dump.Topics)
}

// TestOfTwoImportsOneGoesOn begins another import in the middle of one.
func TestOfTwoImportsOneGoesOn(t *testing.T) {
	o := newCluster(t).o
	first, second := dumpOf(10, 3), dumpOf(20, 1)
	begun := false
	var inner error
	outer := portableOf(t, o).Import(inTime(t), first, election.ImportOptions{Progress: func(int, int) {
		if !begun {
			begun = true
			inner = portableOf(t, o).Import(inTime(t), second, election.ImportOptions{})
		}
	}})
	require.NoError(t, inner)
	require.ErrorIs(t, outer, election.ErrConflict)
	e, err := portableOf(t, o).Export(inTime(t), election.ExportOptions{})
	require.NoError(t, err)
	require.Equal(t, second.Topics, e.Dump.Topics)
}

// TestBrokerEpochsAboveZooKeepers imports broker epochs that ZooKeeper's own count hasn't reached.
func TestBrokerEpochsAboveZooKeepers(t *testing.T) {
	o := newCluster(t).o
	d := dumpOf(1, 0)
	d.BrokerEpoch = 1 << 50
	err := portableOf(t, o).Import(inTime(t), d, election.ImportOptions{})
	require.ErrorIs(t, err, election.ErrInvalid)
	require.ErrorContains(t, err, "elects a leader")
	_, err = portableOf(t, o).Export(inTime(t), election.ExportOptions{})
	require.ErrorIs(t, err, election.ErrEmpty)

	probe := portableOf(t, newCluster(t).o)
	require.NoError(t, probe.Import(inTime(t), dumpOf(1, 0), election.ImportOptions{}))
	e, err := probe.Export(inTime(t), election.ExportOptions{})
	require.NoError(t, err)
	d.BrokerEpoch = e.Dump.BrokerEpoch + 3000 // which takes some transactions
	require.NoError(t, portableOf(t, o).Import(inTime(t), d, election.ImportOptions{}))
	c := begin(t, o, "")
	require.Greater(t, register(t, c, testBroker(1, 9092)).Epoch(), d.BrokerEpoch)
}

// TestExportsLeaveNothingOut puts what can't be read, or has no place in a dump, beside a cluster.
func TestExportsLeaveNothingOut(t *testing.T) {
	o := newCluster(t).o
	require.NoError(t, portableOf(t, o).Import(inTime(t), dumpOf(1, 4), election.ImportOptions{}))
	others := begin(t, o, "")
	export := func() (election.Export, error) { return portableOf(t, o).Export(inTime(t), election.ExportOptions{}) }
	put(t, others, "/config/users/alice", `{"version":1,"config":{"SCRAM-SHA-256":"x"}}`)
	put(t, others, "/config/topics/long-gone", `{"version":1,"config":{"a":"b"}}`)
	put(t, others, "/config/topics/t", `{"version":1,"config":{}}`)
	put(t, others, deletionPath("never-was"), "")
	put(t, others, reassignPath, `{"version":1,"partitions":[]}`)
	e, err := export()
	require.NoError(t, err)
	require.Len(t, e.Omitted, 3)
	require.Contains(t, e.Omitted[1], "/config/users")
	require.Empty(t, e.Dump.Configs)
	require.Len(t, e.Dump.Topics, 1)

	for path, bad := range map[string][]string{
		topicPath("t"):      {`garbage`, `{"version":3,"partitions":{"0":[1]}}`},
		statePath("t", 0):   {``, `{"leader":1}`},
		controllerEpochPath: {`-1`}, producerIDsPath: {`x`}, "/config/topics/t": {`{"version":9}`}, clusterIDPath: {`{}`},
	} {
		n, err := others.current().get(inTime(t), path)
		require.NoError(t, err)
		for _, data := range bad {
			put(t, others, path, data)
			_, err := export()
			require.Error(t, err)
			require.ErrorContains(t, err, path)
		}
		put(t, others, path, string(n.data))
	}
	put(t, others, controllerEpochPath, "2") // below what a state says
	e, err = export()
	require.NoError(t, err)
	require.Equal(t, int32(3), e.Dump.ControllerEpoch)
}

// TestImportsThatDoNotFit has dumps that ZooKeeper has no place for, and places that aren't empty.
func TestImportsThatDoNotFit(t *testing.T) {
	o := newCluster(t).o
	for _, change := range []func(d *election.Dump){
		func(d *election.Dump) { d.Topics[0].Name = "a/b" },
		func(d *election.Dump) { *d = dumpOf(100_000, 0) },
		func(d *election.Dump) { *d = dumpOf(100, 1<<30) },
		func(d *election.Dump) {
			d.Configs = []election.Config{{Entity: election.Entity{Kind: election.BrokerEntity, Name: "<default>"}, Values: map[string]string{"a": "b"}}}
		},
	} {
		d := dumpOf(1, 0)
		change(&d)
		require.NoError(t, d.Validate())
		require.ErrorIs(t, portableOf(t, o).Import(inTime(t), d, election.ImportOptions{}), election.ErrInvalid)
	}
	begin(t, o, "") // creates what is above a cluster's nodes, and nothing else
	require.NoError(t, portableOf(t, o).Import(inTime(t), dumpOf(1, 0), election.ImportOptions{DryRun: true}))
	put(t, begin(t, o, ""), topicPath("t"), `{}`)
	require.ErrorIs(t, portableOf(t, o).Import(inTime(t), dumpOf(1, 0), election.ImportOptions{}), election.ErrNotEmpty)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, portableOf(t, o).Import(ctx, dumpOf(1, 0), election.ImportOptions{}), context.Canceled)
	o.Connect = "127.0.0.1:1/x"
	o.ConnectionTimeout = 200 * time.Millisecond
	err := portableOf(t, o).Import(inTime(t), dumpOf(1, 0), election.ImportOptions{})
	require.True(t, errors.Is(err, election.ErrUnavailable), "%v", err)
}

// BenchmarkImport imports 1,000 partitions whose partition epochs have to be reached by writing.
func BenchmarkImport(b *testing.B) {
	for _, epoch := range []int32{0, 100} {
		b.Run(strconv.Itoa(int(epoch)), func(b *testing.B) {
			for b.Loop() {
				made, err := New(Options{Connect: newRoot(), SessionTimeout: 10 * time.Second, ConnectionTimeout: patience}, election.Settings{})
				require.NoError(b, err)
				require.NoError(b, made.(*coordination).Import(b.Context(), dumpOf(1000, epoch), election.ImportOptions{}))
			}
		})
	}
}
