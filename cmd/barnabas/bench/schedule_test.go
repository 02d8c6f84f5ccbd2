package bench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestScheduleIsEven(t *testing.T) {
	const n = 3
	var all []int64
	for i := range n {
		s := newSchedule(1000, 30, i, n) // ten a second each
		require.True(t, s.paced())
		for range 1000 {
			all = append(all, s.next)
			s.step()
		}
		require.InDelta(t, 1000+float64(i)*1e9/30+100e9, s.next, 2, "errors of rounding don't add up")
	}
	require.EqualValues(t, 1000, all[0])
	none := newSchedule(1000, 0, 0, 1)
	require.False(t, none.paced())
}

// TestWhatComesLateCounts holds that nothing which is due in the window is forgotten: not what is answered after its end, and
// not what couldn't be sent in it.
func TestWhatComesLateCounts(t *testing.T) {
	m := newMeter(1)
	m.acks = newRecorder(1)
	w := m.worker(m.latency)
	m.from.Store(1000)
	w.done(999, 1001, 1, 10, 20)
	m.to.Store(m.now())
	end := m.to.Load()
	w.done(end-1, end+5_000_000_000, 1, 10, 20)
	w.done(end+1, end+2, 1, 10, 20)
	w.giveUp(end-3_000_000_000, 1_000_000_000, 7)
	require.Equal(t, counts{requests: 1, records: 1, bytes: 10, wire: 20, unsent: 21}, m.counts())
	require.EqualValues(t, 3, w.acknowledged.Load())
	m.latency.collect()
	require.EqualValues(t, 4, m.latency.total.TotalCount())
	require.InEpsilon(t, 5e9, m.latency.total.Max(), 0.01)
	producer := m.worker(m.acks)
	producer.done(end-1, end-1, 5, 50, 60)
	require.Equal(t, counts{requests: 2, records: 1, bytes: 10, wire: 80, unsent: 21}, m.counts(), "records count when they arrive")
}

func TestSampleTimes(t *testing.T) {
	m := newMeter(1)
	line := timeline{meter: m, every: time.Second}
	for quarter := range 10 {
		line.sample(time.Duration(quarter)*time.Second/4+time.Duration(quarter)*time.Millisecond, false)
	}
	line.sample(2500*time.Millisecond, true)
	line.sample(2500*time.Millisecond, true)
	require.Len(t, line.samples, 3)
	require.InDelta(t, 2.5, line.samples[2].Second, 0.01)
}

func TestSearch(t *testing.T) {
	// A broker that sustains a rate, and no more.
	broker := func(most float64) func(context.Context, float64) (*Result, error) {
		return func(_ context.Context, rate float64) (*Result, error) {
			r := &Result{Rate: rate, Seconds: 1, Records: int64(rate), Latency: Latency{P99: 1000}}
			switch {
			case rate == 0:
				r.Records = 100_000
			case rate > most:
				r.Latency.P99 = 50_000
			}
			return r, nil
		}
	}
	for _, most := range []float64{90_000, 50_000, 1234} {
		s := Search{MaxP99: 10 * time.Millisecond, Run: broker(most)}
		best, all, err := s.Find(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, best.Rate, most)
		require.Greater(t, best.Rate*closeEnough, most*0.999)
		require.Less(t, len(all), 30)
	}
	hiccups := map[float64]bool{} // each rate fails at first
	calm := broker(90_000)
	best, _, err := (&Search{MaxP99: 10 * time.Millisecond, Run: func(ctx context.Context, rate float64) (*Result, error) {
		r, err := calm(ctx, rate)
		if !hiccups[rate] {
			hiccups[rate], r.Latency.P99 = true, 1e6
		}
		return r, err
	}}).Find(t.Context())
	require.NoError(t, err)
	require.Greater(t, best.Rate, 80_000.0, "one failure doesn't decide")
	_, _, err = (&Search{MaxP99: time.Millisecond / 2, Run: broker(1e6)}).Find(t.Context())
	require.ErrorContains(t, err, "no rate is sustained")
	_, _, err = (&Search{Run: broker(1)}).Find(t.Context())
	require.ErrorContains(t, err, "positive")
	slow := &Result{Rate: 100, Seconds: 1, Records: 90}
	require.False(t, sustained(slow, time.Second), "less arrives than is sent")
	require.False(t, sustained(&Result{Rate: 100, Seconds: 1, Records: 100, Unsent: 1}, time.Second))
}

func TestSleepUntilEndsAtANap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(1)
		begin := time.Now()
		m.sleepUntil(m.now() + int64(time.Hour))
		require.LessOrEqual(t, time.Since(begin), nap)
	})
}
