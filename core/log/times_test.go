package log

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
)

func TestOffsetForTimestamp(t *testing.T) { // A07
	for _, segmentBytes := range []int64{1 << 20, 75} {
		o := setup(t)
		o.Config.SegmentBytes = segmentBytes
		l := open(t, o)
		_, ok, err := l.OffsetForTimestamp(0, 0)
		require.NoError(t, err)
		require.False(t, ok)
		for _, ts := range []int64{2, 4, 6, 8} {
			produce(t, l, rec{ts: ts, value: "x"})
		}
		for _, how := range []func(testing.TB, *Log) *Log{func(_ testing.TB, l *Log) *Log { return l }, reopen, crash} {
			l = how(t, l)
			for _, tc := range []struct{ ask, offset, ts int64 }{
				{0, 0, 2}, {2, 0, 2}, {3, 1, 4}, {5, 2, 6}, {7, 3, 8}, {8, 3, 8}, {9, -1, -1},
			} {
				at, ok, err := l.OffsetForTimestamp(tc.ask, 4)
				require.NoError(t, err)
				if tc.offset < 0 {
					require.False(t, ok)
					continue
				}
				require.True(t, ok, "asked for %d", tc.ask)
				require.Equal(t, TimeOffset{tc.offset, tc.ts, 0}, at, "asked for %d", tc.ask)
			}
			_, ok, err = l.OffsetForTimestamp(8, 3)
			require.NoError(t, err)
			require.False(t, ok, "not below the high watermark")
			at, ok, err := l.MaxTimestamp(4)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, TimeOffset{3, 8, 0}, at)
			_, ok, err = l.MaxTimestamp(3)
			require.NoError(t, err)
			require.False(t, ok)
		}
	}
}

// Timestamps out of order, within batches and between them, and records without one.
func TestOffsetForTimestampOutOfOrder(t *testing.T) {
	stamps := [][]int64{{50, 10, 30}, {20}, {90, 40}, {-1}, {60, 100, 100, 5}, {100}, {7, 8}}
	var flat []int64
	for _, b := range stamps {
		flat = append(flat, b...)
	}
	for _, segmentBytes := range []int64{1 << 20, 200, 90} {
		o := setup(t)
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes = segmentBytes, 1
		l := open(t, o)
		for _, b := range stamps {
			recs := make([]rec, len(b))
			for i := range b {
				recs[i].ts = b[i]
			}
			produce(t, l, recs...)
		}
		for _, how := range []func(testing.TB, *Log) *Log{func(_ testing.TB, l *Log) *Log { return l }, reopen, crash} {
			l = how(t, l)
			for start := range int64(4) {
				l.SetHighWatermark(4)
				_, err := l.AdvanceStartOffset(start)
				require.NoError(t, err)
				for ask := int64(0); ask <= 101; ask++ {
					want := -1
					for i := range flat {
						if int64(i) >= l.StartOffset() && flat[i] >= ask {
							want = i
							break
						}
					}
					at, ok, err := l.OffsetForTimestamp(ask, l.EndOffset())
					require.NoError(t, err)
					require.Equal(t, want >= 0, ok)
					if ok {
						require.Equal(t, TimeOffset{int64(want), flat[want], 0}, at, "asked for %d", ask)
					}
				}
			}
			requireIndexes(t, l)
		}
		at, ok, err := l.MaxTimestamp(l.EndOffset())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, TimeOffset{8, 100, 0}, at)
	}
}

func TestLogAppendTime(t *testing.T) {
	o := setup(t)
	o.Config.LogAppendTime = true
	l := open(t, o)
	info := produce(t, l, rec{ts: 5, value: "a"}, rec{ts: 6, value: "b"})
	require.Equal(t, testTime.UnixMilli(), info.LogAppendTime)
	require.Equal(t, testTime.UnixMilli(), info.MaxTimestamp)
	at, ok, err := l.OffsetForTimestamp(6, 2)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, TimeOffset{0, testTime.UnixMilli(), 0}, at)
}

// Old data and wrong clocks (A21).
func TestRetention(t *testing.T) {
	now := testTime
	open := func(t *testing.T, change func(*Config)) *Log {
		o := setup(t)
		o.Config.SegmentBytes = 200
		o.Now = func() time.Time { return now }
		change(&o.Config)
		return open(t, o)
	}
	stamp := func(l *Log, stamps ...int64) {
		for _, ts := range stamps {
			produce(t, l, rec{ts: ts, value: "0123456789012345678901234567890123456789"})
		}
		l.SetHighWatermark(l.EndOffset())
	}
	ms := now.UnixMilli()
	t.Run("by time", func(t *testing.T) {
		l := open(t, func(c *Config) { c.RetentionMs = 1000 })
		stamp(l, ms-5000, ms-4000, ms-3000, ms-500, ms, ms)
		n, err := l.DeleteOldSegments(now)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.EqualValues(t, 3, l.StartOffset())
		requireFiles(t, l)
		n, err = l.DeleteOldSegments(now.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, 3, n, "the active one as well")
		require.EqualValues(t, 6, l.StartOffset())
		require.Zero(t, l.Size())
		n, err = l.DeleteOldSegments(now.Add(time.Hour))
		require.NoError(t, err)
		require.Zero(t, n, "an empty last segment stays")
		l = reopen(t, l)
		require.EqualValues(t, 6, l.StartOffset())
	})
	t.Run("a record from the future keeps what follows", func(t *testing.T) {
		l := open(t, func(c *Config) { c.RetentionMs, c.RetentionBytes = 1000, -1 })
		stamp(l, ms-5000, 1_600_000_000_000_000_000, ms-4000, -1, 0)
		n, err := l.DeleteOldSegments(now)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		cfg := l.Config()
		cfg.RetentionBytes = 130
		l.Configure(cfg)
		n, err = l.DeleteOldSegments(now)
		require.NoError(t, err)
		require.Positive(t, n, "but not from retention.bytes")
		require.GreaterOrEqual(t, l.Size(), int64(130))
	})
	t.Run("not above the high watermark", func(t *testing.T) {
		l := open(t, func(c *Config) { c.RetentionMs = 1000 })
		stamp(l, ms-5000, ms-5000)
		produce(t, l, rec{ts: ms - 5000, value: "0123456789012345678901234567890123456789"})
		n, err := l.DeleteOldSegments(now)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.EqualValues(t, 2, l.StartOffset())
	})
	t.Run("a wild record makes one segment, not one for each", func(t *testing.T) {
		l := open(t, func(c *Config) { c.SegmentBytes = 1 << 20 })
		stamp(l, ms, 1_600_000_000_000_000_000, ms, ms, 0, -1, ms)
		require.Len(t, l.Segments(), 2)
	})
	t.Run("a clock that goes back", func(t *testing.T) {
		l := open(t, func(c *Config) { c.RetentionMs, c.LogAppendTime = 1000, true })
		stamp(l, ms, ms)
		now = now.Add(-time.Hour)
		defer func() { now = testTime }()
		stamp(l, ms, ms)
		n, err := l.DeleteOldSegments(now)
		require.NoError(t, err)
		require.Zero(t, n)
	})
	t.Run("without timestamps the file's time counts", func(t *testing.T) {
		l := open(t, func(c *Config) { c.RetentionMs = 1000 })
		stamp(l, -1, -1, -1)
		n, err := l.DeleteOldSegments(time.Now())
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = l.DeleteOldSegments(time.Now().Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
	t.Run("a time bound", func(t *testing.T) {
		l := open(t, func(c *Config) { c.TimestampAfterMaxMs = 3600_000 })
		_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{ts: ms + 7200_000})})
		require.ErrorIs(t, err, record.ErrTimestamp)
		require.Zero(t, l.EndOffset())
		produce(t, l, rec{ts: ms + 1800_000})
	})
}

func TestRollByTimeAndIndex(t *testing.T) {
	now := testTime
	o := setup(t)
	o.Config.SegmentMs = 1000
	o.Now = func() time.Time { return now }
	l := open(t, o)
	for _, d := range []int64{0, 1000, 1001, 2001, 2002} {
		produce(t, l, rec{ts: 1 + d})
	}
	require.Len(t, l.Segments(), 3)
	l = reopen(t, l)
	produce(t, l, rec{ts: 1 + 3002})
	require.Len(t, l.Segments(), 3)
	produce(t, l, rec{ts: 1 + 3003})
	require.Len(t, l.Segments(), 4)

	o = setup(t)
	o.Config.IndexIntervalBytes, o.Config.IndexSizeMaxBytes = 1, 5*offsetWidth
	l = open(t, o)
	fill(t, l, 50, 1, 10)
	require.Greater(t, len(l.Segments()), 8)
	requireValues(t, l, 0, 50, 10)
}
