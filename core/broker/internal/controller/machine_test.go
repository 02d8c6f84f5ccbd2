package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/election"
)

// TestAlterPartition has one case for each of Kafka's checks, in their order (KafkaController.processAlterPartition).
func TestAlterPartition(t *testing.T) {
	type request = kmsg.AlterPartitionRequest
	type wish = kmsg.AlterPartitionRequestTopicPartition
	for name, tc := range map[string]struct {
		change func(*request, *wish)
		want   *kerr.Error // nil: it goes well
		whole  bool        // the error is the request's
	}{
		"shrink":                          {func(_ *request, w *wish) { w.NewISR = []int32{0} }, nil, false},
		"the same again":                  {func(_ *request, w *wish) { w.PartitionEpoch-- }, nil, false},
		"a broker that isn't there":       {func(r *request, _ *wish) { r.BrokerID = 9 }, kerr.StaleBrokerEpoch, true},
		"an earlier registration":         {func(r *request, _ *wish) { r.BrokerEpoch-- }, kerr.StaleBrokerEpoch, true},
		"an unknown topic":                {func(r *request, _ *wish) { r.Topics[0].TopicID[5] = 1 }, kerr.UnknownTopicID, false},
		"an unknown partition":            {func(_ *request, w *wish) { w.Partition = 7 }, kerr.UnknownTopicOrPartition, false},
		"a negative partition":            {func(_ *request, w *wish) { w.Partition = -1 }, kerr.UnknownTopicOrPartition, false},
		"a leader epoch ahead of ours":    {func(_ *request, w *wish) { w.LeaderEpoch++ }, kerr.NotController, false},
		"a partition epoch ahead of ours": {func(_ *request, w *wish) { w.PartitionEpoch++ }, kerr.NotController, false},
		"a leader epoch behind ours":      {func(_ *request, w *wish) { w.LeaderEpoch-- }, kerr.FencedLeaderEpoch, false},
		"not the leader":                  {func(r *request, _ *wish) { r.BrokerID, r.BrokerEpoch = 1, 2 }, kerr.InvalidRequest, false},
		"a partition epoch behind ours":   {func(_ *request, w *wish) { w.PartitionEpoch--; w.NewISR = []int32{0} }, kerr.InvalidUpdateVersion, false},
		"nobody":                          {func(_ *request, w *wish) { w.NewISR = nil }, kerr.InvalidRequest, false},
		"without the leader":              {func(_ *request, w *wish) { w.NewISR = []int32{1} }, kerr.InvalidRequest, false},
		"somebody twice":                  {func(_ *request, w *wish) { w.NewISR = []int32{0, 1, 1} }, kerr.InvalidRequest, false},
		"somebody without a replica":      {func(_ *request, w *wish) { w.NewISR = []int32{0, 3} }, kerr.InvalidRequest, false},
		"recovering with others":          {func(_ *request, w *wish) { w.LeaderRecoveryState = 1 }, kerr.InvalidRequest, false},
		"recovering when it isn't":        {func(_ *request, w *wish) { w.LeaderRecoveryState = 1; w.NewISR = []int32{0} }, kerr.InvalidRequest, false},
		"somebody who is dead":            {func(_ *request, w *wish) { w.NewISR = []int32{0, 1, 2} }, kerr.IneligibleReplica, false},
		"somebody who is dead, version 1": {func(r *request, w *wish) { r.Version = 1; w.NewISR = []int32{0, 1, 2} }, kerr.OperationNotAttempted, false},
		"with the epochs of version 3": {func(r *request, w *wish) {
			r.Version = 3
			w.NewEpochISR = []kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{{BrokerID: 0, BrokerEpoch: -1}}
		}, nil, false},
		"an unknown topic, by name, before": {func(r *request, _ *wish) { r.Version = 1; r.Topics[0].Topic = "nothing" }, kerr.UnknownTopicOrPartition, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, 0, 1, 2, 3)
			s.create("a", []int32{0, 1, 2})
			s.down(2)
			s.down(3)
			before := s.state("a", 0)
			req := &request{Version: 2, BrokerID: 0, BrokerEpoch: 1, Topics: []kmsg.AlterPartitionRequestTopic{{Topic: "a", TopicID: s.topics()["a"].ID,
				Partitions: []wish{{LeaderEpoch: before.LeaderEpoch, PartitionEpoch: before.PartitionEpoch, NewISR: []int32{1, 0}}}}}}
			tc.change(req, &req.Topics[0].Partitions[0])
			c := &AlterPartition{Request: req, Response: req.ResponseKind().(*kmsg.AlterPartitionResponse)}
			s.run(c)
			if tc.whole {
				require.Equal(t, tc.want.Code, c.Response.ErrorCode)
				return
			}
			require.Zero(t, c.Response.ErrorCode)
			got, now := c.Response.Topics[0].Partitions[0], s.state("a", 0)
			if tc.want != nil {
				require.Equal(t, tc.want.Code, got.ErrorCode)
				require.Equal(t, before, now, "refused and done all the same")
				return
			}
			require.Zero(t, got.ErrorCode)
			require.Equal(t, now.ISR, got.ISR)
			require.Equal(t, now.PartitionEpoch, got.PartitionEpoch)
			require.Equal(t, before.LeaderEpoch, now.LeaderEpoch, "the leader epoch stays")
			s.check()
		})
	}
}

// TestOfflineLogDir fails a broker's log directory: its replicas lead no more, and their deletion waits.
func TestOfflineLogDir(t *testing.T) {
	s := newSim(t, 0, 1)
	s.create("a", []int32{0, 1})
	s.brokers[0].failed = true
	s.takeOver() // a controller tells everything again, and is told of the failure
	st := s.state("a", 0)
	require.Equal(t, int32(1), st.Leader)
	require.Equal(t, []int32{1}, st.ISR)
	known, _ := s.brokers[1].cache.Snapshot().Topic("a")
	require.Equal(t, []int32{0}, known.Partitions[0].Offline)
	s.run(&DeleteTopics{Topics: []string{"a"}})
	require.Len(t, s.topics(), 1, "a replica that can't go")
	s.down(0)
	s.up(0)
	require.Empty(t, s.topics(), "it went when its broker came back")
}

func TestDeletionDisabled(t *testing.T) {
	s := newSim(t, 0)
	s.rules.DeleteTopics = false
	s.takeOver()
	s.create("a", []int32{0})
	c := &DeleteTopics{Topics: []string{"a"}}
	s.run(c)
	require.ErrorIs(t, c.Results[0], kerr.TopicDeletionDisabled)
	s.check()
	require.Len(t, s.topics(), 1)
}

// TestElectLeaders has the answers of KIP-460.
func TestElectLeaders(t *testing.T) {
	s := newSim(t, 0, 1)
	s.create("a", []int32{0, 1})
	elect := func(unclean bool, p int32) error {
		c := &ElectLeaders{Unclean: unclean, Partitions: []PartitionID{{"a", p}}}
		s.run(c)
		s.check()
		return c.Results[0]
	}
	require.ErrorIs(t, elect(false, 0), kerr.ElectionNotNeeded)
	require.ErrorIs(t, elect(true, 0), kerr.ElectionNotNeeded)
	require.ErrorIs(t, elect(false, 1), kerr.UnknownTopicOrPartition)
	s.down(0)
	require.ErrorIs(t, elect(false, 0), kerr.PreferredLeaderNotAvailable)
	s.up(0)
	require.ErrorIs(t, elect(false, 0), kerr.PreferredLeaderNotAvailable, "it is back, but not in sync")
	s.isr("a", 0, 0, 1)
	require.NoError(t, elect(false, 0))
	require.Equal(t, int32(0), s.state("a", 0).Leader)
	s.down(1)
	s.up(1)
	s.down(0)
	require.Equal(t, int32(-1), s.state("a", 0).Leader)
	require.NoError(t, elect2(s, true))
	st := s.state("a", 0)
	require.Equal(t, int32(1), st.Leader)
	require.True(t, st.Recovering)
	s.down(1)
	c := &ElectLeaders{Unclean: true, Partitions: []PartitionID{{"a", 0}}}
	s.run(c)
	require.ErrorIs(t, c.Results[0], kerr.EligibleLeadersNotAvailable)
}

// elect2 elects without checking what an unclean election may break.
func elect2(s *sim, unclean bool) error {
	c := &ElectLeaders{Unclean: unclean, Partitions: []PartitionID{{"a", 0}}}
	s.run(c)
	return c.Results[0]
}

// TestReassignment goes through a move, one on top of another, and one that is taken back.
func TestReassignment(t *testing.T) {
	s := newSim(t, 0, 1, 2, 3)
	s.create("a", []int32{0, 1})
	move := func(target ...int32) error {
		c := &AlterReassignments{Partitions: []Reassignment{{PartitionID{"a", 0}, target}}}
		s.run(c)
		s.check()
		return c.Results[0]
	}
	ongoing := func() []OngoingReassignment {
		c := &ListReassignments{}
		s.run(c)
		return c.Ongoing
	}
	require.ErrorIs(t, move(), kerr.NoReassignmentInProgress)
	require.ErrorIs(t, move(0, 9), kerr.InvalidReplicaAssignment)
	require.NoError(t, move(2, 1))
	require.Equal(t, []int32{2, 1, 0}, ongoing()[0].Assignment.Replicas)
	require.Equal(t, []int32{2}, ongoing()[0].Assignment.Adding)
	require.Equal(t, []int32{0}, ongoing()[0].Assignment.Removing)
	s.isr("a", 0, 0, 1, 2)
	require.Empty(t, ongoing())
	require.Equal(t, int32(2), s.state("a", 0).Leader)

	require.NoError(t, move(3, 1))
	s.isr("a", 0, 2, 1, 3)
	require.NoError(t, move(0, 3)) // 3 and 1 now
	require.NoError(t, move(2, 3), "another target on top: 0 goes again")
	require.NotContains(t, s.brokers[0].replicas, tp{"a", 0})
	require.Equal(t, []int32{2, 3, 1}, ongoing()[0].Assignment.Replicas)
	require.NoError(t, move(), "back")
	require.Empty(t, ongoing())
	require.Equal(t, []int32{3, 1}, s.topics()["a"].Partitions[0].Replicas)

	same := &AlterReassignments{SameFactor: true, Partitions: []Reassignment{{PartitionID{"a", 0}, []int32{3}}}}
	s.run(same)
	require.ErrorIs(t, same.Results[0], kerr.InvalidReplicationFactor)
}

// TestBounce has a broker gone and back before the controller looks: it isn't what it was.
func TestBounce(t *testing.T) {
	s := newSim(t, 0, 1)
	s.create("both", []int32{0, 1})
	s.create("alone", []int32{0})
	session := s.session
	s.session = nil // nobody looks
	s.down(0)
	s.up(0)
	s.session = session
	s.tellBrokers()
	s.check()
	require.Equal(t, int32(1), s.state("both", 0).Leader)
	require.Equal(t, []int32{1}, s.state("both", 0).ISR, "it has to catch up first")
	require.Equal(t, int32(0), s.state("alone", 0).Leader, "nobody else has it")
	require.Equal(t, int32(2), s.state("alone", 0).LeaderEpoch)
}

// TestGrowth goes on where the topic's first partition begins, as Kafka does, or where it would if that broker were there.
func TestGrowth(t *testing.T) {
	for name, tc := range map[string]struct {
		dead []int32
		want [][]int32
	}{
		"all there":           {nil, [][]int32{{2, 1}, {0, 2}}},
		"the first isn't now": {[]int32{1}, [][]int32{{0, 2}, {2, 0}}},
	} {
		s := newSim(t)
		for id := range int32(3) {
			r, err := s.member.Membership().Register(t.Context(), election.Broker{ID: id, Endpoints: []election.Endpoint{
				{Listener: "INTERNAL", Protocol: "PLAINTEXT", Host: "host", Port: 1000 + id}}})
			require.NoError(t, err)
			s.brokers[id] = newFakeBroker(s, id, r)
		}
		s.tellBrokers()
		s.create("a", []int32{1, 2})
		for _, id := range tc.dead {
			s.down(id)
		}
		grow := &CreatePartitions{Topics: []MorePartitions{{Topic: "a", Count: 3}}}
		s.run(grow)
		require.NoError(t, grow.Results[0])
		for i, want := range tc.want {
			require.Equal(t, want, s.topics()["a"].Partitions[i+1].Replicas, "%s, partition %d", name, i+1)
		}
		s.check()
	}
}
