package electiontest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Clauses 12: taking out and putting in what a coordination keeps.

// portable is a member that isn't started.
func (s *Subject) portable() election.Portable {
	s.t.Helper()
	p, ok := s.cluster.Member().(election.Portable)
	require.True(s.t, ok, "Options.Portable says that members implement election.Portable")
	return p
}

func (s *Subject) export() election.Dump {
	s.t.Helper()
	e, err := s.portable().Export(s.ctx, election.ExportOptions{})
	require.NoError(s.t, err)
	require.NoError(s.t, e.Dump.Validate(), "12.2")
	return e.Dump
}

func (s *Subject) load(d election.Dump, o election.ImportOptions) {
	s.t.Helper()
	before := fmt.Sprintf("%+v", d)
	require.NoError(s.t, s.portable().Import(s.ctx, d, o))
	require.Equal(s.t, before, fmt.Sprintf("%+v", d), "0.2 the dump was changed")
}

// exampleDump has something of everything.
func exampleDump() election.Dump {
	state := func(leader, leaderEpoch, partitionEpoch int32) *election.PartitionState {
		return &election.PartitionState{Leader: leader, LeaderEpoch: leaderEpoch, ISR: []int32{2, 1}, ControllerEpoch: 5, PartitionEpoch: partitionEpoch}
	}
	recovering := state(2, 9, 3)
	recovering.Recovering, recovering.ISR = true, []int32{2}
	return election.Dump{ClusterID: "SomeClusterOfTheSuite0", ControllerEpoch: 6, BrokerEpoch: 40, LastBrokerID: 1004, NextProducerID: 7000,
		Topics: []election.Topic{
			{Name: "__consumer_offsets", ID: id(1), Partitions: []election.Partition{
				{Assignment: election.Assignment{Replicas: []int32{1, 2}}, State: state(1, 4, 17)},
				{Assignment: election.Assignment{Replicas: []int32{2, 1, 3}, Adding: []int32{3}, Removing: []int32{1}}, State: recovering},
				{Assignment: election.Assignment{Replicas: []int32{1}}, State: &election.PartitionState{Leader: election.NoBroker, LeaderEpoch: 2, ISR: []int32{1}, ControllerEpoch: 6}},
			}},
			{Name: "going", ID: id(2), Deleting: true, Partitions: []election.Partition{{Assignment: election.Assignment{Replicas: []int32{1}}, State: state(1, 0, 1)}}},
			{Name: "ünïcode.and <odd> & 'quoted' \"names\"", ID: id(3), Partitions: []election.Partition{{Assignment: election.Assignment{Replicas: []int32{3}}}}},
		},
		Configs: []election.Config{
			{Entity: election.Entity{Kind: election.TopicEntity, Name: "__consumer_offsets"}, Values: map[string]string{"cleanup.policy": "compact", "segment.bytes": "104857600"}},
			{Entity: election.Entity{Kind: election.BrokerEntity}, Values: map[string]string{"log.retention.ms": "5"}},
			{Entity: election.Entity{Kind: election.BrokerEntity, Name: "1"}, Values: map[string]string{"leader.replication.throttled.rate": "<&>\u2028"}},
		}}
}

// holds sees that a member has what a dump says, and goes on above it.
func (s *Subject) holds(d *election.Dump) {
	s.t.Helper()
	c := s.member()
	clusterID, err := c.Membership().ClusterID(s.ctx, "AnotherClusterOfTheSui")
	require.NoError(s.t, err)
	require.Equal(s.t, d.ClusterID, clusterID)
	got := s.topics(c)
	require.Len(s.t, got, len(d.Topics))
	for i := range got {
		require.Equal(s.t, plain(d.Topics[i]), plain(got[i]), "12.4")
	}
	configs := s.configs(c)
	require.Len(s.t, configs, len(d.Configs))
	for i, in := range d.Configs {
		require.Equal(s.t, in.Entity, configs[i].Entity)
		require.Equal(s.t, in.Values, configs[i].Values)
		require.NotZero(s.t, configs[i].Version)
	}
	at, epoch, err := c.Election().Controller(s.ctx)
	require.NoError(s.t, err)
	require.Equal(s.t, election.NoBroker, at)
	require.Equal(s.t, d.ControllerEpoch, epoch)
	term := s.elect(c)
	require.Greater(s.t, term.Epoch(), d.ControllerEpoch)
	r, err := c.Membership().Register(s.ctx, broker(1, 9092))
	require.NoError(s.t, err)
	require.Greater(s.t, r.Epoch(), d.BrokerEpoch)
	block, err := c.Metadata().ProducerIDs(s.ctx, 1, 0)
	require.NoError(s.t, err)
	require.GreaterOrEqual(s.t, block.First, d.NextProducerID)
	newID, err := c.Membership().NewBrokerID(s.ctx)
	require.NoError(s.t, err)
	require.Greater(s.t, newID, max(d.LastBrokerID, lastReserved))
	s.writes(c, term.Epoch(), d)
	require.NoError(s.t, term.Resign(s.ctx))
	require.NoError(s.t, r.Leave(s.ctx))
	require.NoError(s.t, c.Stop(s.ctx))
}

// writes sees that what was imported is written to as before: states by the dump's partition epochs.
func (s *Subject) writes(c election.Coordination, epoch int32, d *election.Dump) {
	s.t.Helper()
	for _, t := range d.Topics {
		for n, p := range t.Partitions {
			next := election.PartitionState{Leader: 1, LeaderEpoch: 100, ISR: []int32{1}, ControllerEpoch: epoch, PartitionEpoch: -1}
			if p.State != nil {
				next.PartitionEpoch = p.State.PartitionEpoch
				stale := next
				stale.PartitionEpoch--
				res, err := c.Metadata().UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: t.Name, Partition: int32(n), State: stale}})
				require.NoError(s.t, err)
				require.ErrorIs(s.t, res[0].Err, election.ErrConflict, "12.4 a stale partition epoch")
			}
			res, err := c.Metadata().UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: t.Name, Partition: int32(n), State: next}})
			require.NoError(s.t, err)
			require.NoError(s.t, res[0].Err)
			require.Equal(s.t, next.PartitionEpoch+1, res[0].PartitionEpoch)
		}
	}
}

// plain makes lists that mean the same look the same.
func plain(t election.Topic) election.Topic {
	t = cloneTopic(t)
	tidy := func(ids *[]int32) {
		if len(*ids) == 0 {
			*ids = nil
		}
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		tidy(&p.Adding)
		tidy(&p.Removing)
		if p.State != nil {
			tidy(&p.State.ISR)
		}
	}
	return t
}

// sameDump sees that two dumps say the same; epochs and ids may be higher in the second.
func sameDump(t TB, want, got election.Dump) {
	require.Equal(t, want.ClusterID, got.ClusterID)
	require.GreaterOrEqual(t, got.ControllerEpoch, want.ControllerEpoch)
	require.GreaterOrEqual(t, got.BrokerEpoch, want.BrokerEpoch)
	require.GreaterOrEqual(t, got.LastBrokerID, want.LastBrokerID)
	require.GreaterOrEqual(t, got.NextProducerID, want.NextProducerID)
	require.Len(t, got.Topics, len(want.Topics))
	for i := range want.Topics {
		require.Equal(t, plain(want.Topics[i]), plain(got.Topics[i]))
	}
	require.Len(t, got.Configs, len(want.Configs))
	for i := range want.Configs {
		require.Equal(t, want.Configs[i], got.Configs[i])
	}
}

func checkExport(t TB, s *Subject) {
	_, err := s.portable().Export(s.ctx, election.ExportOptions{})
	require.ErrorIs(t, err, election.ErrEmpty, "12.3")
	c := s.member()
	clusterID, err := c.Membership().ClusterID(s.ctx, "")
	require.NoError(t, err)
	term := s.elect(c)
	in := newTopic("a", 1, 3)
	in.Config = map[string]string{"k": "v"}
	s.create(c, term.Epoch(), in, newTopic("b", 2, 1), newTopic("gone", 3, 1))
	update := func(partition, at int32) {
		res, err := c.Metadata().UpdatePartitions(s.ctx, term.Epoch(), []election.PartitionUpdate{{Topic: "a", Partition: partition, State: election.PartitionState{Leader: 1,
			LeaderEpoch: 7, ISR: []int32{1, 2}, ControllerEpoch: term.Epoch(), PartitionEpoch: at}}})
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
	}
	for at := range int32(4) {
		update(2, at-1)
	}
	require.NoError(t, oneError(c.Metadata().MarkDeleted(s.ctx, term.Epoch(), []string{"b", "gone"})))
	require.NoError(t, oneError(c.Metadata().RemoveTopics(s.ctx, term.Epoch(), []string{"gone"})))
	require.NoError(t, oneError(c.Metadata().SetConfigs(s.ctx, term.Epoch(), []election.Config{{Entity: election.Entity{Kind: election.BrokerEntity}, Values: map[string]string{"x": "y"}}})))
	block, err := c.Metadata().ProducerIDs(s.ctx, 1, 0)
	require.NoError(t, err)
	newID, err := c.Membership().NewBrokerID(s.ctx)
	require.NoError(t, err)
	r, err := c.Membership().Register(s.ctx, broker(1, 9092))
	require.NoError(t, err)

	_, err = s.portable().Export(s.ctx, election.ExportOptions{})
	require.ErrorIs(t, err, election.ErrInUse, "12.1 a living broker")
	require.ErrorIs(t, s.portable().Import(s.ctx, exampleDump(), election.ImportOptions{Replace: true}), election.ErrInUse, "12.6 a living broker")
	living, err := s.portable().Export(s.ctx, election.ExportOptions{Living: true})
	require.NoError(t, err, "12.1")
	topics := s.topics(c)
	epoch := r.Epoch()
	require.NoError(t, r.Leave(s.ctx))
	require.NoError(t, term.Resign(s.ctx))
	require.NoError(t, c.Stop(s.ctx))

	d := s.export()
	sameDump(t, living.Dump, d)
	require.Equal(t, clusterID, d.ClusterID)
	require.Equal(t, term.Epoch(), d.ControllerEpoch)
	require.GreaterOrEqual(t, d.BrokerEpoch, epoch, "12.2")
	require.GreaterOrEqual(t, d.NextProducerID, block.First+int64(block.Count), "12.2")
	require.GreaterOrEqual(t, d.LastBrokerID, newID, "12.2")
	require.Len(t, d.Topics, 2)
	for i := range topics {
		require.Equal(t, plain(topics[i]), plain(d.Topics[i]))
	}
	require.Equal(t, []election.Config{{Entity: election.Entity{Kind: election.TopicEntity, Name: "a"}, Values: map[string]string{"k": "v"}},
		{Entity: election.Entity{Kind: election.BrokerEntity}, Values: map[string]string{"x": "y"}}}, d.Configs)
}

func checkImport(t TB, s *Subject) {
	d := exampleDump()
	s.load(d, election.ImportOptions{})
	sameDump(t, d, s.export())
	s.holds(&d)
}

// checkImports makes one state after the other take the place of the one before.
func checkImports(t TB, s *Subject) {
	random := rand.New(rand.NewPCG(7, 8))
	d := election.Dump{ClusterID: "SomeClusterOfTheSuite0"}
	for step := range 6 {
		d = randomDump(random, d, byte(step))
		s.load(d, election.ImportOptions{Replace: true})
		got := s.export()
		sameDump(t, d, got)
		d = got
	}
	s.holds(&d)
}

// randomDump makes a later state of the same cluster.
func randomDump(random *rand.Rand, before election.Dump, step byte) election.Dump {
	d := election.Dump{ClusterID: before.ClusterID, ControllerEpoch: before.ControllerEpoch + random.Int32N(3), BrokerEpoch: before.BrokerEpoch + random.Int64N(9),
		NextProducerID: before.NextProducerID + random.Int64N(3)*1000, LastBrokerID: before.LastBrokerID}
	if random.IntN(2) == 0 {
		d.LastBrokerID = max(d.LastBrokerID, lastReserved) + 1 + random.Int32N(3)
	}
	topics := map[string]election.Topic{}
	for _, t := range before.Topics {
		if random.IntN(4) > 0 { // else it was deleted
			topics[t.Name] = cloneTopic(t)
		}
	}
	for n := range byte(3) {
		name := fmt.Sprintf("t%d", random.IntN(9))
		if _, ok := topics[name]; !ok {
			topics[name] = election.Topic{Name: name, ID: election.TopicID{0: step + 1, 1: n, 15: 1}, Deleting: random.IntN(4) == 0}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		for range random.IntN(3) + max(0, 1-len(t.Partitions)) {
			t.Partitions = append(t.Partitions, election.Partition{Assignment: election.Assignment{Replicas: []int32{random.Int32N(3), 3}}})
		}
		for n := range t.Partitions {
			p := &t.Partitions[n]
			if p.State == nil && random.IntN(3) > 0 {
				p.State = &election.PartitionState{PartitionEpoch: -1}
			}
			if p.State != nil {
				p.State = &election.PartitionState{Leader: random.Int32N(4) - 1, LeaderEpoch: p.State.LeaderEpoch + random.Int32N(3), ISR: []int32{3},
					ControllerEpoch: random.Int32N(d.ControllerEpoch + 1), Recovering: random.IntN(5) == 0, PartitionEpoch: p.State.PartitionEpoch + 1 + random.Int32N(30)}
			}
		}
		d.Topics = append(d.Topics, t)
		if random.IntN(2) == 0 {
			d.Configs = append(d.Configs, election.Config{Entity: election.Entity{Kind: election.TopicEntity, Name: name}, Values: map[string]string{"step": fmt.Sprint(step)}})
		}
	}
	for _, name := range []string{"", "1", "2"} {
		if random.IntN(2) == 0 {
			d.Configs = append(d.Configs, election.Config{Entity: election.Entity{Kind: election.BrokerEntity, Name: name}, Values: map[string]string{"step": fmt.Sprint(step)}})
		}
	}
	return d
}

// checkImportStopped stops imports, each a little later than the one before, until one gets through.
func checkImportStopped(t TB, s *Subject) {
	d := exampleDump()
	for cut := 0; ; cut++ {
		require.Less(t, cut, 1000, "the import never ends")
		ctx, cancel := context.WithCancel(s.ctx)
		told := 0
		err := s.portable().Import(ctx, d, election.ImportOptions{Progress: func(int, int) {
			if told++; told > cut {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			break
		}
		_, err = s.portable().Export(s.ctx, election.ExportOptions{})
		require.True(t, is(err, election.ErrEmpty, election.ErrUnfinished), "12.5 after an import that failed: %v", err)
		if is(err, election.ErrUnfinished) {
			c := s.cluster.Member()
			require.ErrorIs(t, c.Start(s.ctx), election.ErrUnfinished, "12.5")
			require.NoError(t, c.Stop(s.ctx))
		}
		require.NoError(t, s.portable().Import(s.ctx, d, election.ImportOptions{DryRun: true}), "12.5")
	}
	sameDump(t, d, s.export())
	s.holds(&d)
}

func checkImportRefused(t TB, s *Subject) {
	d := exampleDump()
	refused := func(why error, in election.Dump, o election.ImportOptions) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			o.DryRun = dry
			require.ErrorIs(t, s.portable().Import(s.ctx, in, o), why)
		}
	}
	invalid := exampleDump()
	invalid.Topics[0].Partitions[0].Replicas = nil
	refused(election.ErrInvalid, invalid, election.ImportOptions{})
	require.NoError(t, s.portable().Import(s.ctx, d, election.ImportOptions{DryRun: true}))
	_, err := s.portable().Export(s.ctx, election.ExportOptions{})
	require.ErrorIs(t, err, election.ErrEmpty, "12.7 a dry run changes nothing")

	s.load(d, election.ImportOptions{})
	later := exampleDump()
	later.ControllerEpoch, later.BrokerEpoch, later.LastBrokerID, later.NextProducerID = 9, 41, 1009, 9000
	later.Topics[0].Partitions[0].State.LeaderEpoch++
	s.load(later, election.ImportOptions{Replace: true})
	before := s.export()
	refused(election.ErrNotEmpty, before, election.ImportOptions{})
	refused(election.ErrInvalid, invalid, election.ImportOptions{Replace: true})
	for _, change := range []func(*election.Dump){
		func(d *election.Dump) { d.ClusterID = "AnotherClusterOfTheSui" },
		func(d *election.Dump) { d.ControllerEpoch-- },
		func(d *election.Dump) { d.LastBrokerID-- },
		func(d *election.Dump) { d.NextProducerID-- },
		func(d *election.Dump) { d.Topics[0].Partitions = d.Topics[0].Partitions[:2] },
		func(d *election.Dump) { d.Topics[0].Partitions[0].State.LeaderEpoch-- },
		func(d *election.Dump) { d.Topics[0].Partitions[0].State.PartitionEpoch-- },
		func(d *election.Dump) { d.Topics[0].Partitions[0].State = nil },
	} {
		in := before
		in.Topics = slices.Clone(before.Topics)
		in.Topics[0] = cloneTopic(in.Topics[0])
		change(&in)
		refused(election.ErrConflict, in, election.ImportOptions{Replace: true})
	}
	sameDump(t, before, s.export())
	s.holds(&before)
}
