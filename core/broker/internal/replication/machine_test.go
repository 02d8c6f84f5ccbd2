package replication

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

var (
	then = time.Unix(1_700_000_000, 0)
	one  = partition.ID{Topic: "t"}
)

func at(offset int64, last int32) partition.Position {
	return partition.Position{LeaderEpoch: 5, Offset: offset, LastEpoch: last}
}

func start(offset int64, last int32, hw int64) (*machine, *follower) {
	m := newMachine(time.Second, unlimited)
	return m, m.add(nil, one, [16]byte{1}, at(offset, last), hw, then)
}

func unlimited(*follower, time.Time) time.Time { return time.Time{} }

func noEpochs(int32) (int32, int64) { return -1, -1 }

func TestLogWithoutEpochsIsCutToItsHighWatermark(t *testing.T) {
	m, f := start(10, -1, 7)
	todo := m.next(then)
	require.Equal(t, cutting, todo.phase)
	require.Equal(t, []*follower{f}, todo.parts)
	m.did(f, truncate, at(7, -1), nil, then)
	require.True(t, m.next(then).fetch)

	m, _ = start(7, -1, 7)
	require.True(t, m.next(then).fetch, "nothing is above it")
	m, _ = start(10, 3, 7)
	require.True(t, m.next(then).fetch, "the leader compares the epoch")
}

func TestAnswersToAFetch(t *testing.T) {
	for _, tc := range []struct {
		name  string
		r     fetchResult
		own   lookUp
		step  step
		phase phase
		pause time.Duration
	}{
		{name: "records", r: fetchResult{hw: 9}, step: step{do: takeRecords}},
		{name: "the leader knows the epoch, which ended earlier", r: fetchResult{diverging: true, divergeAt: 4, divergeTo: 6},
			own: func(int32) (int32, int64) { return 4, 10 }, step: step{truncate, 6}},
		{name: "its own epoch ended even earlier", r: fetchResult{diverging: true, divergeAt: 3, divergeTo: 8},
			own: func(int32) (int32, int64) { return 3, 5 }, step: step{truncate, 5}},
		{name: "it never had the leader's epoch", r: fetchResult{diverging: true, divergeAt: 3, divergeTo: 8},
			own: func(int32) (int32, int64) { return 2, 4 }, step: step{truncate, 4}, phase: comparing},
		{name: "it knows nothing of epochs", r: fetchResult{diverging: true, divergeAt: 3, divergeTo: 8}, own: noEpochs, step: step{truncate, 8}},
		{name: "a leader that makes no sense", r: fetchResult{diverging: true, divergeAt: 3, divergeTo: -1}, own: noEpochs, pause: firstPause},
		{name: "out of range", r: fetchResult{code: kerr.OffsetOutOfRange.Code}, phase: lost},
		{name: "fenced", r: fetchResult{code: kerr.FencedLeaderEpoch.Code}, phase: idle},
		{name: "the leader doesn't know yet", r: fetchResult{code: kerr.UnknownLeaderEpoch.Code}, pause: firstPause},
		{name: "not leader", r: fetchResult{code: kerr.NotLeaderForPartition.Code}, pause: firstPause},
		{name: "failed log dir", r: fetchResult{code: kerr.KafkaStorageError.Code}, pause: firstPause},
		{name: "something new", r: fetchResult{code: 999}, pause: firstPause},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, f := start(10, 4, 7)
			require.Equal(t, tc.step, m.answered(f, &tc.r, tc.own, then))
			require.Equal(t, tc.phase, f.phase)
			if tc.pause == 0 {
				require.Zero(t, f.until)
				return
			}
			require.Equal(t, then.Add(tc.pause), f.until)
			require.Equal(t, todo{until: f.until}, m.next(then))
			require.True(t, m.next(f.until).fetch)
		})
	}
}

func TestPausesGrow(t *testing.T) {
	m, f := start(10, 4, 7)
	now := then
	var all []time.Duration
	for range 9 {
		m.answered(f, &fetchResult{code: kerr.UnknownLeaderEpoch.Code}, noEpochs, now)
		all = append(all, f.until.Sub(now)/time.Millisecond)
		now = f.until
		require.True(t, m.next(now).fetch)
	}
	require.Equal(t, []time.Duration{10, 20, 40, 80, 160, 320, 640, 1000, 1000}, all)
	m.answered(f, &fetchResult{}, noEpochs, now)
	m.answered(f, &fetchResult{code: kerr.UnknownLeaderEpoch.Code}, noEpochs, now)
	require.Equal(t, firstPause, f.until.Sub(now))
}

func TestOutOfRange(t *testing.T) {
	for _, tc := range []struct {
		name       string
		code       int16
		start, end int64
		step       step
		phase      phase
		pauses     bool
	}{
		{name: "longer than the leader", start: 0, end: 8, step: step{truncate, 8}},
		{name: "before the leader's start", start: 30, end: 40, step: step{restart, 30}},
		{name: "within after all", start: 5, end: 20, pauses: true},
		{name: "refused", code: kerr.NotLeaderForPartition.Code, phase: lost, pauses: true},
		{name: "fenced", code: kerr.FencedLeaderEpoch.Code, phase: idle},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, f := start(10, 4, 7)
			m.answered(f, &fetchResult{code: kerr.OffsetOutOfRange.Code}, noEpochs, then)
			require.Equal(t, lost, m.next(then).phase)
			require.Equal(t, tc.step, m.ranged(f, tc.code, tc.start, tc.end, then))
			require.Equal(t, tc.phase, f.phase)
			require.Equal(t, tc.pauses, !f.until.IsZero())
		})
	}
}

func TestComparing(t *testing.T) {
	for _, tc := range []struct {
		name  string
		code  int16
		epoch int32
		end   int64
		own   lookUp
		step  step
		phase phase
	}{
		{name: "the leader has all of it", epoch: 4, end: 30, own: func(int32) (int32, int64) { return 4, 10 }, step: step{truncate, 10}},
		{name: "less", epoch: 4, end: 8, own: func(int32) (int32, int64) { return 4, 10 }, step: step{truncate, 8}},
		{name: "another epoch again", epoch: 3, end: 8, own: func(int32) (int32, int64) { return 1, 2 }, step: step{truncate, 2}, phase: comparing},
		{name: "the leader knows nothing", epoch: -1, end: -1, step: step{truncate, 7}},
		{name: "the leader names no epoch", epoch: -1, end: 9, step: step{truncate, 9}},
		{name: "fenced", code: kerr.FencedLeaderEpoch.Code, phase: idle},
		{name: "refused", code: kerr.NotLeaderForPartition.Code, phase: comparing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, f := start(10, 4, 7)
			m.enter(f, comparing)
			require.Equal(t, comparing, m.next(then).phase)
			require.Equal(t, tc.step, m.compared(f, tc.code, tc.epoch, tc.end, tc.own, 7, then))
			require.Equal(t, tc.phase, f.phase)
		})
	}
}

func TestCutsThatChangeNothingAreNotAskedForAtOnce(t *testing.T) {
	m, f := start(10, 4, 7)
	s := m.answered(f, &fetchResult{diverging: true, divergeAt: 4, divergeTo: 10}, func(int32) (int32, int64) { return 4, 10 }, then)
	m.did(f, s.do, at(10, 4), nil, then)
	require.False(t, m.next(then).fetch)
	require.True(t, m.next(then.Add(time.Second)).fetch)
}

func TestErrorsOfTheLog(t *testing.T) {
	m, f := start(10, 4, 7)
	m.did(f, takeRecords, at(12, 4), errors.New("corrupt"), then)
	require.EqualValues(t, 12, f.at.Offset, "what came before the bad batch stays")
	require.Equal(t, then.Add(firstPause), m.next(then).until)
	for _, err := range []error{partition.ErrNotFollower, partition.ErrUnknownPartition, partition.ErrOffline} {
		m, f = start(10, 4, 7)
		m.did(f, takeRecords, at(10, 4), err, then)
		require.Equal(t, idle, f.phase)
		require.Equal(t, todo{}, m.next(then.Add(time.Hour)), "%v ends it until the controller speaks", err)
	}
	m.add(nil, one, [16]byte{1}, at(10, 4), 7, then)
	require.True(t, m.next(then).fetch)
	require.Zero(t, m.answered(f, &fetchResult{hw: 20}, noEpochs, then), "an answer for what was fetched before")
}

// history is a log as epochs see it: at which offset each began, and where it ends.
type history struct {
	starts []struct {
		epoch int32
		at    int64
	}
	end int64
}

func (h *history) write(epoch int32, n int64) {
	if k := len(h.starts); k == 0 || h.starts[k-1].epoch < epoch {
		h.starts = append(h.starts, struct {
			epoch int32
			at    int64
		}{epoch, h.end})
	}
	h.end += n
}

func (h *history) cut(to int64) {
	h.end = min(h.end, to)
	for k := len(h.starts); k > 0 && h.starts[k-1].at >= to; k-- {
		h.starts = h.starts[:k-1]
	}
}

func (h *history) last() int32 {
	if k := len(h.starts); k > 0 {
		return h.starts[k-1].epoch
	}
	return -1
}

func (h *history) endOf(epoch int32) (int32, int64) {
	if len(h.starts) == 0 || epoch < 0 || epoch > h.last() {
		return -1, -1
	}
	if epoch == h.last() {
		return epoch, h.end
	}
	for i, s := range h.starts {
		if s.epoch > epoch {
			if i == 0 {
				return epoch, s.at
			}
			return h.starts[i-1].epoch, s.at
		}
	}
	return -1, -1
}

func (h *history) at(offset int64) int32 {
	e := int32(-1)
	for _, s := range h.starts {
		if s.at <= offset {
			e = s.epoch
		}
	}
	return e
}

// TestDivergenceIsCut gives a follower and a leader random histories with a common beginning, and plays their dialogue: in the end the
// follower holds a beginning of the leader's log, and no less than what they have in common; on both paths.
func TestDivergenceIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var leader, own history
		epoch := int32(0)
		grow := func(what string, most int, both bool, hs ...*history) {
			for range rapid.IntRange(0, most).Draw(t, what) {
				epoch += int32(rapid.IntRange(0, 2).Draw(t, "epochs"))
				if both || len(hs) == 1 {
					n := int64(rapid.IntRange(0, 4).Draw(t, "records"))
					for _, h := range hs {
						h.write(epoch, n)
					}
					continue
				}
				// An epoch has one leader: only one of the two has its records.
				epoch++
				hs[rapid.IntRange(0, len(hs)-1).Draw(t, "who")].write(epoch, int64(rapid.IntRange(0, 4).Draw(t, "records")))
			}
		}
		grow("common", 4, true, &leader, &own)
		common := leader.end
		epoch++
		grow("apart", 6, false, &leader, &own)
		epoch++
		leader.write(epoch, 0) // the leader begins its epoch

		hw := int64(rapid.IntRange(0, int(common)).Draw(t, "hw"))
		m := newMachine(time.Second, unlimited)
		f := m.add(nil, one, [16]byte{1}, partition.Position{LeaderEpoch: epoch, Offset: own.end, LastEpoch: own.last()}, hw, then)
		if f.phase == fetching && rapid.Bool().Draw(t, "compare first") {
			m.enter(f, comparing)
		}
		now := then
		carryOut := func(s step) {
			if s.do == truncate {
				require.LessOrEqual(t, s.to, own.end)
				own.cut(s.to)
				m.did(f, s.do, partition.Position{LeaderEpoch: epoch, Offset: own.end, LastEpoch: own.last()}, nil, now)
			}
		}
		for round := 0; ; round++ {
			require.Less(t, round, 30, "no end of it")
			todo := m.next(now)
			if !todo.fetch && len(todo.parts) == 0 {
				now = todo.until
				continue
			}
			switch {
			case todo.phase == cutting:
				carryOut(step{truncate, hw})
				continue
			case todo.phase == comparing:
				e, end := leader.endOf(f.at.LastEpoch)
				carryOut(m.compared(f, 0, e, end, own.endOf, hw, now))
				continue
			case todo.phase == lost:
				carryOut(m.ranged(f, 0, 0, leader.end, now))
				continue
			}
			// The leader's side of Fetch.
			r := fetchResult{hw: hw}
			if f.at.LastEpoch >= 0 {
				e, end := leader.endOf(f.at.LastEpoch)
				if end < 0 {
					r.code = kerr.OffsetOutOfRange.Code
				} else if e < f.at.LastEpoch || end < f.at.Offset {
					r.diverging, r.divergeAt, r.divergeTo = true, e, end
				}
			}
			if r.code == 0 && !r.diverging && f.at.Offset > leader.end {
				r.code = kerr.OffsetOutOfRange.Code
			}
			s := m.answered(f, &r, own.endOf, now)
			if s.do == takeRecords {
				break
			}
			carryOut(s)
		}
		require.GreaterOrEqual(t, own.end, min(hw, common), "committed records were cut")
		require.LessOrEqual(t, own.end, leader.end)
		for o := range own.end {
			require.Equal(t, leader.at(o), own.at(o), "offset %d", o)
		}
	})
}

func TestQuotasHoldWhoLags(t *testing.T) {
	paid := then.Add(3 * time.Second)
	m := newMachine(time.Second, func(f *follower, now time.Time) time.Time {
		if f.lags() && now.Before(paid) {
			return min2(now.Add(time.Second), paid)
		}
		return time.Time{}
	})
	f := m.add(nil, one, [16]byte{1}, at(10, 4), 7, then)
	require.Equal(t, todo{until: then.Add(time.Second)}, m.next(then), "a new one, of which nothing is known")
	require.Equal(t, todo{until: then.Add(2 * time.Second)}, m.next(then.Add(time.Second)))
	require.True(t, m.next(paid).fetch)
	paid = then.Add(9 * time.Second)
	m.answered(f, &fetchResult{hw: 20}, noEpochs, then.Add(4*time.Second))
	m.hold(f, then.Add(4*time.Second))
	require.False(t, m.next(then.Add(4*time.Second)).fetch)
	require.False(t, m.next(then.Add(8*time.Second)).fetch)
	require.True(t, m.next(then.Add(9*time.Second)).fetch)
	paid = then.Add(99 * time.Second)
	m.answered(f, &fetchResult{hw: 10}, noEpochs, then.Add(10*time.Second))
	m.hold(f, then.Add(10*time.Second))
	require.True(t, m.next(then.Add(10*time.Second)).fetch, "who is caught up isn't held")
}

func min2(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
