package log

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is when the tests take place.
var testTime = time.UnixMilli(1_700_000_000_000)

// setup is what a test opens its log with; change what matters.
func setup(t testing.TB) Options {
	cfg := DefaultConfig()
	cfg.RetentionMs = -1
	return Options{
		Dir: t.TempDir(), Topic: "t", Storage: &plainStorage{}, Config: cfg,
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		Now:    func() time.Time { return testTime },
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Helper()
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func open(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { l.release(false) })
	return l
}

// reopen closes a log in order and opens it again.
func reopen(t testing.TB, l *Log) *Log {
	t.Helper()
	require.NoError(t, l.Close(t.Context()))
	o := l.o
	o.CleanShutdown, o.RecoveryPoint, o.StartOffset, o.HighWatermark = true, l.RecoveryPoint(), l.StartOffset(), l.HighWatermark()
	return open(t, o)
}

// crash opens a log again without closing it in order.
func crash(t testing.TB, l *Log) *Log {
	t.Helper()
	require.NoError(t, l.release(false))
	o := l.o
	o.CleanShutdown, o.RecoveryPoint, o.StartOffset, o.HighWatermark = false, l.RecoveryPoint(), l.StartOffset(), l.HighWatermark()
	return open(t, o)
}

// rec is one record of a test's batch.
type rec struct {
	ts         int64
	key, value string
}

// batch builds a batch; change may alter its options.
func batch(t testing.TB, change func(*record.Options), recs ...rec) []byte {
	t.Helper()
	o := record.Options{}
	if change != nil {
		change(&o)
	}
	b := record.NewBuilder(o)
	for i, r := range recs {
		rr := record.Record{Offset: o.BaseOffset + int64(i), Timestamp: r.ts, Value: []byte(r.value)}
		if r.key != "" {
			rr.Key = []byte(r.key)
		}
		require.NoError(t, b.Append(rr))
	}
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

// values makes records of n numbered values with rising timestamps.
func values(from, n, size int) []rec {
	out := make([]rec, n)
	for i := range out {
		out[i] = rec{ts: testTime.UnixMilli() + int64(from+i), value: fmt.Sprintf("%0*d", size, from+i)}
	}
	return out
}

// produce appends one batch as the leader of epoch 0.
func produce(t testing.TB, l *Log, recs ...rec) AppendInfo {
	t.Helper()
	info, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, recs...)})
	require.NoError(t, err)
	return info
}

// fill appends n batches of k records each, and says that all are committed.
func fill(t testing.TB, l *Log, n, k, size int) {
	t.Helper()
	for range n {
		produce(t, l, values(int(l.EndOffset()), k, size)...)
	}
	l.SetHighWatermark(math.MaxInt64)
}

// readAll reads the values from an offset up to another, one view after the other.
func readAll(t testing.TB, l *Log, from, upTo int64, maxBytes int) []string {
	t.Helper()
	var out []string
	for from < upTo {
		res, err := l.Read(ReadRequest{Offset: from, UpTo: upTo, MaxBytes: maxBytes, MinOneBatch: true})
		require.NoError(t, err)
		if res.View == nil {
			return out
		}
		b, err := res.View.Bytes(nil)
		require.NoError(t, err)
		for x, err := range record.All(b) {
			require.NoError(t, err)
			require.NoError(t, record.CheckCRC(x))
			h := x.Header()
			require.Less(t, h.LastOffset(), upTo)
			for r, err := range x.Each(nil, math.MaxInt) {
				require.NoError(t, err)
				if r.Offset >= from {
					out = append(out, string(r.Value))
				}
			}
			require.Greater(t, h.LastOffset()+1, from, "a batch below the offset asked for")
			from = h.LastOffset() + 1
		}
		res.View.Release()
	}
	return out
}

// requireValues checks that a log filled by fill has everything in [start, end).
func requireValues(t testing.TB, l *Log, start, end int64, size int) {
	t.Helper()
	want := make([]string, 0, end-start)
	for i := start; i < end; i++ {
		want = append(want, fmt.Sprintf("%0*d", size, i))
	}
	require.Equal(t, end, l.EndOffset())
	got := readAll(t, l, start, end, 1)
	if len(want) == 0 {
		require.Empty(t, got)
		return
	}
	require.Equal(t, want, got)
	require.Equal(t, want, readAll(t, l, start, end, 1<<20))
}

func TestAppendAndRead(t *testing.T) {
	l := open(t, setup(t))
	info := produce(t, l, values(0, 3, 10)...)
	require.Equal(t, AppendInfo{BaseOffset: 0, LastOffset: 2, MaxTimestamp: testTime.UnixMilli() + 2, LogAppendTime: -1}, info)
	require.EqualValues(t, 3, produce(t, l, values(3, 1, 10)...).BaseOffset)
	require.EqualValues(t, 4, l.EndOffset())
	require.EqualValues(t, 0, l.HighWatermark())
	require.EqualValues(t, 3, l.SetHighWatermark(3))
	require.EqualValues(t, 3, l.SetHighWatermark(2), "not back")
	require.EqualValues(t, 4, l.SetHighWatermark(9), "not above the end")
	requireValues(t, l, 0, 4, 10)

	// A06
	for _, offset := range []int64{-1, 5, math.MaxInt64} {
		_, err := l.Read(ReadRequest{Offset: offset, UpTo: 4, MaxBytes: 1000})
		require.ErrorIs(t, err, ErrOffsetOutOfRange)
	}
	res, err := l.Read(ReadRequest{Offset: 4, UpTo: 4, MaxBytes: 1000})
	require.NoError(t, err)
	require.Nil(t, res.View)
	l = reopen(t, l)
	require.EqualValues(t, 4, l.HighWatermark())
	requireValues(t, l, 0, 4, 10)
}

// Every offset is found, whatever the segments and batches (A20).
func TestReadAtEveryOffset(t *testing.T) {
	for _, k := range []int{1, 7} {
		for _, maxBytes := range []int{1, 300, 1 << 20} {
			t.Run(fmt.Sprintf("%d records per batch, %d bytes", k, maxBytes), func(t *testing.T) {
				o := setup(t)
				o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 1024, 200
				l := open(t, o)
				fill(t, l, 98/k, k, 40)
				require.Greater(t, len(l.Segments()), 4)
				for _, how := range []func(testing.TB, *Log) *Log{func(_ testing.TB, l *Log) *Log { return l }, reopen, crash, reopen} {
					l = how(t, l)
					for at := range l.EndOffset() {
						for upTo := at; upTo <= l.EndOffset(); upTo += 13 {
							bound := upTo / int64(k) * int64(k) // whole batches only
							got := readAll(t, l, at, upTo, maxBytes)
							require.Len(t, got, int(max(0, bound-at)))
							if len(got) > 0 {
								require.Equal(t, fmt.Sprintf("%040d", at), got[0])
							}
						}
					}
				}
			})
		}
	}
}

// KIP-74 and the limits of old versions.
func TestReadLimits(t *testing.T) {
	l := open(t, setup(t))
	fill(t, l, 3, 1, 1000)
	size := l.Size() / 3
	for _, tc := range []struct {
		name string
		q    ReadRequest
		want int64
	}{
		{"first batch whole", ReadRequest{MaxBytes: 1, MinOneBatch: true}, size},
		{"nothing fits", ReadRequest{MaxBytes: 1}, 0},
		{"cut off", ReadRequest{MaxBytes: 100, HardLimit: true}, 100},
		{"negative", ReadRequest{MaxBytes: -1, HardLimit: true}, 0},
		{"one fits", ReadRequest{MaxBytes: int(2*size - 1)}, size},
		{"two fit", ReadRequest{MaxBytes: int(2 * size)}, 2 * size},
		{"all", ReadRequest{MaxBytes: 1 << 20}, 3 * size},
		{"up to", ReadRequest{MaxBytes: 1 << 20, UpTo: 2}, 2 * size},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.q.UpTo == 0 {
				tc.q.UpTo = 3
			}
			res, err := l.Read(tc.q)
			require.NoError(t, err)
			if tc.want == 0 {
				require.Nil(t, res.View)
				return
			}
			require.Equal(t, tc.want, res.View.Len())
			res.View.Release()
		})
	}
}
