package controller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// TestRebalance gives leaderships back above the share that is allowed elsewhere, and not up to it.
func TestRebalance(t *testing.T) {
	s := newSim(t, 0, 1)
	s.rules.Imbalance = 25
	s.takeOver()
	s.create("a", []int32{0, 1}, []int32{0, 1}, []int32{0, 1}, []int32{0, 1})
	s.create("b", []int32{1, 0})
	led := func() (n int) {
		for i := range 4 {
			if s.state("a", i).Leader == 0 {
				n++
			}
		}
		return n
	}
	s.down(0)
	s.up(0)
	require.Zero(t, led())
	s.run(Rebalance{})
	require.Zero(t, led(), "who isn't in sync doesn't lead")
	for i := range int32(4) {
		s.isr("a", i, 1, 0)
	}
	elect := &ElectLeaders{Partitions: []PartitionID{{"a", 0}, {"a", 1}, {"a", 2}}}
	s.run(elect)
	require.Equal(t, 3, led())
	s.run(Rebalance{})
	require.Equal(t, 3, led(), "a quarter elsewhere is balanced")
	s.down(0)
	s.up(0)
	for i := range int32(4) {
		s.isr("a", i, 1, 0)
	}
	s.run(Rebalance{})
	require.Equal(t, 4, led())
	s.check()
}

// TestUncleanLater allows unclean elections when nobody in sync is left.
func TestUncleanLater(t *testing.T) {
	s := newSim(t, 0, 1)
	s.create("a", []int32{0, 1})
	s.create("b", []int32{0, 1})
	s.down(1)
	s.up(1)
	s.down(0)
	require.Equal(t, election.NoBroker, s.state("a", 0).Leader)
	s.run(ConfigChanged{"a"})
	require.Equal(t, election.NoBroker, s.state("a", 0).Leader)
	s.unclean = true
	s.run(ConfigChanged{"a"})
	require.Equal(t, int32(1), s.state("a", 0).Leader)
	require.Equal(t, election.NoBroker, s.state("b", 0).Leader)
	s.run(ConfigChanged{""})
	require.Equal(t, int32(1), s.state("b", 0).Leader)
	require.True(t, s.state("b", 0).Recovering)
}

// TestControlledShutdown moves what a broker leads, and has it stop following, once.
func TestControlledShutdown(t *testing.T) {
	s := newSim(t, 0, 1, 2)
	s.create("a", []int32{1, 0, 2}, []int32{0, 1, 2})
	s.create("alone", []int32{1})
	b := s.brokers[1]
	b.stopping = true
	c := &ControlledShutdown{Broker: 1, Epoch: b.registration.Epoch()}
	s.run(c)
	require.NoError(t, c.Err)
	require.Empty(t, c.Remaining, "nobody else has what has one replica")
	require.Equal(t, int32(0), s.state("a", 0).Leader)
	require.Equal(t, []int32{0, 2}, s.state("a", 1).ISR)
	require.Equal(t, map[tp]bool{{"a", 1}: true}, b.stopped)
	s.check()
	epoch := s.state("a", 0).LeaderEpoch
	again := &ControlledShutdown{Broker: 1, Epoch: b.registration.Epoch()}
	s.run(again)
	require.True(t, b.stopped[tp{"a", 0}], "it follows there now, and is to stop")
	require.Equal(t, epoch, s.state("a", 0).LeaderEpoch)
	refused := s.isr("a", 0, 0, 2, 1)
	require.NotZero(t, refused.Topics[0].Partitions[0].ErrorCode, "who is about to stop doesn't get in sync")
	s.down(1)
	s.up(1)
	s.check()
	stale := &ControlledShutdown{Broker: 1, Epoch: c.Epoch}
	s.run(stale)
	require.Error(t, stale.Err)
}
