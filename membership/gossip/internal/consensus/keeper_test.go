package consensus

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKeeper(t *testing.T) {
	at := func(s float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second)))
	}
	k := newKeeper(4*time.Second, []uint64{1, 2}, at(0))
	require.Equal(t, at(4), k.next())
	require.True(t, k.keep(1, at(3)))
	require.False(t, k.keep(3, at(3)), "one that nobody has opened")
	require.Equal(t, at(4), k.next())
	require.Equal(t, []uint64{2}, k.due(at(4)))
	require.False(t, k.keep(2, at(4)), "it is being ended")
	require.Empty(t, k.due(at(4.5)), "once is enough")
	k.close(2)
	require.Equal(t, at(7), k.next())
	k.open(4, at(5))

	// The leader itself has slept: nobody could reach it.
	require.Empty(t, k.due(at(100)))
	require.Equal(t, at(100), k.next())
	require.True(t, k.keep(1, at(99)))
	require.Equal(t, at(102), k.next())
	require.Equal(t, []uint64{4}, k.due(at(102)))
	k.close(4)
	k.close(1)
	require.True(t, k.next().IsZero())
	require.Empty(t, k.due(at(1000)))
}

// TestClockSteps steps the wall clock by hours, to and fro, between all that a keeper is told: only monotonic time decides, so that nobody is
// taken for dead before its time, or lives for ever.
func TestClockSteps(t *testing.T) {
	start := time.Now()
	at := func(ms int, step time.Duration) time.Time {
		return stepped(start.Add(time.Duration(ms)*time.Millisecond), step)
	}
	for _, steps := range [][4]time.Duration{{0, time.Hour, -time.Hour, 0}, {-time.Hour, 2 * time.Hour, 24 * time.Hour, -24 * time.Hour}} {
		k := newKeeper(time.Second, []uint64{1, 2}, at(0, steps[0]))
		require.True(t, k.keep(1, at(500, steps[1])))
		require.InDelta(t, 500*time.Millisecond, k.next().Sub(at(500, steps[2])), float64(time.Microsecond))
		require.Empty(t, k.due(at(999, steps[2])))
		require.Equal(t, []uint64{2}, k.due(at(1000, steps[3])))
		k.close(2)
		require.InDelta(t, 500*time.Millisecond, k.next().Sub(at(1000, steps[1])), float64(time.Microsecond))
		require.Empty(t, k.due(at(1499, steps[1])))
		require.Equal(t, []uint64{1}, k.due(at(1500, steps[2])))
	}
	// And what tells such times apart has been told of them.
	require.Equal(t, time.Hour, at(0, time.Hour).Round(0).Sub(at(0, 0).Round(0)))
	require.Equal(t, time.Duration(0), at(0, time.Hour).Sub(at(0, 0)))
}

// stepped is a time at which the wall clock has been stepped, and the monotonic one has not: as time.Now gives it then.
func stepped(t time.Time, step time.Duration) time.Time {
	// The layout of time.Time (Go 1.9 and later): a flag, 33 bits of seconds since 1885, 30 of nanoseconds; then the monotonic reading.
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(int64(step/time.Second) << 30)
	return t
}

// TestKeeperNeverEarly plays random heartbeats and delays: no session is ended before it was silent for the timeout.
func TestKeeperNeverEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		k := newKeeper(time.Second, nil, now)
		heard := map[uint64]time.Time{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 800).Draw(t, "passes")) * time.Millisecond)
			id := rapid.Uint64Range(1, 3).Draw(t, "session")
			switch _, open := heard[id]; {
			case !open:
				k.open(id, now)
				heard[id] = now
			case rapid.Bool().Draw(t, "heartbeat"):
				require.True(t, k.keep(id, now))
				heard[id] = now
			default:
				over := k.due(now)
				for _, id := range over {
					require.GreaterOrEqual(t, now.Sub(heard[id]), time.Second)
					k.close(id)
					delete(heard, id)
				}
				next := k.next()
				require.Equal(t, len(heard) == 0, next.IsZero())
				require.False(t, slices.Contains(over, 0))
			}
		}
	})
}
