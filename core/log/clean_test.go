package log

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
)

// compacted is setup for a log that is compacted, with small segments.
func compacted(t testing.TB) Options {
	o := setup(t)
	o.Config.Compact, o.Config.Delete = true, false
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 600, 100
	o.Config.DeleteRetentionMs = 1000
	return o
}

// put appends a batch of "key=value" records, a key alone being a tombstone, and says that it is committed.
func put(t testing.TB, l *Log, records ...string) AppendInfo {
	t.Helper()
	info, err := l.AppendLeader(LeaderAppend{Batches: keyed(t, record.Options{}, records...)})
	require.NoError(t, err)
	l.SetHighWatermark(math.MaxInt64)
	return info
}

func keyed(t testing.TB, o record.Options, records ...string) []byte {
	t.Helper()
	b := record.NewBuilder(o)
	for i, r := range records {
		key, value, ok := strings.Cut(r, "=")
		x := record.Record{Offset: o.BaseOffset + int64(i), Timestamp: testTime.UnixMilli(), Key: []byte(key)}
		if ok {
			x.Value = []byte(value)
		}
		require.NoError(t, b.Append(x))
	}
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

// rollNow closes the active segment.
func rollNow(t testing.TB, l *Log) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NoError(t, l.roll(l.end.Load(), 0))
}

func compactAt(t testing.TB, l *Log, now time.Time) Compacted {
	t.Helper()
	res, err := l.Compact(t.Context(), CompactOptions{Now: now, Memory: 1 << 20, Buffer: 1000})
	require.NoError(t, err)
	return res
}

// contents lists all records as "offset:key=value", and batches without records as "first-last".
func contents(t testing.TB, l *Log) []string {
	t.Helper()
	var out []string
	next := l.StartOffset()
	for b := range batches(t, l) {
		h := b.Header()
		require.GreaterOrEqual(t, h.BaseOffset, next)
		next = h.LastOffset() + 1
		if h.Count == 0 {
			out = append(out, fmt.Sprintf("%d-%d", h.BaseOffset, h.LastOffset()))
		}
		for r, err := range b.Each(nil, math.MaxInt) {
			require.NoError(t, err)
			switch {
			case h.Attributes.Control():
				m, _, err := record.ParseEndTxnMarker(r)
				require.NoError(t, err)
				out = append(out, fmt.Sprintf("%d:%s", r.Offset, map[bool]string{true: "commit", false: "abort"}[m.Commit]))
			case r.Value == nil:
				out = append(out, fmt.Sprintf("%d:%s", r.Offset, r.Key))
			default:
				out = append(out, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, r.Value))
			}
		}
	}
	return out
}

// batches reads all batches of a log.
func batches(t testing.TB, l *Log) func(yield func(record.Batch) bool) {
	return func(yield func(record.Batch) bool) {
		for at := l.StartOffset(); at < l.EndOffset(); {
			res, err := l.Read(ReadRequest{Offset: at, UpTo: l.EndOffset(), MaxBytes: 1000, MinOneBatch: true})
			require.NoError(t, err)
			if res.View == nil {
				return
			}
			b, err := res.View.Bytes(nil)
			res.View.Release()
			require.NoError(t, err)
			for x, err := range record.All(b) {
				require.NoError(t, err)
				require.NoError(t, record.CheckCRC(x))
				at = x.Header().LastOffset() + 1
				if !yield(x) {
					return
				}
			}
		}
	}
}

func TestCompact(t *testing.T) {
	l := open(t, compacted(t))
	put(t, l, "a=1", "b=1")
	put(t, l, "a=2")
	rollNow(t, l)
	put(t, l, "c=1", "a=3")
	put(t, l, "b=")
	rollNow(t, l)
	put(t, l, "a=4")
	res := compactAt(t, l, testTime)
	require.EqualValues(t, 6, res.To)
	require.EqualValues(t, 6, l.CleanedTo())
	require.EqualValues(t, 3, res.Dropped)
	require.Equal(t, []string{"3:c=1", "4:a=3", "5:b=", "6:a=4"}, contents(t, l))
	require.Len(t, l.Segments(), 2, "two closed segments became one")
	requireIndexes(t, l)
	requireFiles(t, l)
	require.Zero(t, compactAt(t, l, testTime).Read, "nothing is dirty")
	l = reopen(t, l)
	require.Equal(t, []string{"3:c=1", "4:a=3", "5:b=", "6:a=4"}, contents(t, l))
	rollNow(t, l)
	compactAt(t, l, testTime)
	require.Equal(t, []string{"3:c=1", "5:b=", "6:a=4"}, contents(t, l))
}

// A tombstone stays for delete.retention.ms, counted from the first compaction that has seen it.
func TestTombstones(t *testing.T) {
	l := open(t, compacted(t))
	put(t, l, "a=1", "b=1")
	put(t, l, "a", "c=1")
	rollNow(t, l)
	compactAt(t, l, testTime)
	require.Equal(t, []string{"1:b=1", "2:a", "3:c=1"}, contents(t, l))
	again := func(now time.Time) []string {
		put(t, l, "x=1")
		rollNow(t, l)
		compactAt(t, l, now)
		return slices.DeleteFunc(contents(t, l), func(s string) bool { return strings.Contains(s, "x=") })
	}
	require.Equal(t, []string{"1:b=1", "2:a", "3:c=1"}, again(testTime.Add(999*time.Millisecond)))
	for b := range batches(t, l) {
		if h := b.Header(); h.BaseOffset == 2 {
			at, ok := h.DeleteHorizonMs()
			require.True(t, ok)
			require.Equal(t, testTime.UnixMilli()+1000, at)
		}
	}
	l = reopen(t, l)
	require.Equal(t, []string{"1:b=1", "3:c=1"}, again(testTime.Add(time.Second)))
}

// What a group of segments leaves may be nothing: its end is kept, so that nothing else changes.
func TestNothingLeft(t *testing.T) {
	l := open(t, compacted(t))
	put(t, l, "a=1")
	rollNow(t, l)
	put(t, l, "a=2")
	rollNow(t, l)
	put(t, l, "a=3")
	rollNow(t, l)
	l.cfg.Load().SegmentBytes = 100 // no two segments fit into one
	compactAt(t, l, testTime)
	require.Equal(t, []string{"0-0", "1-1", "2:a=3"}, contents(t, l))
	before := l.Segments()
	put(t, l, "b=1")
	compactAt(t, l, testTime)
	require.Equal(t, before[:2], l.Segments()[:2])
	c := l.Config()
	c.SegmentBytes = 1000
	l.Configure(c)
	rollNow(t, l)
	compactAt(t, l, testTime)
	require.Equal(t, []string{"2:a=3", "3:b=1"}, contents(t, l))
	for _, ts := range []int64{0, math.MaxInt64} {
		_, _, err := l.OffsetForTimestamp(ts, 10)
		require.NoError(t, err)
	}
}

// Records without a key can be in a log that was not compacted before.
func TestNullKeysGo(t *testing.T) {
	o := compacted(t)
	o.Config.Compact = false
	l := open(t, o)
	produce(t, l, rec{ts: 1, value: "without"}, rec{ts: 1, key: "k", value: "with"})
	l.SetHighWatermark(math.MaxInt64)
	rollNow(t, l)
	compactAt(t, l, testTime)
	require.Equal(t, []string{"1:k=with"}, contents(t, l))
}

func TestWhatIsCleanable(t *testing.T) {
	l := open(t, compacted(t))
	for i := range 4 {
		_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{testTime.UnixMilli() + int64(i)*1000, "k", "v"})})
		require.NoError(t, err)
		rollNow(t, l)
	}
	to := func(now time.Time) int64 {
		c, err := l.cleanable(now)
		require.NoError(t, err)
		return c.to
	}
	require.EqualValues(t, 0, to(testTime), "above the high watermark")
	l.SetHighWatermark(2)
	require.EqualValues(t, 2, to(testTime))
	l.SetHighWatermark(4)
	require.EqualValues(t, 4, to(testTime))
	configure := func(change func(*Config)) {
		c := l.Config()
		change(&c)
		l.Configure(c)
	}
	configure(func(c *Config) { c.MinCompactionLagMs = 500 })
	require.EqualValues(t, 0, to(testTime))
	require.EqualValues(t, 1, to(testTime.Add(500*time.Millisecond)))
	require.EqualValues(t, 3, to(testTime.Add(3000*time.Millisecond)))
	configure(func(c *Config) { c.MinCompactionLagMs, c.MinCleanableDirtyRatio, c.MaxCompactionLagMs = 0, 0.9, 500 })
	compactAt(t, l, testTime)
	produce(t, l, rec{testTime.UnixMilli(), "k", "w"})
	l.SetHighWatermark(5)
	due := func(now time.Time) bool {
		c, err := l.cleanable(now)
		require.NoError(t, err)
		return c.due(l.cfg.Load())
	}
	require.False(t, due(testTime), "the active segment")
	rollNow(t, l)
	require.False(t, due(testTime))
	require.True(t, due(testTime.Add(501*time.Millisecond)), "overdue")
	configure(func(c *Config) { c.MinCleanableDirtyRatio, c.MaxCompactionLagMs = 0, math.MaxInt64 })
	require.True(t, due(testTime))
	open := sent(t, 9, 0, 0, true, rec{testTime.UnixMilli(), "k", "t"})
	lead(t, l, open)
	rollNow(t, l)
	l.SetHighWatermark(math.MaxInt64)
	require.EqualValues(t, 5, to(testTime), "an open transaction")
	mark(t, l, endTxn(t, 9, 0, 0, true))
	l.SetHighWatermark(math.MaxInt64)
	require.EqualValues(t, 6, to(testTime))
}

// max.compaction.lag.ms bounds how long the active segment is active.
func TestMaxCompactionLagRolls(t *testing.T) {
	o := compacted(t)
	o.Config.MaxCompactionLagMs = 1000
	l := open(t, o)
	for _, ts := range []int64{0, 1000, 1001} {
		_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{testTime.UnixMilli() + ts, "k", "v"})})
		require.NoError(t, err)
	}
	require.Len(t, l.Segments(), 2)
}

// With a table of keys that is too small the log is compacted step by step.
func TestSmallTable(t *testing.T) {
	l := open(t, compacted(t))
	for i := range 40 {
		put(t, l, fmt.Sprintf("k%d=%d", i%8, i), fmt.Sprintf("j%d=%d", i%3, i))
	}
	rollNow(t, l)
	steps := 0
	for before := int64(-1); l.CleanedTo() > before; steps++ {
		before = l.CleanedTo()
		_, err := l.Compact(t.Context(), CompactOptions{Now: testTime, Memory: 1, Buffer: 1})
		require.NoError(t, err)
		if l.CleanedTo() == l.EndOffset() {
			break
		}
	}
	require.Greater(t, steps, 5)
	got := contents(t, l)
	want := []string{"64:k0=32", "66:k1=33", "68:k2=34", "70:k3=35", "72:k4=36", "74:k5=37", "75:j1=37", "76:k6=38", "77:j2=38", "78:k7=39", "79:j0=39"}
	require.Equal(t, want, slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, "-") }))
}

// Aborted records go at once, markers when nothing is left of their transaction and delete.retention.ms has passed.
func TestTransactionsAreCompacted(t *testing.T) {
	l := open(t, compacted(t))
	txn := func(id int64, sequence int32, commit bool, keys ...string) {
		lead(t, l, keyed(t, record.Options{Producer: &record.Producer{ID: id, Sequence: sequence}, Transactional: true}, keys...))
		mark(t, l, endTxn(t, id, 0, 0, commit))
		l.SetHighWatermark(math.MaxInt64)
	}
	put(t, l, "a=1")
	txn(1, 0, false, "a=2", "b=2")                                                 // 1, 2, abort 3
	txn(2, 0, true, "c=3")                                                         // 4, commit 5
	txn(1, 2, true, "d=4")                                                         // 6, commit 7: the last word of producer 1
	txn(2, 1, true, "c=5")                                                         // 8, commit 9
	l.ExpireProducers(testTime.Add(time.Hour), 0)                                  // nobody is known any more
	lead(t, l, keyed(t, record.Options{Producer: &record.Producer{ID: 3}}, "e=6")) // 10
	put(t, l, "e=7")
	rollNow(t, l)
	compactAt(t, l, testTime)
	first := []string{"0:a=1", "3:abort", "5:commit", "6:d=4", "7:commit", "8:c=5", "9:commit", "10-10", "11:e=7"}
	require.Equal(t, first, contents(t, l))
	require.Len(t, abortedIn(t, l), 1)
	next := func(now time.Time) []string {
		put(t, l, "x=1")
		rollNow(t, l)
		compactAt(t, l, now)
		return slices.DeleteFunc(contents(t, l), func(s string) bool { return strings.Contains(s, "x=") })
	}
	require.Equal(t, first, next(testTime))
	require.Empty(t, abortedIn(t, l))
	l = reopen(t, l)
	require.Equal(t, l.EndOffset(), l.LastStableOffset())
	require.Equal(t, []string{"0:a=1", "6:d=4", "7:commit", "8:c=5", "9:commit", "10-10", "11:e=7"}, next(testTime.Add(time.Second)))
	require.Equal(t, l.EndOffset(), l.LastStableOffset())
	// The producer whose records are gone is still known.
	p := l.Producers()
	require.Len(t, p, 1)
	require.EqualValues(t, 3, p[0].ProducerID)
	require.EqualValues(t, 0, p[0].LastSequence)
}

// abortedIn lists the aborted transactions that the indexes of the segments have.
func abortedIn(t testing.TB, l *Log) (out []txnEntry) {
	t.Helper()
	for _, s := range *l.segments.Load() {
		entries, err := s.txns.all(0)
		require.NoError(t, err)
		out = append(out, entries...)
	}
	return out
}

// Whatever changes a log while it is compacted interrupts that, and nothing else happens.
func TestInterrupted(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, l *Log){
		"truncated":       func(t *testing.T, l *Log) { require.NoError(t, l.TruncateTo(4)) },
		"truncated fully": func(t *testing.T, l *Log) { require.NoError(t, l.TruncateFully(100)) },
		"deleted":         func(t *testing.T, l *Log) { require.NoError(t, l.Delete()) },
		"closed":          func(t *testing.T, l *Log) { require.NoError(t, l.Close(t.Context())) },
		"failed":          func(t *testing.T, l *Log) { l.Fail(errors.New("disk")) },
		"segments deleted": func(t *testing.T, l *Log) {
			_, err := l.AdvanceStartOffset(7)
			require.NoError(t, err)
			n, err := l.DeleteOldSegments(testTime)
			require.NoError(t, err)
			require.Positive(t, n)
		},
	} {
		for _, at := range []int{1, 4, 8, 12} { // during the first walk and the second
			t.Run(fmt.Sprintf("%s after %d", name, at), func(t *testing.T) {
				l := open(t, compacted(t))
				for i := range 8 {
					put(t, l, fmt.Sprintf("k=%d", i))
					if i%2 == 1 {
						rollNow(t, l)
					}
				}
				l.cfg.Load().SegmentBytes = 1
				n := 0
				_, err := l.Compact(t.Context(), CompactOptions{Now: testTime, Memory: 1000, Buffer: 1, Pace: func(context.Context, int) error {
					if n++; n == at {
						change(t, l)
					}
					return nil
				}})
				require.ErrorIs(t, err, ErrInterrupted)
				require.LessOrEqual(t, l.CleanedTo(), max(l.StartOffset(), 0))
				if l.Err() == nil {
					requireFiles(t, l)
					l = reopen(t, l)
				}
			})
		}
	}
}

// What can't be read isn't dropped.
func TestCorruptIsNotCompacted(t *testing.T) {
	l := open(t, compacted(t))
	put(t, l, "a=1")
	put(t, l, "a=2")
	rollNow(t, l)
	path := l.Segments()[0].Path
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[len(b)-1] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o644))
	_, err = l.Compact(t.Context(), CompactOptions{Now: testTime, Memory: 1000})
	require.ErrorIs(t, err, ErrCorrupt)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b, after)
	require.NoError(t, l.Err())
	requireFiles(t, l)
}

// A truncation below what was compacted makes it dirty again, also after a restart.
func TestTruncatedBelowCleaned(t *testing.T) {
	o := compacted(t)
	l := open(t, o)
	put(t, l, "a=1")
	put(t, l, "b=1")
	rollNow(t, l)
	put(t, l, "c=1")
	compactAt(t, l, testTime)
	require.EqualValues(t, 2, l.CleanedTo())
	require.NoError(t, l.TruncateTo(1))
	require.EqualValues(t, 1, l.CleanedTo())
	o = l.o
	require.NoError(t, l.Close(t.Context()))
	o.CleanShutdown, o.CleanedTo = true, 2
	require.Zero(t, open(t, o).CleanedTo(), "above the end")
}

// A crash at any step of the replacement leaves the old segments or the new one, and everything in them.
func TestCrashInReplacement(t *testing.T) {
	o := compacted(t)
	st := &steppingStorage{}
	o.Storage = st
	l := open(t, o)
	id := int64(0)
	for i := range 12 {
		if i%3 == 0 {
			lead(t, l, keyed(t, record.Options{Producer: &record.Producer{ID: 7, Sequence: int32(id)}, Transactional: true}, "z=aborted"))
			mark(t, l, endTxn(t, 7, 0, 0, false))
			id++
		}
		put(t, l, fmt.Sprintf("k%d=%d", i%4, i), "gone")
		if i%2 == 1 {
			rollNow(t, l)
		}
	}
	compactAt(t, l, testTime)
	put(t, l, "k0=100", "k9=9")
	rollNow(t, l)
	want := latest(t, l)
	require.NoError(t, l.Flush(t.Context(), l.EndOffset()))
	now := testTime.Add(time.Hour)
	st.step = func(op, path string) { st.copies = append(st.copies, copyDir(t, l.Dir(), op, path)) }
	compactAt(t, l, now)
	st.step = nil
	require.Equal(t, want, latest(t, l))
	require.NotContains(t, strings.Join(contents(t, l), " "), "gone")
	require.Greater(t, len(st.copies), 20)
	for _, c := range st.copies {
		for _, clean := range []bool{false, true} {
			o := l.o
			o.Storage, o.Dir = &plainStorage{}, t.TempDir()
			o.CleanShutdown, o.HighWatermark = clean, l.HighWatermark() // without recovery points all is checked
			require.NoError(t, os.CopyFS(o.Dir, os.DirFS(c.dir)))
			again, err := Open(t.Context(), o)
			require.NoError(t, err, c.name)
			require.Equal(t, l.EndOffset(), again.EndOffset(), c.name)
			require.Equal(t, l.EndOffset(), again.LastStableOffset(), c.name)
			require.Equal(t, want, latest(t, again), c.name)
			requireFiles(t, again)
			requireIndexes(t, again)
			_, err = again.Compact(t.Context(), CompactOptions{Now: now, Memory: 10000, Buffer: 100})
			require.NoError(t, err, c.name)
			require.Equal(t, want, latest(t, again), c.name)
			require.Equal(t, contents(t, l), contents(t, again), c.name)
			require.NoError(t, again.Close(t.Context()))
		}
	}
}

// latest is what a reader of committed records takes for the last value of each key; tombstones end one.
func latest(t testing.TB, l *Log) map[string]string {
	t.Helper()
	out := map[string]string{}
	for at, upTo := l.StartOffset(), l.LastStableOffset(); at < upTo; {
		res, err := l.Read(ReadRequest{Offset: at, UpTo: upTo, MaxBytes: 300, MinOneBatch: true, Aborted: true})
		require.NoError(t, err)
		if res.View == nil {
			break
		}
		b, err := res.View.Bytes(nil)
		res.View.Release()
		require.NoError(t, err)
		aborted := map[int64]bool{}
		for x, err := range record.All(b) {
			require.NoError(t, err)
			h := x.Header()
			at = h.LastOffset() + 1
			for _, a := range res.Aborted {
				if a.FirstOffset <= h.LastOffset() && a.FirstOffset >= 0 {
					aborted[a.ProducerID] = true
				}
			}
			res.Aborted = slices.DeleteFunc(res.Aborted, func(a AbortedTxn) bool { return a.FirstOffset <= h.LastOffset() })
			if h.Attributes.Control() {
				delete(aborted, h.ProducerID)
				continue
			}
			if h.Attributes.Transactional() && aborted[h.ProducerID] {
				continue
			}
			for r, err := range x.Each(nil, math.MaxInt) {
				require.NoError(t, err)
				if r.Value == nil {
					delete(out, string(r.Key))
				} else {
					out[string(r.Key)] = string(r.Value)
				}
			}
		}
	}
	return maps.Clone(out)
}
