package replication

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/broker/internal/fetchsession"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// TestSessionsAgree plays random changes on a follower's half of a session against the leader's half: after each request the leader
// knows just what is wanted, and from where.
func TestSessionsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := uint32(0)
		cache := fetchsession.NewCache(fetchsession.Options{Slots: 10, EvictAfter: 1 << 40, MaxPartitions: 1000, Random: func() uint32 { next++; return next }})
		s := newSession()
		parts := map[int]*follower{}
		starts := map[*follower]int64{}
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				n := rapid.IntRange(0, 6).Draw(t, "partition")
				f := parts[n]
				switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
				case f == nil || what == 0:
					if f != nil {
						s.drop(f)
					}
					f = part([]string{"a", "b"}[n%2], int32(n), byte(rapid.SampledFrom([]int{1, 1, 1, 1, 0, 2}).Draw(t, "id")))
					parts[n] = f
					s.want(f)
				case what == 1:
					s.drop(f)
					delete(parts, n)
				case what == 2:
					s.drop(f) // it pauses
				case what == 3:
					starts[f]++
					s.want(f)
				default:
					f.at.Offset++
					s.want(f)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
				s.reset(rapid.SampledFrom([]int32{0, s.id}).Draw(t, "id"))
			}
			asked, gone := s.prepare(s.nameless == 0, maps.Values(parts), func(f *follower) int64 { return starts[f] })
			q := fetchsession.Request{SessionID: s.id, Epoch: s.epoch, Privileged: true, TopicIDs: s.byID}
			for _, f := range asked {
				q.Partitions = append(q.Partitions, fetchsession.Partition{Key: theirs(f.key), Params: fetchsession.Params{Offset: f.told.offset,
					LogStart: f.told.start, LeaderEpoch: f.told.leaderEpoch, LastFetchedEpoch: f.told.lastEpoch}})
			}
			for _, k := range gone {
				q.Forgotten = append(q.Forgotten, theirs(k))
			}
			session, err := cache.Begin(q, 0, nil)
			require.NoError(t, err)
			id := session.SessionID()
			if session.Incremental() {
				require.NotZero(t, id)
			} else {
				id = session.Finish(0, make([]fetchsession.Answer, len(session.Partitions)))
			}
			s.answered(id)

			var wanted []partition.ID
			for _, f := range parts {
				if f.wanted {
					wanted = append(wanted, f.id)
				}
			}
			require.Len(t, session.Partitions, len(wanted))
			require.Equal(t, len(wanted), s.wanted)
			for _, p := range session.Partitions {
				f := parts[int(p.Key.Partition)]
				require.NotNil(t, f)
				require.True(t, f.wanted)
				require.Equal(t, theirs(f.key), p.Key)
				require.Equal(t, f.at.Offset, p.Offset)
				require.Equal(t, starts[f], p.LogStart)
			}
		}
	})
}

func theirs(k sessionKey) fetchsession.Key {
	return fetchsession.Key{Topic: k.topic, ID: k.id, Partition: k.partition}
}

func TestNothingNewIsAnEmptyRequest(t *testing.T) {
	s := newSession()
	f := part("a", 0, 1)
	s.want(f)
	all := func(yield func(*follower) bool) { yield(f) }
	start := func(*follower) int64 { return 0 }
	asked, _ := s.prepare(true, all, start)
	require.Len(t, asked, 1)
	s.answered(5)
	require.EqualValues(t, []int32{5, 1}, []int32{s.id, s.epoch})
	s.want(f)
	asked, gone := s.prepare(true, all, start)
	require.Empty(t, asked)
	require.Empty(t, gone)
	s.epoch = 1<<31 - 1
	s.answered(5)
	require.EqualValues(t, 1, s.epoch)
	s.answered(0)
	require.EqualValues(t, []int32{0, 0}, []int32{s.id, s.epoch}, "the leader has no room for sessions")
}
