package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// look has the controller look at what is asked for through the coordination, and gives what is left there.
func (s *sim) look() []election.Request {
	s.t.Helper()
	s.survives(s.session.Changed(context.Background(), []election.Change{{Kind: election.RequestsChanged}}))
	left, err := s.member.Requests().List(context.Background())
	require.NoError(s.t, err)
	return left
}

// TestRequests does what tools of older days and brokers ask for through the coordination.
func TestRequests(t *testing.T) {
	s := newSim(t, 0, 1, 2)
	s.create("a", []int32{0, 1}, []int32{1, 0})
	move := election.Request{Kind: election.Reassign, Topic: "a", Replicas: []int32{2, 1}}
	s.mem.Ask(move)
	s.mem.Ask(election.Request{Kind: election.Reassign, Topic: "a", Partition: 1, Replicas: []int32{1, 7}})
	s.mem.Ask(election.Request{Kind: election.Reassign, Topic: "nothing", Replicas: []int32{1}})
	require.Equal(t, []election.Request{move}, s.look(), "it goes on; the others are refused")
	require.Equal(t, []int32{2}, s.topics()["a"].Partitions[0].Adding)
	s.takeOver()
	require.Equal(t, []election.Request{move}, s.look())
	epoch := s.state("a", 0).LeaderEpoch
	require.Equal(t, []election.Request{move}, s.look())
	require.Equal(t, epoch, s.state("a", 0).LeaderEpoch, "to be asked again changes nothing")
	s.isr("a", 0, 0, 1, 2)
	require.Empty(t, s.look(), "it has arrived")
	require.Equal(t, []int32{2, 1}, s.topics()["a"].Partitions[0].Replicas)

	s.mem.Ask(election.Request{Kind: election.Reassign, Topic: "a", Replicas: []int32{0}})
	require.Len(t, s.look(), 1)
	s.run(&AlterReassignments{Partitions: []Reassignment{{PartitionID{"a", 0}, nil}}})
	require.Empty(t, s.look(), "a client has taken it back")
	require.Equal(t, []int32{2, 1}, s.topics()["a"].Partitions[0].Replicas)

	s.down(2)
	s.up(2)
	s.isr("a", 0, 1, 2)
	s.mem.Ask(election.Request{Kind: election.ElectPreferred, Topic: "a"})
	require.Empty(t, s.look())
	require.Equal(t, int32(2), s.state("a", 0).Leader)

	s.brokers[2].failed = true
	require.NoError(t, s.member.Requests().ReportDirFailure(t.Context(), 2))
	require.Empty(t, s.look())
	require.Equal(t, int32(1), s.state("a", 0).Leader)
	s.check()
}

// TestMarksTakenBack sees marks for deletion where that is disabled.
func TestMarksTakenBack(t *testing.T) {
	s := newSim(t, 0)
	s.create("a", []int32{0})
	s.rules.DeleteTopics = false
	s.takeOver()
	_, err := s.member.Metadata().MarkDeleted(t.Context(), s.term.Epoch(), []string{"a"})
	require.NoError(t, err)
	for _, see := range []func(){
		func() {
			s.survives(s.session.Changed(t.Context(), []election.Change{{Kind: election.TopicChanged, Topic: "a"}}))
		},
		s.takeOver,
	} {
		see()
		require.False(t, s.topics()["a"].Deleting)
		s.check()
		_, err := s.member.Metadata().MarkDeleted(t.Context(), s.term.Epoch(), []string{"a"})
		require.NoError(t, err)
	}
}

// TestTopicWithoutID has a topic lose its id to a tool that doesn't know of ids, and one come without.
func TestTopicWithoutID(t *testing.T) {
	s := newSim(t, 0)
	s.create("a", []int32{0})
	before := s.topics()["a"]
	nameless := before
	nameless.ID = election.TopicID{}
	nameless.Partitions = append(nameless.Partitions, election.Partition{Assignment: election.Assignment{Replicas: []int32{0}}})
	s.mem.PutTopic(nameless)
	s.mem.PutTopic(election.Topic{Name: "b", Partitions: []election.Partition{{Assignment: election.Assignment{Replicas: []int32{0}}}}})
	s.survives(s.session.Changed(t.Context(), []election.Change{{Kind: election.TopicChanged, Topic: "a"}, {Kind: election.TopicChanged, Topic: "b"}}))
	s.check()
	require.Equal(t, before.ID, s.topics()["a"].ID)
	require.Len(t, s.topics()["a"].Partitions, 2)
	require.NotZero(t, s.topics()["b"].ID)
	s.mem.PutTopic(nameless)
	s.takeOver()
	s.check()
	require.NotZero(t, s.topics()["a"].ID, "who doesn't know the old one gives it another")
}
