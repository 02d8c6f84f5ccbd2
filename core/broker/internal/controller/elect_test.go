package controller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

func state(leader int32, isr ...int32) election.PartitionState {
	return election.PartitionState{Leader: leader, ISR: isr}
}

func replicas(ids ...int32) election.Assignment { return election.Assignment{Replicas: ids} }

func TestRepaired(t *testing.T) {
	unclean := state(3, 3)
	unclean.Recovering = true
	for name, tc := range map[string]struct {
		now     election.PartitionState
		a       election.Assignment
		alive   []int32
		unclean bool
		want    election.PartitionState
		changed bool
	}{
		"all is well":                         {state(1, 1, 2), replicas(1, 2), []int32{1, 2}, false, state(1, 1, 2), false},
		"a follower died":                     {state(1, 1, 2), replicas(1, 2), []int32{1}, false, state(1, 1), true},
		"the leader died":                     {state(1, 1, 2, 3), replicas(1, 2, 3), []int32{2, 3}, false, state(2, 2, 3), true},
		"the first in sync leads, not first":  {state(1, 1, 3), replicas(1, 2, 3), []int32{2, 3}, false, state(3, 3), true},
		"nobody in sync is left":              {state(1, 1), replicas(1, 2), []int32{2}, false, state(-1, 1), true},
		"still nobody":                        {state(-1, 1), replicas(1, 2), []int32{2}, false, state(-1, 1), false},
		"all of several in sync died":         {state(1, 1, 2), replicas(1, 2), nil, false, state(-1, 1, 2), true},
		"who was in sync came back":           {state(-1, 1, 2), replicas(1, 2), []int32{2}, false, state(2, 2), true},
		"out of sync comes back, no matter":   {state(1, 1), replicas(1, 2), []int32{1, 2}, false, state(1, 1), false},
		"unclean when nobody in sync is left": {state(1, 1), replicas(1, 2, 3), []int32{3}, true, unclean, true},
		"unclean is the last resort":          {state(1, 1, 2), replicas(1, 3, 2), []int32{2, 3}, true, state(2, 2), true},
		"unclean with nobody at all":          {state(1, 1), replicas(1, 2), nil, true, state(-1, 1), true},
	} {
		got, changed := repaired(tc.now, tc.a, in(tc.alive), tc.unclean)
		require.Equal(t, tc.want, got, name)
		require.Equal(t, tc.changed, changed, name)
	}
}

func TestStrategies(t *testing.T) {
	s, ok := firstState(replicas(3, 1, 2), in([]int32{1, 2}))
	require.True(t, ok)
	require.Equal(t, state(1, 1, 2), s)
	_, ok = firstState(replicas(3), in(nil))
	require.False(t, ok)

	s, ok = preferred(state(2, 1, 2), replicas(1, 2), in([]int32{1, 2}))
	require.True(t, ok)
	require.Equal(t, int32(1), s.Leader)
	for name, alive := range map[string][]int32{"dead": {2}, "out of sync": {1, 2}} {
		now := state(2, 1, 2)
		if name == "out of sync" {
			now = state(2, 2)
		}
		_, ok = preferred(now, replicas(1, 2), in(alive))
		require.False(t, ok, name)
	}
	_, ok = preferred(state(1, 1), replicas(1), in([]int32{1}))
	require.False(t, ok, "it leads")
	_, ok = preferred(state(-1, 1), election.Assignment{}, in(nil))
	require.False(t, ok, "no replicas")

	s, ok = moved(state(1, 1, 2, 3), []int32{2, 3}, in([]int32{1, 2, 3}))
	require.True(t, ok)
	require.Equal(t, state(2, 2, 3), s)
	_, ok = moved(state(1, 1, 2), []int32{2}, in([]int32{1}))
	require.False(t, ok, "who is to lead is dead")

	stopping := in([]int32{1})
	s, ok = relieved(state(1, 1, 2), replicas(1, 2), in([]int32{1, 2}), stopping)
	require.True(t, ok)
	require.Equal(t, state(2, 2), s)
	_, ok = relieved(state(1, 1), replicas(1, 2), in([]int32{1, 2}), stopping)
	require.False(t, ok, "nobody else is in sync")
}
