package partition

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

var epoch0 = time.Unix(1_700_000_000, 0)

func leaderOf(replicas, isr []int32, minISR int) *state {
	s := &state{self: replicas[0], minISR: minISR, maxLag: 30 * time.Second}
	s.lead(Assignment{Leader: replicas[0], LeaderEpoch: 1, Replicas: replicas, ISR: isr}, 0, 0, epoch0)
	return s
}

func TestAloneCommitsAtOnce(t *testing.T) {
	s := leaderOf([]int32{1}, []int32{1}, 3) // min.insync.replicas above the number of replicas counts as that number
	require.False(t, s.underMinISR())
	e := s.appended(5, epoch0)
	require.True(t, e.hwMoved)
	require.EqualValues(t, 5, s.hw)
}

func TestHighWatermarkIsWhatAllInSyncHold(t *testing.T) {
	s := leaderOf([]int32{1, 2, 3}, []int32{1, 2, 3}, 2)
	require.False(t, s.appended(10, epoch0).hwMoved)
	_, ok := s.fetched(2, 10, 0, epoch0)
	require.True(t, ok)
	require.Zero(t, s.hw, "follower 3 has not fetched")
	s.fetched(3, 4, 0, epoch0)
	require.EqualValues(t, 4, s.hw)
	_, ok = s.fetched(9, 4, 0, epoch0)
	require.False(t, ok, "no replica")
}

func TestLaggingFollowerLeavesAndReturns(t *testing.T) {
	s := leaderOf([]int32{1, 2}, []int32{1, 2}, 1)
	s.appended(10, epoch0)
	s.fetched(2, 3, 0, epoch0)
	require.Nil(t, s.tick(epoch0.Add(29*time.Second)).propose)
	e := s.tick(epoch0.Add(31 * time.Second))
	require.Equal(t, []int32{1}, e.propose.ISR)
	require.Equal(t, []journal.Event{journal.FellBehind{Follower: 2, Behind: 7, Lag: journal.Millis(31 * time.Second), Unheard: journal.Millis(31 * time.Second),
		Fetched: true, Allowed: journal.Millis(30 * time.Second), BrokerUp: true, LeaderEnd: 10, Epoch: 1, Remaining: 1}}, e.events)
	require.EqualValues(t, 3, s.hw, "the old set counts until the new one is recorded")
	require.Nil(t, s.tick(epoch0.Add(40*time.Second)).propose, "one proposal at a time")
	require.True(t, s.isrAnswered(*s.proposal, true, []int32{1}, 7, epoch0.Add(41*time.Second)).hwMoved)
	require.EqualValues(t, 10, s.hw)

	e, _ = s.fetched(2, 9, 0, epoch0.Add(50*time.Second))
	require.Nil(t, e.propose, "below the high watermark")
	e, _ = s.fetched(2, 10, 0, epoch0.Add(51*time.Second))
	require.Equal(t, []int32{1, 2}, e.propose.ISR)
	require.Equal(t, []journal.Event{journal.CaughtUp{Follower: 2, End: 10}}, e.events)
	s.appended(20, epoch0.Add(52*time.Second))
	require.EqualValues(t, 10, s.hw, "who may already be in the set counts")
	e = s.isrAnswered(*s.proposal, false, nil, 0, epoch0.Add(53*time.Second))
	require.Equal(t, []journal.Event{journal.ISRRefused{Wanted: []int32{1, 2}}}, e.events)
}

// TestWhoIsGoneDoesntCount: a follower that left the set in an orderly way was caught up to the end; its broker is gone, so nobody waits
// for it.
func TestWhoIsGoneDoesntCount(t *testing.T) {
	s := leaderOf([]int32{1, 2, 3}, []int32{1, 3}, 2)
	gone := false
	s.alive = func(broker int32) bool { return broker != 2 || !gone }
	s.appended(10, epoch0)
	e, _ := s.fetched(2, 10, 0, epoch0)
	require.NotNil(t, e.propose)
	s.isrAnswered(*e.propose, false, nil, 0, epoch0)
	s.appended(20, epoch0)
	s.fetched(3, 20, 0, epoch0)
	require.EqualValues(t, 10, s.hw, "it may be about to join")
	gone = true
	e, _ = s.fetched(3, 20, 0, epoch0)
	require.True(t, e.hwMoved)
	require.EqualValues(t, 20, s.hw)
}

func TestMinISRHoldsTheHighWatermark(t *testing.T) {
	s := leaderOf([]int32{1, 2, 3}, []int32{1}, 2)
	require.True(t, s.underMinISR())
	require.False(t, s.appended(10, epoch0).hwMoved)
}

func TestNewLeaderKnowsNothingOfItsFollowers(t *testing.T) {
	s := leaderOf([]int32{1, 2}, []int32{1, 2}, 1)
	s.appended(10, epoch0)
	s.fetched(2, 10, 0, epoch0)
	require.EqualValues(t, 10, s.hw)
	s.appended(15, epoch0)
	s.lead(Assignment{Leader: 1, LeaderEpoch: 2, Replicas: []int32{1, 2}, ISR: []int32{1, 2}}, 15, 10, epoch0)
	require.EqualValues(t, 10, s.hw)
	require.False(t, s.knowsHighWatermark())
	s.fetched(2, 15, 0, epoch0)
	require.True(t, s.knowsHighWatermark())
}

// TestStateInvariants plays random histories of one leader with its followers.
func TestStateInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := []int32{1, 2, 3, 4}[:rapid.IntRange(1, 4).Draw(t, "replicas")]
		s := leaderOf(replicas, slices.Clone(replicas), rapid.IntRange(1, 3).Draw(t, "minISR"))
		now := epoch0
		held := map[int32]int64{}          // what each follower has proven to hold under this epoch
		recorded := slices.Clone(replicas) // the in-sync set that the controller knows
		var partitionEpoch int32
		step := func(e effects) {
			if e.propose != nil {
				require.Contains(t, e.propose.ISR, s.self)
				require.Equal(t, partitionEpoch, e.propose.PartitionEpoch)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before, underMin := s.hw, s.underMinISR()
			now = now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				step(s.appended(s.end+int64(rapid.IntRange(0, 5).Draw(t, "n")), now))
			case 1:
				if len(replicas) == 1 {
					continue
				}
				id := rapid.SampledFrom(replicas[1:]).Draw(t, "follower")
				offset := min(s.end, held[id]+int64(rapid.IntRange(0, 6).Draw(t, "fetched")))
				held[id] = offset
				e, ok := s.fetched(id, offset, 0, now)
				require.True(t, ok)
				step(e)
			case 2:
				step(s.tick(now))
			case 3:
				if s.proposal == nil {
					continue
				}
				ok := rapid.Bool().Draw(t, "ok")
				if ok {
					recorded = slices.Clone(s.proposal.ISR)
					partitionEpoch++
				}
				step(s.isrAnswered(*s.proposal, ok, recorded, partitionEpoch, now))
			case 4:
				if rapid.IntRange(0, 9).Draw(t, "rare") > 0 {
					continue
				}
				a := s.Assignment
				a.LeaderEpoch++
				a.ISR = slices.Clone(recorded)
				a.PartitionEpoch = partitionEpoch
				clear(held)
				step(s.lead(a, s.end, s.hw, now))
			}
			require.GreaterOrEqual(t, s.hw, before, "the high watermark went back")
			require.LessOrEqual(t, s.hw, s.end)
			if s.hw > before {
				require.False(t, underMin && s.underMinISR(), "moved under min.insync.replicas")
				for _, id := range recorded {
					if id != s.self {
						require.GreaterOrEqual(t, held[id], s.hw, "in-sync follower %d lacks committed data", id)
					}
				}
			}
		}
	})
}

func TestWhoIsGoneIsNoLongerWaitedFor(t *testing.T) {
	s := leaderOf([]int32{1, 2}, []int32{1}, 1)
	dead := false
	s.alive = func(int32) bool { return !dead }
	s.fetched(2, 0, 0, epoch0)
	require.False(t, s.isrAnswered(*s.proposal, false, nil, 0, epoch0).hwMoved)
	s.appended(5, epoch0)
	require.Zero(t, s.hw, "the follower is about to be in sync")
	require.False(t, s.tick(epoch0).hwMoved)
	dead = true
	require.True(t, s.tick(epoch0).hwMoved)
	require.EqualValues(t, 5, s.hw)
}
