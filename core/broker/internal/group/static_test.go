package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// staticPair is a stable group of a static leader and a dynamic follower.
func staticPair(t *testing.T) (s *sim, leader, follower *client) {
	s = newSim(t)
	leader = s.static("i1")
	require.NoError(t, leader.begin().Err)
	require.NoError(t, leader.trySync(leader).Err)
	follower = s.client()
	require.Nil(t, follower.begin())
	require.NoError(t, leader.tryJoin().Err)
	require.NoError(t, follower.joinAnswer().Err)
	require.Nil(t, follower.trySync())
	require.NoError(t, leader.trySync(leader, follower).Err)
	return s, leader, follower
}

// restart forgets what the member knew of itself.
func (c *client) restart() *client {
	n := *c
	n.id, n.gen = "", -1
	return &n
}

func TestStaticRestart(t *testing.T) {
	s, leader, follower := staticPair(t)
	writes := len(s.stored)
	again := leader.restart()
	a := again.tryJoin()
	require.NoError(t, a.Err)
	require.Equal(t, Stable, s.g.State(), "no rebalance")
	require.Equal(t, leader.gen, a.Generation)
	require.True(t, a.SkipAssignment)
	require.Len(t, a.Members, 2)
	require.Equal(t, again.id, a.Leader)
	require.NotEqual(t, leader.id, again.id)
	require.Len(t, s.stored, writes+1, "the group's record has the new id")
	stored := s.stored[writes].Meta
	require.Equal(t, again.id, *stored.Leader)
	require.Equal(t, "for "+leader.id, string(stored.Members[0].Assignment))
	require.Equal(t, "for "+leader.id, string(again.trySync().Assignment), "the old assignment goes on")

	require.Equal(t, ErrFencedInstance, leader.heartbeat())
	require.Equal(t, ErrFencedInstance, leader.commit("t", 1))
	require.Equal(t, ErrFencedInstance, leader.tryJoin().Err)
	require.Equal(t, ErrFencedInstance, leader.trySync().Err)
	require.NoError(t, follower.heartbeat())

	again.version = 8
	old := again.restart()
	a = old.tryJoin()
	require.NoError(t, a.Err)
	require.False(t, a.SkipAssignment)
	require.Empty(t, a.Members)
	require.Equal(t, again.id, a.Leader, "the leader before, so that it doesn't assign")
}

func TestStaticRestartWithOtherProtocols(t *testing.T) {
	s := newSim(t)
	m := s.static("i1")
	m.protos = append(subscribe("range", "t"), subscribe("roundrobin", "t")...)
	require.NoError(t, m.begin().Err)
	require.NoError(t, m.trySync(m).Err)
	again := m.restart()
	again.protos = subscribe("roundrobin", "t")
	a := again.tryJoin()
	require.NoError(t, a.Err)
	require.Equal(t, m.gen+1, a.Generation)
	require.Equal(t, "roundrobin", *a.Protocol)
}

func TestStaticRestartBeforeSync(t *testing.T) {
	s := newSim(t)
	m := s.static("i1")
	require.NoError(t, m.begin().Err)
	again := m.restart()
	a := again.tryJoin()
	require.NoError(t, a.Err)
	require.Equal(t, m.gen+1, a.Generation, "the leader may have been told the old id")
	require.Equal(t, CompletingRebalance, s.g.State())
}

func TestStaticRestartNotStored(t *testing.T) {
	s, leader, follower := staticPair(t)
	s.hold = true
	again := leader.restart()
	require.Nil(t, again.tryJoin())
	s.store(offsets.ErrUnavailable)
	a := again.joinAnswer()
	require.ErrorIs(t, a.Err, ErrUnavailable)
	require.Empty(t, a.MemberID)
	require.NoError(t, leader.heartbeat(), "all is as it was")
	require.NoError(t, follower.heartbeat())
}

func TestStaticRestartOvertaken(t *testing.T) {
	s, leader, follower := staticPair(t)
	s.hold = true
	again := leader.restart()
	require.Nil(t, again.tryJoin())
	require.NoError(t, follower.leave())
	require.NotNil(t, again.joinAnswer(), "it waits in a join, so nobody is missing")
	require.Equal(t, leader.gen+1, again.gen)
	s.store(nil)
	require.Equal(t, CompletingRebalance, s.g.State())
}

func TestStaticRestartInAFullGroup(t *testing.T) {
	s, leader, _ := staticPair(t)
	s.cfg.MaxSize = 2
	require.Equal(t, ErrMaxSize, s.static("i2").tryJoin().Err)
	require.Equal(t, ErrMaxSize, s.client().tryJoin().Err)
	require.NoError(t, leader.restart().tryJoin().Err, "it has its place")
	require.Len(t, s.g.members, 2)
}

func TestStaticMembersStay(t *testing.T) {
	s, leader, follower := staticPair(t)
	leader.session, leader.rebal = 10*time.Minute, time.Minute
	require.Nil(t, leader.tryJoin())
	require.NoError(t, follower.tryJoin().Err)
	require.NoError(t, leader.joinAnswer().Err)
	require.Nil(t, follower.trySync())
	require.NoError(t, leader.trySync(leader, follower).Err)
	third := s.client()
	require.Nil(t, third.begin())
	require.Nil(t, follower.tryJoin())
	s.pass(time.Minute)
	require.NoError(t, follower.joinAnswer().Err)
	require.NotEqual(t, leader.id, follower.joinAnswer().Leader, "who is away doesn't lead")
	require.NoError(t, third.joinAnswer().Err)
	require.Len(t, s.g.members, 3, "but has its place")
}

// TestOnlyStaticMembersAway: nobody joins, and nobody may be thrown out before its session is over.
func TestOnlyStaticMembersAway(t *testing.T) {
	s, leader, follower := staticPair(t)
	require.NoError(t, follower.leave())
	require.Equal(t, PreparingRebalance, s.g.State())
	s.pass(leader.session)
	require.Equal(t, Empty, s.g.State())
}

func TestInstanceOfAnother(t *testing.T) {
	s, leader, follower := staticPair(t)
	two := "i2"
	wrong := *leader
	wrong.instance = &two
	require.Equal(t, ErrUnknownMember, wrong.tryJoin().Err)
	one := "i1"
	wrong = *follower
	wrong.instance = &one
	require.Equal(t, ErrFencedInstance, wrong.heartbeat())
	pending := s.client()
	require.Equal(t, ErrMemberIDRequired, pending.tryJoin().Err)
	pending.instance = &two
	require.Equal(t, ErrUnknown, pending.tryJoin().Err, "such an id is no static member's")
}

// TestStaticRestartReadsOtherTopics: what the group reads is known anew, without a rebalance.
func TestStaticRestartReadsOtherTopics(t *testing.T) {
	s := newSim(t)
	m := s.static("i1")
	require.NoError(t, m.begin().Err)
	require.NoError(t, m.trySync(m).Err)
	s.hold = true
	again := m.restart()
	again.protos = subscribe("range", "u")
	require.Nil(t, again.tryJoin())
	s.store(offsets.ErrUnavailable)
	refused, err := s.deleteOffsets("t", "u")
	require.NoError(t, err)
	require.Equal(t, map[TopicPartition]bool{{"t", 0}: true}, refused, "it wasn't stored")
	require.Nil(t, again.tryJoin())
	s.store(nil)
	require.NoError(t, again.joinAnswer().Err)
	refused, err = s.deleteOffsets("t", "u")
	require.NoError(t, err)
	require.Equal(t, map[TopicPartition]bool{{"u", 0}: true}, refused)
}

// TestStaticRestartWhileWaiting: whoever waits under the old id is fenced, not sent back to try again.
func TestStaticRestartWhileWaiting(t *testing.T) {
	s, leader, follower := staticPair(t)
	require.Nil(t, leader.tryJoin())
	again := leader.restart()
	require.Nil(t, again.tryJoin())
	require.Equal(t, ErrFencedInstance, leader.joinAnswer().Err)
	require.NoError(t, follower.tryJoin().Err)
	require.NoError(t, again.joinAnswer().Err)

	// The same for whoever waits in a sync.
	require.Nil(t, follower.trySync())
	s.hold = true
	require.Nil(t, again.trySync(again, follower))
	require.Nil(t, again.restart().tryJoin())
	require.Equal(t, ErrFencedInstance, again.syncAnswer().Err)
	require.Equal(t, ErrRebalance, follower.syncAnswer().Err)
}
