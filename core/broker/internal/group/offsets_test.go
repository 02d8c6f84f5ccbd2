package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

const day = 24 * time.Hour

func (s *sim) expire() { s.do(s.g.Expire(s.now)) }

func TestExpiryWithoutMembership(t *testing.T) {
	s := newSim(t)
	require.NoError(t, s.commit(nobody, "old", 1))
	s.pass(3 * day)
	require.NoError(t, s.commit(nobody, "new", 2))
	s.pass(4*day - time.Millisecond)
	s.expire()
	require.Equal(t, int64(1), s.offset("old"))
	s.pass(time.Millisecond)
	s.expire()
	require.Equal(t, int64(-1), s.offset("old"))
	require.Equal(t, int64(2), s.offset("new"))
	s.pass(3 * day)
	s.expire()
	require.Equal(t, Dead, s.g.State())
	for _, e := range s.stored {
		require.Equal(t, offsets.KindOffset, e.Kind, "a group that only has offsets has no record to remove")
	}
}

func TestExpiryOfAnEmptyGroup(t *testing.T) {
	s := newSim(t)
	m := stable(t, s, 1)[0]
	require.NoError(t, m.commit("t", 1))
	for range 20 {
		s.pass(5 * time.Second)
		require.NoError(t, m.heartbeat())
	}
	require.NoError(t, m.leave())
	s.pass(7*day - time.Millisecond)
	s.expire()
	require.Equal(t, int64(1), s.offset("t"), "counts from when the last member left")
	s.pass(time.Millisecond)
	s.expire()
	require.Equal(t, Dead, s.g.State())
	last := s.stored[len(s.stored)-1]
	require.Equal(t, offsets.GroupKey("g"), last.Key)
	require.True(t, last.Tombstone())
}

func TestExpiryOfAStableGroup(t *testing.T) {
	s := newSim(t)
	m := s.client()
	m.session = 20 * day
	require.NoError(t, m.begin().Err)
	require.NoError(t, m.trySync(m).Err)
	require.NoError(t, m.commit("t", 1))
	require.NoError(t, m.commit("unread", 2))
	s.pass(8 * day)
	s.expire()
	require.Equal(t, int64(1), s.offset("t"), "the group reads it")
	require.Equal(t, int64(-1), s.offset("unread"))

	s = newSim(t)
	m = s.client()
	m.session, m.protos = 20*day, []Protocol{{Name: "range", Metadata: []byte("?")}}
	require.NoError(t, m.begin().Err)
	require.NoError(t, m.trySync(m).Err)
	require.NoError(t, m.commit("t", 1))
	s.pass(8 * day)
	s.expire()
	require.Equal(t, int64(1), s.offset("t"), "nobody knows what it reads")
}

func TestExplicitExpiry(t *testing.T) {
	s := newSim(t)
	ticket := s.ticket()
	fx, err := s.g.Commit(s.now, ticket, Commit{Member: nobody, Offsets: map[TopicPartition]offsets.Offset{{"t", 0}: {Offset: 1,
		CommitTimestamp: s.now.UnixMilli(), ExpireTimestamp: s.now.Add(time.Minute).UnixMilli()}}})
	require.NoError(t, err)
	s.do(fx)
	s.pass(59 * time.Second)
	s.expire()
	require.Equal(t, int64(1), s.offset("t"))
	s.pass(time.Second)
	s.expire()
	require.Equal(t, Dead, s.g.State())
}

// TestExpiryAndCommit: a commit on its way is not overtaken by the tombstone of the offset before it.
func TestExpiryAndCommit(t *testing.T) {
	s := newSim(t)
	require.NoError(t, s.commit(nobody, "t", 1))
	s.pass(8 * day)
	s.hold = true
	require.Equal(t, errWaiting, s.commit(nobody, "t", 2))
	s.expire()
	s.store(nil)
	require.Equal(t, int64(2), s.offset("t"))
	require.Equal(t, Empty, s.g.State())
}

func (s *sim) remove() (Ticket, error) {
	t := s.ticket()
	fx, err := s.g.Delete(s.now, t)
	s.do(fx)
	return t, err
}

func TestDelete(t *testing.T) {
	s := newSim(t)
	m := stable(t, s, 1)[0]
	require.NoError(t, m.commit("t", 1))
	_, err := s.remove()
	require.Equal(t, ErrNonEmpty, err)
	require.NoError(t, m.leave())
	s.hold = true
	ticket, err := s.remove()
	require.NoError(t, err)
	require.Equal(t, ErrUnavailable, s.commit(nobody, "t", 5), "being removed")
	_, err = s.remove()
	require.Equal(t, ErrGroupNotFound, err)
	s.store(offsets.ErrUnavailable)
	require.ErrorIs(t, s.answers[ticket].Err, ErrUnavailable)
	require.Equal(t, Empty, s.g.State(), "not removed after all")
	require.Equal(t, int64(1), s.offset("t"))
	s.hold = false
	ticket, err = s.remove()
	require.NoError(t, err)
	require.NoError(t, s.answers[ticket].Err)
	require.Equal(t, int64(-1), s.offset("t"))
	require.Len(t, s.stored, 5) // two generations, an offset, two tombstones
}

func TestDeleteWithACommitOnItsWay(t *testing.T) {
	s := newSim(t)
	s.hold = true
	require.Equal(t, errWaiting, s.commit(nobody, "t", 1))
	_, err := s.remove()
	require.NoError(t, err)
	s.store(nil)
	require.Equal(t, offsets.Entry{Key: offsets.OffsetKey("g", "t", 0)}, s.stored[1], "the tombstone comes behind the commit")
	require.Empty(t, s.g.offsets)
}

func (s *sim) deleteOffsets(topics ...string) (map[TopicPartition]bool, error) {
	var tps []TopicPartition
	for _, topic := range topics {
		tps = append(tps, TopicPartition{topic, 0})
	}
	refused, _, fx, err := s.g.DeleteOffsets(s.now, s.ticket(), tps)
	s.do(fx)
	return refused, err
}

func TestDeleteOffsets(t *testing.T) {
	s := newSim(t)
	m := stable(t, s, 1)[0]
	require.NoError(t, m.commit("t", 1))
	require.NoError(t, m.commit("u", 2))
	refused, err := s.deleteOffsets("t", "u", "never")
	require.NoError(t, err)
	require.Equal(t, map[TopicPartition]bool{{"t", 0}: true}, refused)
	require.Equal(t, int64(1), s.offset("t"))
	require.Equal(t, int64(-1), s.offset("u"))
	require.NoError(t, m.leave())
	refused, err = s.deleteOffsets("t")
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Equal(t, int64(-1), s.offset("t"))

	s = newSim(t)
	r := s.client().request()
	r.ProtocolType, r.RequireID = "connect", false
	s.do(s.g.Join(s.now, s.ticket(), r))
	_, err = s.deleteOffsets("t")
	require.Equal(t, ErrNonEmpty, err)
}

func TestDropTopic(t *testing.T) {
	s := newSim(t)
	m := stable(t, s, 1)[0]
	require.NoError(t, m.commit("t", 1))
	require.NoError(t, m.commit("u", 2))
	s.do(s.g.DropTopic(s.now, "t"))
	require.Equal(t, int64(-1), s.offset("t"))
	require.Equal(t, int64(2), s.offset("u"))

	s.hold = true
	require.Equal(t, errWaiting, m.commit("t", 3))
	s.do(s.g.DropTopic(s.now, "t"))
	s.hold = false
	s.store(nil)
	require.Equal(t, int64(-1), s.offset("t"), "a commit that was on its way")
	s.reload()
	require.Equal(t, int64(-1), s.offset("t"))
}

// reload makes the group anew from what was stored.
func (s *sim) reload(extra ...offsets.Event) {
	r := newRestorer()
	for _, e := range s.stored {
		require.NoError(s, r.apply(offsets.Event{Entry: e, Producer: offsets.None}))
	}
	for _, e := range extra {
		require.NoError(s, r.apply(e))
	}
	s.g = r.of("g").restore("g", &s.cfg, s.now)
}

func TestRestore(t *testing.T) {
	s, leader, follower := staticPair(t)
	require.NoError(t, leader.commit("t", 7))
	before := s.g.Describe()
	s.reload()
	require.Equal(t, before, s.g.Describe())
	require.Equal(t, int64(7), s.offset("t"))
	require.NoError(t, leader.heartbeat())
	require.NoError(t, follower.heartbeat())
	require.Equal(t, "for "+follower.id, string(follower.trySync().Assignment))
	require.Equal(t, ErrIllegalGeneration, s.commit(Member{ID: leader.id, Generation: 1}, "t", 8))
	_, subscribed := s.g.subscribed["t"]
	require.True(t, subscribed)
	s.pass(follower.session)
	require.Equal(t, Empty, s.g.State(), "sessions count from the load")
	gen := s.g.generation
	s.reload()
	require.Equal(t, Empty, s.g.State())
	require.Equal(t, gen, s.g.generation, "generations only rise")
	require.Equal(t, "consumer", s.g.Overview().ProtocolType)

	s = newSim(t)
	require.NoError(t, s.commit(nobody, "t", 1))
	s.reload()
	require.Equal(t, Empty, s.g.State())
	require.Empty(t, s.g.Overview().ProtocolType)
	s.pass(7 * day)
	s.expire()
	require.Equal(t, Dead, s.g.State())
}

func TestRestoreMoreThanAllowed(t *testing.T) {
	s := newSim(t)
	all := stable(t, s, 3)
	s.cfg.MaxSize = 2
	s.reload()
	require.Equal(t, PreparingRebalance, s.g.State())
	require.Nil(t, all[2].tryJoin())
	require.Nil(t, all[1].tryJoin())
	require.Equal(t, ErrMaxSize, all[0].tryJoin().Err)
	require.NoError(t, all[1].joinAnswer().Err)
	require.Len(t, s.g.members, 2)
}

func TestRestoreTransactions(t *testing.T) {
	entry := func(topic string, at int64) offsets.Entry {
		return offsets.Entry{Key: offsets.OffsetKey("g", topic, 0), Offset: &offsets.Offset{Offset: at, ExpireTimestamp: offsets.None}}
	}
	s := newSim(t)
	require.NoError(t, s.commit(nobody, "t", 1))
	s.reload(offsets.Event{Producer: 5, Entry: entry("t", 2)}, offsets.Event{Producer: 6, Entry: entry("u", 3)},
		offsets.Event{Producer: 7, Entry: entry("v", 4)}, offsets.Event{Producer: 6, Ended: offsets.Committed}, offsets.Event{Producer: 7, Ended: offsets.Aborted})
	require.Equal(t, int64(1), s.offset("t"))
	require.Equal(t, int64(3), s.offset("u"))
	require.Equal(t, int64(-1), s.offset("v"))
	got := s.g.Fetch([]TopicPartition{{"t", 0}, {"u", 0}, {"v", 0}}, true)
	require.Equal(t, ErrUnstable, got[0].Err)
	require.EqualValues(t, -1, got[0].Offset.Offset)
	require.NoError(t, got[1].Err)
	require.NoError(t, got[2].Err)
	require.Len(t, s.g.Fetch(nil, true), 2)
}

func TestDescribe(t *testing.T) {
	s := newSim(t)
	all := stable(t, s, 2)
	d := s.g.Describe()
	require.Equal(t, Description{ID: "g", ProtocolType: "consumer", Protocol: "range", State: Stable, Members: d.Members}, d)
	require.Equal(t, "for "+all[0].id, string(d.Members[0].Assignment))
	require.Equal(t, all[0].protos[0].Metadata, d.Members[0].Metadata)
	require.Nil(t, all[0].tryJoin())
	d = s.g.Describe()
	require.Empty(t, d.Protocol)
	require.Len(t, d.Members, 2)
	require.Empty(t, d.Members[0].Assignment, "about to change")
}

func FuzzSubscription(f *testing.F) {
	f.Add(subscribe("range", "t", "u")[0].Metadata)
	f.Add([]byte{0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics := map[string]struct{}{}
		if parseSubscription(b, topics) && len(topics)*2 > len(b) {
			t.Fatalf("%d topics in %d bytes", len(topics), len(b))
		}
	})
}
