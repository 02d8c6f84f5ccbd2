package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/election"
)

func TestAdoptTopics(t *testing.T) {
	s := newSim(t, 0)
	c := &AdoptTopics{Broker: 0, Topics: []FoundTopic{
		{Name: "a", ID: election.TopicID{77}, Logs: []FoundLog{{2, 9}, {0, -1}}, Config: map[string]string{"retention.ms": "-1"}},
		{Name: "b", Logs: []FoundLog{{0, 4}}},
		{Name: "b d", Logs: []FoundLog{{0, 4}}},
		{Name: "far", Logs: []FoundLog{{1<<31 - 1, 0}}},
	}}
	s.run(c)
	require.NoError(t, c.Results[0])
	require.NoError(t, c.Results[1])
	require.ErrorIs(t, c.Results[2], kerr.InvalidTopicException)
	require.ErrorIs(t, c.Results[3], kerr.InvalidPartitions)
	s.check()
	topics := s.topics()
	require.Len(t, topics, 2)
	require.Equal(t, election.TopicID{77}, topics["a"].ID)
	require.NotZero(t, topics["b"].ID)
	require.Equal(t, int32(0), s.state("a", 0).LeaderEpoch)
	require.Equal(t, int32(10), s.state("a", 2).LeaderEpoch, "above what the log has seen")
	require.Nil(t, topics["a"].Partitions[1].State, "its records are elsewhere")
	require.Empty(t, topics["a"].Partitions[1].Replicas)
	require.Equal(t, int32(5), s.state("b", 0).LeaderEpoch)

	again := &AdoptTopics{Broker: 0, Topics: []FoundTopic{{Name: "c", Logs: []FoundLog{{0, 0}}}}}
	s.run(again)
	require.ErrorIs(t, again.Results[0], kerr.InvalidRequest, "there are topics")
	s = newSim(t, 0, 1)
	s.run(again)
	require.ErrorIs(t, again.Results[0], kerr.InvalidRequest, "there are others")
}
