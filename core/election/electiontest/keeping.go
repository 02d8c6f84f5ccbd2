package electiontest

import (
	"maps"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Clauses 0 and 4 to 10: what is kept.

func checkNothingShared(t TB, s *Subject) {
	c := s.member()
	term := s.elect(c)
	in := newTopic("a", 1, 2)
	in.Config = map[string]string{"k": "v"}
	s.create(c, term.Epoch(), in)
	isr := []int32{1, 2}
	_, err := c.Metadata().UpdatePartitions(s.ctx, term.Epoch(), []election.PartitionUpdate{{Topic: "a", State: election.PartitionState{ISR: isr, PartitionEpoch: -1}}})
	require.NoError(t, err)
	b := broker(1, 9092)
	s.register(c, b)
	entity := election.Entity{Kind: election.TopicEntity, Name: "a"}
	topics, configs := s.topics(c), s.configs(c, entity)
	for i := range topics { // the expectation must not be what is shared
		topics[i] = cloneTopic(topics[i])
	}
	for i := range configs {
		configs[i].Values = maps.Clone(configs[i].Values)
	}
	brokers, err := c.Membership().Brokers(s.ctx)
	require.NoError(t, err)
	for i := range brokers {
		brokers[i].Endpoints = slices.Clone(brokers[i].Endpoints)
	}

	in.Partitions[0].Replicas[0], in.Config["k"], isr[0], b.Endpoints[0].Host = 99, "changed", 99, "changed"
	require.Equal(t, topics, s.topics(c), "what was given was kept")
	require.Equal(t, configs, s.configs(c, entity), "what was given was kept")

	again, conf := s.topics(c), s.configs(c, entity)
	again[0].Partitions[0].Replicas[0], again[0].Partitions[0].State.ISR[0], conf[0].Values["k"] = 98, 98, "changed"
	again[0].Partitions[1].Replicas = nil
	all, err := c.Membership().Brokers(s.ctx)
	require.NoError(t, err)
	require.Equal(t, brokers, all)
	all[0].Endpoints[0].Host = "changed"
	require.Equal(t, topics, s.topics(c), "what was returned is shared")
	require.Equal(t, configs, s.configs(c, entity), "what was returned is shared")
	all, err = c.Membership().Brokers(s.ctx)
	require.NoError(t, err)
	require.Equal(t, brokers, all)
}

// fill writes some of everything.
func (s *Subject) fill(c election.Coordination, epoch int32) {
	s.t.Helper()
	a, b := newTopic("a", 1, 3), newTopic("b.c-1", 2, 1)
	a.Config = map[string]string{"retention.ms": "1000", "": "ü\u2028\x00\"<"}
	a.Partitions[1] = election.Assignment{Replicas: []int32{3, 1, 2}, Adding: []int32{3}, Removing: []int32{2}}
	s.create(c, epoch, a, b, newTopic("gone", 3, 1))
	md := c.Metadata()
	res, err := md.UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{
		{Topic: "a", Partition: 0, State: election.PartitionState{Leader: 2, LeaderEpoch: 0, ISR: []int32{2, 1}, ControllerEpoch: epoch, PartitionEpoch: -1}},
		{Topic: "a", Partition: 2, State: election.PartitionState{Leader: election.NoBroker, LeaderEpoch: 5, ISR: []int32{7}, ControllerEpoch: epoch, Recovering: true, PartitionEpoch: -1}},
	})
	require.NoError(s.t, err)
	for _, r := range res {
		require.NoError(s.t, r.Err)
	}
	for _, name := range []string{"gone", "b.c-1"} {
		require.NoError(s.t, oneError(md.MarkDeleted(s.ctx, epoch, []string{name})))
	}
	require.NoError(s.t, oneError(md.RemoveTopics(s.ctx, epoch, []string{"gone"})))
	for _, e := range []election.Entity{{Kind: election.BrokerEntity, Name: "7"}, {Kind: election.BrokerEntity}} {
		require.NoError(s.t, oneError(md.SetConfigs(s.ctx, epoch, []election.Config{{Entity: e, Values: map[string]string{"x": "y" + e.Name}}})))
	}
}

func checkDurable(t TB, s *Subject) {
	c := s.member()
	s.fill(c, s.elect(c).Epoch())
	topics, configs := s.topics(c), s.configs(c)
	require.Len(t, topics, 2)
	require.Len(t, configs, 3)
	for range 2 {
		c = s.again(c)
		require.Equal(t, topics, s.topics(c))
		require.Equal(t, configs, s.configs(c))
	}
}

func checkSeenElsewhere(t TB, s *Subject) {
	a, b := s.member(), s.member()
	s.fill(a, s.elect(a).Epoch())
	require.Equal(t, s.topics(a), s.topics(b))
	require.Equal(t, s.configs(a), s.configs(b))
}

func checkText(t TB, s *Subject) {
	c := s.member()
	epoch := s.elect(c).Epoch()
	bad := "a\xff"
	for _, in := range []election.NewTopic{
		{Name: bad, ID: id(1), Partitions: assignments(1, 1)},
		{Name: "a", ID: id(1), Partitions: assignments(1, 1), Config: map[string]string{"k": bad}},
		{Name: "a", ID: id(1), Partitions: assignments(1, 1), Config: map[string]string{bad: "v"}},
	} {
		require.ErrorIs(t, oneError(c.Metadata().CreateTopics(s.ctx, epoch, []election.NewTopic{in})), election.ErrInvalid)
	}
	require.ErrorIs(t, oneError(c.Metadata().SetConfigs(s.ctx, epoch, []election.Config{
		{Entity: election.Entity{Kind: election.BrokerEntity}, Values: map[string]string{"k": bad}}})), election.ErrInvalid)
	require.Empty(t, s.topics(c))
	require.Empty(t, s.configs(c))
}

func checkReads(t TB, s *Subject) {
	c := s.member()
	require.Empty(t, s.topics(c))
	require.Empty(t, s.configs(c))
	epoch := s.elect(c).Epoch()
	s.create(c, epoch, newTopic("b", 2, 1), newTopic("a", 1, 1), newTopic("c", 3, 1))
	names := func(topics []election.Topic) (all []string) {
		for _, t := range topics {
			all = append(all, t.Name)
		}
		return all
	}
	require.Equal(t, []string{"a", "b", "c"}, names(s.topics(c)))
	require.Equal(t, []string{"a", "c"}, names(s.topics(c, "c", "nothing", "a")))
	require.Empty(t, s.topics(c, "nothing"))
	entities := []election.Entity{{Kind: election.TopicEntity, Name: "b"}, {Kind: election.BrokerEntity, Name: "9"}, {Kind: election.BrokerEntity}}
	got := s.configs(c, entities...)
	require.Len(t, got, 3)
	for i, e := range entities {
		require.Equal(t, e, got[i].Entity)
		require.Empty(t, got[i].Values, "4.2")
		require.Zero(t, got[i].Version, "4.2")
	}
}

func checkCreateTopics(t TB, s *Subject) {
	c := s.member()
	md, epoch := c.Metadata(), s.elect(c).Epoch()
	conf := newTopic("conf", 2, 1)
	conf.Config = map[string]string{"k": "v"}
	errs, err := md.CreateTopics(s.ctx, epoch, []election.NewTopic{
		newTopic("a", 1, 3), newTopic("a", 9, 1), conf,
		{Name: "", ID: id(3), Partitions: assignments(1, 1)}, {Name: "noid", Partitions: assignments(1, 1)}, {Name: "none", ID: id(4)},
	})
	require.NoError(t, err)
	require.Len(t, errs, 6)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], election.ErrTopicExists, "5.1 twice in one call")
	require.NoError(t, errs[2])
	for _, e := range errs[3:] {
		require.ErrorIs(t, e, election.ErrInvalid, "5.3")
	}
	topics := s.topics(c)
	require.Len(t, topics, 2)
	require.Equal(t, id(1), topics[0].ID)
	require.Len(t, topics[0].Partitions, 3)
	for _, p := range topics[0].Partitions {
		require.Nil(t, p.State)
		require.Equal(t, []int32{1, 2}, p.Replicas)
	}
	require.Equal(t, map[string]string{"k": "v"}, s.configs(c, election.Entity{Kind: election.TopicEntity, Name: "conf"})[0].Values)
	require.ErrorIs(t, oneError(md.CreateTopics(s.ctx, epoch, []election.NewTopic{newTopic("a", 5, 1)})), election.ErrTopicExists, "5.1")

	// 5.1 and 5.2 with a topic that is deleted and comes again.
	require.NoError(t, oneError(md.MarkDeleted(s.ctx, epoch, []string{"conf"})))
	require.ErrorIs(t, oneError(md.CreateTopics(s.ctx, epoch, []election.NewTopic{newTopic("conf", 6, 1)})), election.ErrTopicExists, "5.1 marked for deletion")
	require.NoError(t, oneError(md.RemoveTopics(s.ctx, epoch, []string{"conf"})))
	s.create(c, epoch, newTopic("conf", 6, 1))
	require.Empty(t, s.configs(c, election.Entity{Kind: election.TopicEntity, Name: "conf"})[0].Values, "5.2")
	require.Equal(t, id(6), s.topics(c, "conf")[0].ID)
	require.False(t, s.topics(c, "conf")[0].Deleting)

	errs, err = md.CreateTopics(s.ctx, epoch, nil)
	require.NoError(t, err)
	require.Empty(t, errs)
}

func checkSetAssignments(t TB, s *Subject) {
	c := s.member()
	md, epoch := c.Metadata(), s.elect(c).Epoch()
	s.create(c, epoch, newTopic("a", 1, 2))
	_, err := md.UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: "a", Partition: 1, State: election.PartitionState{Leader: 1, ISR: []int32{1}, PartitionEpoch: -1}}})
	require.NoError(t, err)
	before := s.topics(c)
	errs, err := md.SetAssignments(s.ctx, epoch, []election.TopicAssignment{
		{Topic: "nothing", ID: id(1), Partitions: assignments(2, 1)}, {Topic: "a", ID: id(2), Partitions: assignments(2, 1)},
		{Topic: "a", ID: id(1), Partitions: assignments(1, 1)}})
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], election.ErrUnknownTopic)
	require.ErrorIs(t, errs[1], election.ErrUnknownTopic, "another topic of that name")
	require.ErrorIs(t, errs[2], election.ErrInvalid, "6.1 partitions never go away")
	require.Equal(t, before, s.topics(c))

	moved := []election.Assignment{{Replicas: []int32{5}}, {Replicas: []int32{3, 1}, Adding: []int32{3}, Removing: []int32{1}}, {Replicas: []int32{9}}}
	require.NoError(t, oneError(md.SetAssignments(s.ctx, epoch, []election.TopicAssignment{{Topic: "a", ID: id(1), Partitions: moved}})))
	now := s.topics(c)[0]
	require.Len(t, now.Partitions, 3)
	for i, p := range now.Partitions {
		require.Equal(t, moved[i].Replicas, p.Replicas)
		require.Equal(t, len(moved[i].Adding), len(p.Adding))
		require.Equal(t, len(moved[i].Removing), len(p.Removing))
	}
	require.Equal(t, before[0].Partitions[1].State, now.Partitions[1].State, "6.2")
	require.Nil(t, now.Partitions[2].State)
}

func checkUpdatePartitions(t TB, s *Subject) {
	c := s.member()
	md, epoch := c.Metadata(), s.elect(c).Epoch()
	s.create(c, epoch, newTopic("a", 1, 2))
	update := func(topic string, partition, at, leader int32) (int32, error) {
		res, err := md.UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: topic, Partition: partition,
			State: election.PartitionState{Leader: leader, LeaderEpoch: leader, ISR: []int32{leader}, ControllerEpoch: epoch, PartitionEpoch: at}}})
		require.NoError(t, err)
		require.Len(t, res, 1)
		return res[0].PartitionEpoch, res[0].Err
	}
	_, err := update("a", 0, 0, 1)
	require.ErrorIs(t, err, election.ErrConflict, "7.2 there is no state yet")
	at, err := update("a", 0, -1, 1)
	require.NoError(t, err)
	require.Zero(t, at, "7.1")
	_, err = update("a", 0, -1, 2)
	require.ErrorIs(t, err, election.ErrConflict, "7.2 there is a state")
	for n := range int32(3) {
		at, err = update("a", 0, n, 10+n)
		require.NoError(t, err)
		require.Equal(t, n+1, at, "7.1")
		_, err = update("a", 0, n, 99)
		require.ErrorIs(t, err, election.ErrConflict, "7.2")
		st := s.topics(c)[0].Partitions[0].State
		require.Equal(t, election.PartitionState{Leader: 10 + n, LeaderEpoch: 10 + n, ISR: []int32{10 + n}, ControllerEpoch: epoch, PartitionEpoch: n + 1}, *st, "7.3")
	}
	_, err = update("nothing", 0, -1, 1)
	require.ErrorIs(t, err, election.ErrUnknownTopic)
	for _, n := range []int32{-1, 2, 1 << 30} {
		_, err = update("a", n, -1, 1)
		require.ErrorIs(t, err, election.ErrUnknownPartition)
	}
	// Items of one call see one another.
	st := election.PartitionState{Leader: 1, ISR: []int32{1}, PartitionEpoch: -1}
	next := st
	next.PartitionEpoch, next.Leader = 0, 2
	res, err := md.UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: "a", Partition: 1, State: st}, {Topic: "a", Partition: 1, State: st}, {Topic: "a", Partition: 1, State: next}})
	require.NoError(t, err)
	require.NoError(t, res[0].Err)
	require.ErrorIs(t, res[1].Err, election.ErrConflict)
	require.NoError(t, res[2].Err)
	require.Equal(t, int32(2), s.topics(c)[0].Partitions[1].State.Leader)
}

func checkRace(t TB, s *Subject) {
	c := s.member()
	md, epoch := c.Metadata(), s.elect(c).Epoch()
	s.create(c, epoch, newTopic("a", 1, 1))
	for at := int32(-1); at < 5; at++ {
		var won sync.Map
		var wg sync.WaitGroup
		for i := range int32(4) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				res, err := md.UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: "a", State: election.PartitionState{Leader: i, PartitionEpoch: at}}})
				if err == nil && res[0].Err == nil {
					won.Store(i, true)
				}
			}()
		}
		wg.Wait()
		winners := 0
		won.Range(func(leader, _ any) bool {
			winners++
			require.Equal(t, leader, s.topics(c)[0].Partitions[0].State.Leader)
			return true
		})
		require.Equal(t, 1, winners, "writers who all gave partition epoch %d", at)
	}
}

func checkDeletion(t TB, s *Subject) {
	c := s.member()
	epoch := s.elect(c).Epoch()
	s.create(c, epoch, newTopic("a", 1, 1), newTopic("b", 2, 1))
	errs, err := c.Metadata().MarkDeleted(s.ctx, epoch, []string{"a", "nothing", "a"})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], election.ErrUnknownTopic, "8.1")
	require.NoError(t, errs[2], "8.1 marked again")
	c = s.again(c)
	epoch = s.elect(c).Epoch()
	topics := s.topics(c)
	require.True(t, topics[0].Deleting, "a mark survives")
	require.False(t, topics[1].Deleting)
	errs, err = c.Metadata().RemoveTopics(s.ctx, epoch, []string{"a", "b", "nothing", "a"})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], election.ErrInvalid, "8.3 without a mark")
	require.NoError(t, errs[2], "8.3 what isn't there")
	require.NoError(t, errs[3], "8.3 again")
	require.Len(t, s.topics(c), 1)
}

func checkConfigs(t TB, s *Subject) {
	c := s.member()
	md, epoch := c.Metadata(), s.elect(c).Epoch()
	s.create(c, epoch, newTopic("a", 1, 1))
	seen := map[int64]bool{0: true}
	for _, e := range []election.Entity{{Kind: election.TopicEntity, Name: "a"}, {Kind: election.BrokerEntity, Name: "1"}, {Kind: election.BrokerEntity}} {
		clear(seen)
		seen[0] = true
		version := int64(0)
		for _, values := range []map[string]string{{"k": "1"}, {"k": "2", "other": ""}, {"other": "x"}} {
			require.NoError(t, oneError(md.SetConfigs(s.ctx, epoch, []election.Config{{Entity: e, Values: values, Version: version}})))
			got := s.configs(c, e)[0]
			require.Equal(t, values, got.Values)
			require.False(t, seen[got.Version], "9.1 a version of its own")
			seen[got.Version] = true
			require.ErrorIs(t, oneError(md.SetConfigs(s.ctx, epoch, []election.Config{{Entity: e, Values: values, Version: version}})), election.ErrConflict, "9.1")
			version = got.Version
		}
		c = s.again(c)
		md, epoch = c.Metadata(), s.elect(c).Epoch()
		require.Equal(t, version, s.configs(c, e)[0].Version, "after a restart")
		require.NoError(t, oneError(md.SetConfigs(s.ctx, epoch, []election.Config{{Entity: e, Version: version}})))
		got := s.configs(c, e)[0]
		require.Empty(t, got.Values, "9.3")
		require.Zero(t, got.Version, "9.3")
	}
	require.Empty(t, s.configs(c))
	require.ErrorIs(t, oneError(md.SetConfigs(s.ctx, epoch, []election.Config{
		{Entity: election.Entity{Kind: election.TopicEntity, Name: "nothing"}, Values: map[string]string{"k": "v"}}})), election.ErrUnknownTopic, "9.2")
}

func checkProducerIDs(t TB, s *Subject) {
	c := s.member()
	given := map[int64]bool{}
	for range 3 {
		type answer struct {
			block election.ProducerIDBlock
			err   error
		}
		answers := make(chan answer, 4)
		for i := range int32(4) {
			go func() {
				block, err := c.Metadata().ProducerIDs(s.ctx, i, 0)
				answers <- answer{block, err}
			}()
		}
		for range 4 {
			a := <-answers
			require.NoError(t, a.err)
			require.Positive(t, a.block.Count)
			require.GreaterOrEqual(t, a.block.First, int64(0))
			for n := range int64(a.block.Count) {
				require.False(t, given[a.block.First+n], "id %d was given twice", a.block.First+n)
				given[a.block.First+n] = true
			}
		}
		c = s.again(c)
	}
	// 10.2
	for _, from := range []int64{1 << 40, 5, 0} {
		block, err := c.Metadata().ProducerIDs(s.ctx, 1, from)
		require.NoError(t, err)
		require.GreaterOrEqual(t, block.First, int64(1<<40))
		require.False(t, given[block.First])
		given[block.First] = true
	}
	_, err := c.Metadata().ProducerIDs(s.ctx, 1, -1)
	require.ErrorIs(t, err, election.ErrInvalid)
}
