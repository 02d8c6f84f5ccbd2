package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// TestMemberIDRequired: an id is demanded only of who can understand that, and forgotten when it isn't used.
func TestMemberIDRequired(t *testing.T) {
	s := newSim(t)
	old := s.client()
	old.version = 3
	require.NoError(t, old.tryJoin().Err, "version 3 knows no such error")

	s = newSim(t)
	c := s.client()
	a := c.tryJoin()
	require.Equal(t, ErrMemberIDRequired, a.Err)
	require.NotEmpty(t, a.MemberID)
	require.NoError(t, c.tryJoin().Err)

	s = newSim(t)
	require.NoError(t, s.static("i1").tryJoin().Err, "static members are known by their instance")

	s = newSim(t)
	c = s.client()
	require.Equal(t, ErrMemberIDRequired, c.tryJoin().Err)
	s.pass(c.session)
	require.Equal(t, ErrUnknownMember, c.tryJoin().Err, "the id is too old")
}

// TestCommitRules: who may commit, and what a refused commit leaves.
func TestCommitRules(t *testing.T) {
	s := newSim(t)
	require.NoError(t, s.commit(nobody, "t", 1), "a group without members")
	require.Equal(t, int64(1), s.offset("t"))
	require.Equal(t, ErrUnknownMember, s.commit(Member{Generation: 5}, "t", 2))

	s = newSim(t)
	m := stable(t, s, 1)[0]
	require.NoError(t, m.commit("t", 10))
	require.Equal(t, ErrIllegalGeneration, s.commit(Member{ID: m.id, Generation: m.gen - 1}, "t", 11))
	require.Equal(t, ErrIllegalGeneration, s.commit(Member{ID: m.id, Generation: -1}, "t", 11))
	require.Equal(t, ErrUnknownMember, s.commit(Member{ID: "nobody", Generation: m.gen}, "t", 11))
	require.Equal(t, ErrUnknownMember, s.commit(nobody, "t", 11), "not while there are members")
	instance := "i9"
	require.Equal(t, ErrUnknownMember, s.commit(Member{ID: m.id, Generation: m.gen, InstanceID: &instance}, "t", 11))
	require.Equal(t, int64(10), s.offset("t"), "a refused commit changes nothing")

	second := s.client()
	require.Nil(t, second.begin())
	require.NoError(t, m.commit("t", 12), "while the group prepares a rebalance")
	require.NoError(t, m.tryJoin().Err)
	require.NoError(t, second.joinAnswer().Err)
	require.Equal(t, ErrRebalance, m.commit("t", 13), "joined, but not yet synced")
	require.Equal(t, int64(12), s.offset("t"))
}

// TestCommitIsSeenWhenStored: not before, and not when the write failed.
func TestCommitIsSeenWhenStored(t *testing.T) {
	s := newSim(t)
	s.hold = true
	require.Equal(t, errWaiting, s.commit(nobody, "t", 1))
	require.Equal(t, int64(-1), s.offset("t"))
	s.store(nil)
	require.Equal(t, int64(1), s.offset("t"))
	for _, c := range []struct{ failed, want error }{
		{offsets.ErrUnavailable, ErrUnavailable}, {offsets.ErrNotOwner, ErrNotCoordinator}, {offsets.ErrTimedOut, ErrTimedOut},
		{offsets.ErrTooLarge, ErrCommitTooLarge}, {offsets.ErrCorrupt, ErrUnknown},
	} {
		require.Equal(t, errWaiting, s.commit(nobody, "t", 2))
		s.store(c.failed)
		require.ErrorIs(t, s.answers[s.last].Err, c.want)
		require.Equal(t, int64(1), s.offset("t"))
	}
}

// TestRebalanceDoesNotWaitForWhoLeft: the four ways to keep a group waiting.
func TestRebalanceDoesNotWaitForWhoLeft(t *testing.T) {
	begin := func(t *testing.T) (s *sim, m1, m2, m3 *client) {
		s = newSim(t)
		all := stable(t, s, 2)
		m3 = s.client()
		require.Nil(t, m3.begin())
		require.Nil(t, all[0].tryJoin())
		return s, all[0], all[1], m3
	}
	joined := func(t *testing.T, cs ...*client) {
		t.Helper()
		for _, c := range cs {
			require.NotNil(t, c.joinAnswer(), "still waiting")
			require.NoError(t, c.joinAnswer().Err)
		}
	}
	t.Run("a member leaves", func(t *testing.T) {
		_, m1, m2, m3 := begin(t)
		require.NoError(t, m2.leave())
		joined(t, m1, m3)
	})
	t.Run("a member falls silent", func(t *testing.T) {
		s, m1, m2, m3 := begin(t)
		s.pass(m2.session)
		joined(t, m1, m3)
		require.Equal(t, ErrUnknownMember, m2.heartbeat())
	})
	t.Run("an id that was given out leaves", func(t *testing.T) {
		_, m1, m2, m3 := begin(t)
		m4 := m1.s.client()
		require.Equal(t, ErrMemberIDRequired, m4.tryJoin().Err)
		require.Nil(t, m2.tryJoin(), "the fourth is awaited")
		require.NoError(t, m4.leave())
		joined(t, m1, m2, m3)
	})
	t.Run("an id that was given out is never used", func(t *testing.T) {
		s, m1, m2, m3 := begin(t)
		m4 := s.client()
		require.Equal(t, ErrMemberIDRequired, m4.tryJoin().Err)
		require.Nil(t, m2.tryJoin())
		s.pass(m4.session)
		joined(t, m1, m2, m3)
	})
	t.Run("a joiner vanishes", func(t *testing.T) {
		s, m1, m2, m3 := begin(t)
		require.Nil(t, m3.joinAnswer())
		m2.tryJoin()
		joined(t, m1, m2, m3) // m3's answer reaches nobody
		require.Nil(t, m2.trySync())
		require.NoError(t, m1.trySync(m1, m2, m3).Err)
		require.NoError(t, m2.syncAnswer().Err)
		for range 2 {
			s.pass(m3.session / 2)
			m1.heartbeat()
			m2.heartbeat()
		}
		require.Equal(t, PreparingRebalance, s.g.State(), "one rebalance, without it")
		require.Nil(t, m1.tryJoin())
		require.NoError(t, m2.tryJoin().Err)
		require.Len(t, m1.joinAnswer().Members, 2)
	})
}

func TestRebalanceTimeout(t *testing.T) {
	s := newSim(t)
	a := s.client()
	a.rebal, a.session = time.Second, time.Minute
	require.NoError(t, a.begin().Err)
	require.NoError(t, a.trySync(a).Err)
	b := s.client()
	b.rebal, b.session = 3*time.Second, time.Minute
	require.Nil(t, b.begin())
	s.pass(2999 * time.Millisecond)
	require.Nil(t, b.joinAnswer(), "the largest timeout counts")
	require.Equal(t, ErrRebalance, a.heartbeat())
	s.pass(time.Millisecond)
	require.NoError(t, b.joinAnswer().Err)
	require.Equal(t, b.id, b.joinAnswer().Leader)
	require.Equal(t, ErrUnknownMember, a.tryJoin().Err, "thrown out")
}

func TestInitialDelay(t *testing.T) {
	s := newSim(t)
	s.cfg.InitialDelay = 3 * time.Second
	a := s.client()
	a.rebal = 8 * time.Second
	require.Nil(t, a.begin())
	s.pass(2 * time.Second)
	b := s.client()
	b.rebal = 8 * time.Second
	require.Nil(t, b.begin())
	s.pass(3 * time.Second)
	require.Nil(t, a.joinAnswer(), "someone came: wait for more")
	c := s.client()
	c.rebal = 8 * time.Second
	require.Nil(t, c.begin())
	s.pass(3 * time.Second)
	require.NotNil(t, a.joinAnswer(), "8 s are over")
	require.Len(t, a.joinAnswer().Members, 3)
	require.EqualValues(t, 1, c.joinAnswer().Generation)

	s = newSim(t)
	s.cfg.InitialDelay = 3 * time.Second
	a = s.client()
	require.Nil(t, a.begin())
	s.pass(2999 * time.Millisecond)
	require.Nil(t, a.joinAnswer())
	s.pass(time.Millisecond)
	require.NoError(t, a.joinAnswer().Err)
}

// TestNewMemberGivesUp: a new member can't send heartbeats while it waits, so it may wait for five minutes and no longer.
func TestNewMemberGivesUp(t *testing.T) {
	s := newSim(t)
	old := s.client()
	old.session, old.rebal = 25*time.Minute, 20*time.Minute
	require.NoError(t, old.begin().Err)
	require.NoError(t, old.trySync(old).Err)
	fresh := s.client()
	require.Nil(t, fresh.begin())
	s.pass(newMemberTimeout - time.Millisecond)
	require.Nil(t, fresh.joinAnswer())
	s.pass(time.Millisecond)
	require.Equal(t, ErrUnknownMember, fresh.joinAnswer().Err)
	require.NoError(t, old.tryJoin().Err)
	require.Len(t, old.joinAnswer().Members, 1)
}

func TestProtocols(t *testing.T) {
	s := newSim(t)
	a := s.client()
	a.protos = append(subscribe("range", "t"), subscribe("roundrobin", "t")...)
	r := a.request()
	for name, change := range map[string]func(*Join){
		"no protocols": func(r *Join) { r.Protocols = nil },
		"no type":      func(r *Join) { r.ProtocolType = "" },
	} {
		bad := r
		change(&bad)
		ticket := s.ticket()
		s.do(s.g.Join(s.now, ticket, bad))
		require.Equal(t, ErrInconsistentProtocol, s.answers[ticket].Join.Err, name)
		require.True(t, s.g.Vacant(), name)
	}
	require.NoError(t, a.begin().Err)
	require.Equal(t, "range", *a.joinAnswer().Protocol)
	require.NoError(t, a.trySync(a).Err)
	other := s.client()
	other.protos = subscribe("sticky")
	require.Equal(t, ErrInconsistentProtocol, other.tryJoin().Err)
	connect := s.client().request()
	connect.ProtocolType = "connect"
	ticket := s.ticket()
	s.do(s.g.Join(s.now, ticket, connect))
	require.Equal(t, ErrInconsistentProtocol, s.answers[ticket].Join.Err)
	b := s.client()
	b.protos = subscribe("roundrobin", "t")
	require.Nil(t, b.begin())
	require.NoError(t, a.tryJoin().Err)
	require.Equal(t, "roundrobin", *b.joinAnswer().Protocol, "the only one that both have")
	wrong := "range"
	ticket = s.ticket()
	s.do(s.g.Sync(s.now, ticket, Sync{Member: a.who(), Protocol: &wrong}))
	require.Equal(t, ErrInconsistentProtocol, s.answers[ticket].Sync.Err)
}

func TestRejoin(t *testing.T) {
	s := newSim(t)
	all := stable(t, s, 2)
	leader, follower := all[0], all[1]
	gen := leader.gen
	a := follower.tryJoin()
	require.NoError(t, a.Err, "nothing has changed")
	require.Equal(t, gen, a.Generation)
	require.Empty(t, a.Members)
	require.Equal(t, Stable, s.g.State())
	follower.protos = subscribe("range", "t", "u")
	require.Nil(t, follower.tryJoin(), "other metadata: a rebalance")
	require.NoError(t, leader.tryJoin().Err)
	require.Equal(t, gen+1, leader.gen)
	a = leader.tryJoin()
	require.NoError(t, a.Err, "the answer may have been lost")
	require.Equal(t, gen+1, a.Generation)
	require.Len(t, a.Members, 2)
	require.NoError(t, follower.joinAnswer().Err)
	require.Nil(t, follower.trySync())
	require.NoError(t, leader.trySync(leader, follower).Err)
	require.Nil(t, leader.tryJoin(), "a leader that rejoins wants a rebalance")
	require.Equal(t, PreparingRebalance, s.g.State())
	require.Equal(t, ErrRebalance, follower.trySync().Err)
	first := leader.join
	require.Nil(t, leader.tryJoin())
	require.Equal(t, ErrRebalance, s.answers[first].Join.Err, "the older request is sent back")
	require.NoError(t, follower.tryJoin().Err)
	require.NoError(t, leader.joinAnswer().Err)
}

func TestSync(t *testing.T) {
	s := newSim(t)
	all := stable(t, s, 2)
	leader, follower := all[0], all[1]
	stale := *leader
	stale.gen++
	require.Equal(t, ErrIllegalGeneration, stale.trySync().Err)
	stale.id = "nobody"
	require.Equal(t, ErrUnknownMember, stale.trySync().Err)
	require.Equal(t, "for "+follower.id, string(follower.trySync().Assignment), "as often as asked for")

	// A failed write of the assignment sends everybody back, and so does a rebalance that comes between.
	require.Nil(t, leader.tryJoin())
	require.NoError(t, follower.tryJoin().Err)
	require.NoError(t, leader.joinAnswer().Err)
	s.hold = true
	require.Nil(t, follower.trySync())
	require.Nil(t, leader.trySync(leader, follower))
	s.store(offsets.ErrTimedOut)
	require.ErrorIs(t, follower.syncAnswer().Err, ErrRebalance)
	require.ErrorIs(t, leader.syncAnswer().Err, ErrRebalance)
	require.Equal(t, PreparingRebalance, s.g.State())
	require.Nil(t, leader.tryJoin())
	require.NoError(t, follower.tryJoin().Err)
	leader.joinAnswer()
	require.Nil(t, leader.trySync(leader, follower))
	third := s.client()
	require.Nil(t, third.begin())
	require.Equal(t, ErrRebalance, leader.syncAnswer().Err)
	s.store(nil)
	require.Equal(t, PreparingRebalance, s.g.State(), "the old assignment comes too late")
	require.Nil(t, leader.tryJoin())
	require.NoError(t, follower.tryJoin().Err)
	s.hold = false
	leader.joinAnswer()
	third.joinAnswer()
	require.Nil(t, third.trySync())
	require.NoError(t, leader.trySync(leader).Err)
	require.Empty(t, third.syncAnswer().Assignment, "forgotten by the leader")
	require.NoError(t, third.syncAnswer().Err)
}

// TestLeaderSyncsTwice: the first assignment counts, and is stored once.
func TestLeaderSyncsTwice(t *testing.T) {
	s := newSim(t)
	m := s.client()
	require.NoError(t, m.begin().Err)
	s.hold = true
	require.Nil(t, m.trySync(m))
	first := m.sync
	require.Nil(t, m.trySync())
	require.Equal(t, ErrRebalance, s.answers[first].Sync.Err, "its client has given up on it")
	require.Len(t, s.writes, 1)
	s.store(nil)
	require.Equal(t, "for "+m.id, string(m.syncAnswer().Assignment))
}

// TestWhoNeverSyncs: joined, and then silent but for heartbeats.
func TestWhoNeverSyncs(t *testing.T) {
	s := newSim(t)
	all := stable(t, s, 2)
	all[0].rebal, all[1].rebal = 10*time.Second, 10*time.Second
	all[0].protos = subscribe("range", "other")
	require.Nil(t, all[0].tryJoin())
	require.NoError(t, all[1].tryJoin().Err)
	all[0].joinAnswer()
	require.NoError(t, all[0].trySync(all...).Err)
	require.Equal(t, Stable, s.g.State())
	for range 5 {
		require.NoError(t, all[1].heartbeat())
		require.NoError(t, all[0].heartbeat())
		s.pass(2 * time.Second)
	}
	require.Equal(t, ErrUnknownMember, all[1].heartbeat())
	require.Equal(t, ErrRebalance, all[0].heartbeat())
}

func TestHeartbeat(t *testing.T) {
	s := newSim(t)
	m := stable(t, s, 1)[0]
	for range 10 {
		s.pass(m.session - time.Millisecond)
		require.NoError(t, m.heartbeat())
	}
	s.pass(m.session - time.Millisecond)
	require.NoError(t, m.commit("t", 1), "a commit counts as a heartbeat")
	s.pass(m.session - time.Millisecond)
	require.NoError(t, m.heartbeat())
	s.pass(m.session)
	require.Equal(t, ErrUnknownMember, m.heartbeat())
	require.Equal(t, Empty, s.g.State())
	require.True(t, s.g.Next().IsZero(), "an empty group wants nothing")
}

func TestMaxSize(t *testing.T) {
	s := newSim(t)
	s.cfg.MaxSize = 2
	stable(t, s, 2)
	c := s.client()
	a := c.begin()
	require.Equal(t, ErrMaxSize, a.Err)
	require.Empty(t, a.MemberID)
	require.Equal(t, Stable, s.g.State())
}

func TestLeave(t *testing.T) {
	s := newSim(t)
	i := s.static("i1")
	require.NoError(t, i.begin().Err)
	require.NoError(t, i.trySync(i).Err)
	one, nine := "i1", "i9"
	errs, fx, err := s.g.Leave(s.now, []Leaving{{MemberID: "nobody"}, {}, {InstanceID: &nine}, {MemberID: "old", InstanceID: &one}, {InstanceID: &one}, {InstanceID: &one}})
	s.do(fx)
	require.NoError(t, err)
	require.Equal(t, []error{ErrUnknownMember, ErrUnknownMember, ErrUnknownMember, ErrFencedInstance, nil, ErrUnknownMember}, errs)
	require.Equal(t, Empty, s.g.State())
	require.Equal(t, "consumer", s.g.Overview().ProtocolType)
	last := s.stored[len(s.stored)-1]
	require.EqualValues(t, 2, last.Meta.Generation)
	require.Empty(t, last.Meta.Members)
	require.Nil(t, last.Meta.Protocol)
	require.Nil(t, last.Meta.Leader)
}
