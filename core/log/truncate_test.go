package log

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
)

func TestTruncateTo(t *testing.T) {
	for _, k := range []int{1, 3} {
		for at := int64(0); at <= 31; at++ {
			t.Run(fmt.Sprintf("%d records per batch, to %d", k, at), func(t *testing.T) {
				o := setup(t)
				o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 700, 100
				l := open(t, o)
				fill(t, l, 30/k, k, 20)
				require.Greater(t, len(l.Segments()), 2)
				require.NoError(t, l.Flush(t.Context(), 30))
				require.NoError(t, l.TruncateTo(at))
				end := min(30, at/int64(k)*int64(k)) // a batch goes whole
				require.LessOrEqual(t, l.HighWatermark(), end)
				require.LessOrEqual(t, l.RecoveryPoint(), end)
				requireValues(t, l, 0, end, 20)
				requireIndexes(t, l)
				fill(t, l, 12/k, k, 20)
				end += 12 / int64(k) * int64(k)
				requireValues(t, l, 0, end, 20)
				for offset := range end {
					found, ok, err := l.OffsetForTimestamp(testTime.UnixMilli()+offset, end)
					require.NoError(t, err)
					require.True(t, ok)
					require.Equal(t, offset, found.Offset)
				}
				l = crash(t, l)
				requireValues(t, l, 0, end, 20)
				requireIndexes(t, l)
				requireFiles(t, l)
			})
		}
	}
}

func TestTruncateBelowTheFirstSegment(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes, o.Config.RetentionBytes = 500, 600
	l := open(t, o)
	fill(t, l, 30, 1, 20)
	n, err := l.DeleteOldSegments(testTime)
	require.NoError(t, err)
	require.Positive(t, n)
	require.NoError(t, l.TruncateTo(2))
	require.EqualValues(t, 2, l.StartOffset())
	require.EqualValues(t, 2, l.EndOffset())
	require.EqualValues(t, 2, l.HighWatermark())
	require.EqualValues(t, 2, produce(t, l, values(2, 1, 5)...).BaseOffset)
	require.Error(t, l.TruncateTo(-1))
}

func TestTruncateFully(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes = 500
	l := open(t, o)
	fill(t, l, 30, 1, 20)
	require.NoError(t, l.TruncateFully(5))
	require.EqualValues(t, 5, l.StartOffset())
	require.EqualValues(t, 5, l.EndOffset())
	require.EqualValues(t, -1, l.LatestEpoch())
	l.Configure(DefaultConfig())
	fill(t, l, 3, 1, 20)
	l = crash(t, l)
	requireValues(t, l, 5, 8, 20)
	requireFiles(t, l)
}

// A view outlives the truncation of what it shows, and a reader never gets a batch that was cut and written anew in halves.
func TestReadWhileTruncating(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 3000, 200
	l := open(t, o)
	fill(t, l, 20, 1, 20)
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			res, err := l.Read(ReadRequest{Offset: 15, UpTo: math.MaxInt64, MaxBytes: 1 << 20})
			if errors.Is(err, ErrOffsetOutOfRange) {
				continue
			}
			if err == nil && res.View != nil {
				var b []byte
				b, _ = res.View.Bytes(nil)
				if _, err = record.ParseHeader(b); err == nil && res.FirstBatchOffset != 15 {
					err = fmt.Errorf("got offset %d", res.FirstBatchOffset)
				}
				res.View.Release()
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 300 {
		require.NoError(t, l.TruncateTo(int64(10+i%8)))
		for l.EndOffset() < 20+int64(i%3) {
			produce(t, l, values(int(l.EndOffset()), 1, 20+i%50)...)
		}
	}
	close(stop)
	require.NoError(t, <-done)
}

func TestAdvanceStartOffset(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes = 500
	l := open(t, o)
	fill(t, l, 30, 1, 20)
	start, err := l.AdvanceStartOffset(31)
	require.ErrorIs(t, err, ErrOffsetOutOfRange)
	require.Zero(t, start)
	start, err = l.AdvanceStartOffset(12)
	require.NoError(t, err)
	require.EqualValues(t, 12, start)
	start, err = l.AdvanceStartOffset(3)
	require.NoError(t, err)
	require.EqualValues(t, 12, start, "not back")
	_, err = l.Read(ReadRequest{Offset: 11, UpTo: 30})
	require.ErrorIs(t, err, ErrOffsetOutOfRange)
	requireValues(t, l, 12, 30, 20)
	l = crash(t, l)
	requireValues(t, l, 12, 30, 20)
	l.Configure(Config{SegmentBytes: 500, IndexSizeMaxBytes: 1000, Compact: true, RetentionBytes: -1, RetentionMs: -1}) // the rule holds for compacted logs as well
	before := len(l.Segments())
	n, err := l.DeleteOldSegments(testTime)
	require.NoError(t, err)
	require.Positive(t, n)
	require.Len(t, l.Segments(), before-n)
	require.LessOrEqual(t, l.Segments()[0].BaseOffset, int64(12))
	requireValues(t, l, 12, 30, 20)
	requireFiles(t, l)
	// All of it: an empty log whose offsets go on.
	_, err = l.AdvanceStartOffset(30)
	require.NoError(t, err)
	_, err = l.DeleteOldSegments(testTime)
	require.NoError(t, err)
	require.Zero(t, l.Size())
	l = reopen(t, l)
	require.EqualValues(t, 30, l.StartOffset())
	require.EqualValues(t, 30, produce(t, l, values(30, 1, 20)...).BaseOffset)
}

func TestFollowerAppends(t *testing.T) {
	at := func(offset int64, epoch int32, recs ...rec) []byte {
		return batch(t, func(o *record.Options) { o.BaseOffset, o.LeaderEpoch = offset, epoch }, recs...)
	}
	l := open(t, setup(t))
	b := append(at(0, 3, values(0, 2, 10)...), at(2, 4, values(2, 1, 10)...)...)
	b = append(b, at(7, 4, values(7, 1, 10)...)...) // a gap, as compaction leaves it
	info, err := l.AppendFollower(append(b, at(8, 4, values(8, 1, 10)...)[:40]...))
	require.NoError(t, err)
	require.EqualValues(t, 0, info.BaseOffset)
	require.EqualValues(t, 7, info.LastOffset)
	require.EqualValues(t, 8, l.EndOffset())
	require.EqualValues(t, 4, l.LatestEpoch())
	res, err := l.Read(ReadRequest{UpTo: 8, MaxBytes: 1 << 20})
	require.NoError(t, err)
	got, err := res.View.Bytes(nil)
	require.NoError(t, err)
	require.Equal(t, b, got, "byte for byte")
	res.View.Release()

	for _, offset := range []int64{0, 7, -1, math.MinInt64} {
		_, err = l.AppendFollower(at(max(offset, 0), 4, values(0, 1, 10)...))
		require.ErrorIs(t, err, ErrUnexpectedOffset)
	}
	bad := at(8, 4, values(8, 1, 10)...)
	bad[len(bad)-1] ^= 1
	info, err = l.AppendFollower(append(at(8, 4, values(8, 1, 10)...), bad...))
	require.ErrorIs(t, err, record.ErrCorrupt)
	require.EqualValues(t, 8, info.LastOffset, "what is good before it stays")
	require.EqualValues(t, 9, l.EndOffset())
	info, err = l.AppendFollower(nil)
	require.NoError(t, err)
	require.EqualValues(t, -1, info.BaseOffset)

	for _, tc := range []struct {
		ask, epoch int32
		end        int64
	}{{4, 4, 9}, {3, 3, 2}, {5, -1, -1}, {2, 2, 0}, {-1, -1, -1}} {
		epoch, end := l.EndOffsetForEpoch(tc.ask)
		require.Equal(t, tc.epoch, epoch)
		require.Equal(t, tc.end, end)
	}
	l = crash(t, l)
	require.EqualValues(t, 4, l.LatestEpoch())
	require.EqualValues(t, 3, l.EpochAt(1))
	require.EqualValues(t, 4, l.EpochAt(2))
}

// A follower may be given more than its own segment.bytes in one batch, and offsets that no one segment can hold.
func TestFollowerAppendsBeyondASegment(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes = 300
	l := open(t, o)
	at := func(offset int64, size int) []byte {
		return batch(t, func(o *record.Options) { o.BaseOffset = offset }, values(int(offset), 1, size)...)
	}
	_, err := l.AppendFollower(append(append(at(0, 1000), at(1, 10)...), at(2, 2000)...))
	require.NoError(t, err)
	require.Len(t, l.Segments(), 3)
	far := int64(math.MaxInt32) + 10
	_, err = l.AppendFollower(at(far, 10))
	require.NoError(t, err)
	require.Equal(t, far, l.Segments()[3].BaseOffset)
	require.EqualValues(t, 0, l.StartOffset())
	l = crash(t, l)
	require.Equal(t, far+1, l.EndOffset())
	require.Len(t, readAll(t, l, 0, far+1, 1), 4)
	require.Len(t, readAll(t, l, 5, far+1, 1), 1, "an offset in the gap")
}

// The active segment may be the only file that says where the offsets of an emptied log go on: it has to be there all the time,
// also while it is replaced because a batch is larger than it was made for.
func TestOffsetsSurviveTheWideningOfTheOnlySegment(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes = 300
	o.StartOffset = 1000
	st := &steppingStorage{}
	o.Storage = st
	l := open(t, o)
	cfg := o.Config
	cfg.SegmentBytes = 10_000
	l.Configure(cfg)
	st.step = func(op, path string) { st.copies = append(st.copies, copyDir(t, o.Dir, op, path)) }
	produce(t, l, values(1000, 1, 2000)...)
	st.step = nil
	require.NotEmpty(t, st.copies)
	o.StartOffset, o.Storage = 0, &plainStorage{}
	for _, c := range st.copies {
		t.Run(c.name, func(t *testing.T) {
			o.Dir = c.dir
			l := open(t, o)
			require.EqualValues(t, 1000, l.StartOffset())
			fill(t, l, 1, 1, 10)
			requireFiles(t, l)
		})
	}
	require.EqualValues(t, 1001, l.EndOffset())
	requireFiles(t, l)
}

func TestEpochs(t *testing.T) {
	o := setup(t)
	l := open(t, o)
	require.EqualValues(t, -1, l.LatestEpoch())
	require.NoError(t, l.AssignEpoch(2))
	fillEpoch := func(epoch int32, n int) {
		for range n {
			_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, values(int(l.EndOffset()), 1, 5)...), LeaderEpoch: epoch})
			require.NoError(t, err)
		}
	}
	fillEpoch(2, 3)
	require.NoError(t, l.AssignEpoch(5))
	require.NoError(t, l.AssignEpoch(4), "an older one changes nothing")
	require.EqualValues(t, 5, l.LatestEpoch())
	fillEpoch(5, 2)
	_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, values(5, 1, 5)...), LeaderEpoch: 4})
	require.ErrorIs(t, err, ErrStaleEpoch)
	require.EqualValues(t, 5, l.EndOffset())

	b, err := os.ReadFile(filepath.Join(o.Dir, epochFile))
	require.NoError(t, err)
	require.Equal(t, "0\n2\n2 0\n5 3\n", string(b))

	require.NoError(t, l.AssignEpoch(9))
	l = crash(t, l)
	require.EqualValues(t, 5, l.LatestEpoch(), "an epoch without records isn't kept")
	require.NoError(t, os.WriteFile(filepath.Join(o.Dir, epochFile), nil, 0o644))
	l = reopen(t, l)
	require.Equal(t, []EpochStart{{2, 0}, {5, 3}}, l.epochs.entries, "found again in the batches")
	require.NoError(t, l.TruncateTo(3))
	require.EqualValues(t, 2, l.LatestEpoch())
	b, err = os.ReadFile(filepath.Join(o.Dir, epochFile))
	require.NoError(t, err)
	require.Equal(t, "0\n1\n2 0\n", string(b))
	l.SetHighWatermark(3)
	_, err = l.AdvanceStartOffset(1)
	require.NoError(t, err)
	require.Equal(t, []EpochStart{{2, 1}}, l.epochs.entries)
	require.NoError(t, l.TruncateTo(10), "beyond the end")
	require.EqualValues(t, 2, l.LatestEpoch())
}

func TestAssignEpochRules(t *testing.T) {
	e := []EpochStart{{1, 0}, {3, 10}, {4, 20}}
	for _, tc := range []struct {
		add  EpochStart
		want []EpochStart
	}{
		{EpochStart{6, 30}, []EpochStart{{1, 0}, {3, 10}, {4, 20}, {6, 30}}},
		{EpochStart{6, 20}, []EpochStart{{1, 0}, {3, 10}, {6, 20}}},
		{EpochStart{6, 15}, []EpochStart{{1, 0}, {3, 10}, {6, 15}}},
		{EpochStart{3, 12}, []EpochStart{{1, 0}, {3, 12}}},
		{EpochStart{0, 0}, []EpochStart{{0, 0}}},
	} {
		require.Equal(t, tc.want, assign(append([]EpochStart(nil), e...), tc.add))
	}
	for _, tc := range []struct {
		start int64
		want  []EpochStart
	}{{0, e}, {5, []EpochStart{{1, 5}, {3, 10}, {4, 20}}}, {10, []EpochStart{{3, 10}, {4, 20}}}, {15, []EpochStart{{3, 15}, {4, 20}}}, {99, []EpochStart{{4, 99}}}} {
		x := epochs{path: filepath.Join(t.TempDir(), "e"), entries: append([]EpochStart(nil), e...)}
		require.NoError(t, x.cutStart(tc.start))
		require.Equal(t, tc.want, x.entries)
		require.Equal(t, tc.want, cutEpochs(append([]EpochStart(nil), e...), tc.start, 100))
	}
}

// checkpointEvents keep what the checkpoint files would say.
type checkpointEvents struct{ start, recovery int64 }

func (*checkpointEvents) HighWatermarkMoved(*Log)         {}
func (e *checkpointEvents) RecoveryPointMoved(l *Log)     { e.recovery = l.RecoveryPoint() }
func (*checkpointEvents) StartOffsetMoved(*Log)           {} // written later
func (e *checkpointEvents) RecoveryPointMovedBack(l *Log) { e.recovery = l.RecoveryPoint() }
func (e *checkpointEvents) BeginsAnew(l *Log)             { e.start = l.StartOffset() }
func (*checkpointEvents) CompactionDue(*Log)              {}
func (*checkpointEvents) CleanedToMovedBack(*Log)         {}
func (*checkpointEvents) Failed(*Log, error)              {}

// A crash at any step of dropping everything leaves a beginning of the old log or the new, empty one; and when the log is to begin behind
// its end, nothing else than that, whatever is left of the files.
func TestCrashInTruncateFully(t *testing.T) {
	for _, start := range []int64{100, 12, 3} { // behind the end, within, before the first segment
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			o := setup(t)
			o.Config.SegmentBytes = 500
			events := &checkpointEvents{}
			st := &steppingStorage{}
			o.Storage, o.Events, o.StartOffset = st, events, 10
			l := open(t, o)
			fill(t, l, 30, 1, 20)
			require.NoError(t, l.Flush(t.Context(), l.EndOffset()))
			require.Greater(t, len(l.Segments()), 3)
			old := readAll(t, l, 10, 40, 1<<20)
			type moment struct {
				checkpointEvents
				dirCopy
			}
			var moments []moment
			st.step = func(op, path string) { moments = append(moments, moment{*events, copyDir(t, l.Dir(), op, path)}) }
			require.NoError(t, l.TruncateFully(start))
			st.step = nil
			require.Greater(t, len(moments), 4)
			for _, m := range moments {
				o := l.o
				o.Storage, o.Dir, o.Events = &plainStorage{}, t.TempDir(), nil
				o.CleanShutdown, o.RecoveryPoint, o.StartOffset, o.HighWatermark = false, m.recovery, m.start, 35
				require.NoError(t, os.CopyFS(o.Dir, os.DirFS(m.dir)))
				again, err := Open(t.Context(), o)
				require.NoError(t, err, m.name)
				require.LessOrEqual(t, m.recovery, min(start, 10), m.name)
				require.LessOrEqual(t, again.HighWatermark(), again.EndOffset(), m.name)
				if start == 100 {
					require.EqualValues(t, []int64{100, 100}, []int64{again.StartOffset(), again.EndOffset()}, m.name)
				} else if end := again.EndOffset(); again.StartOffset() == 10 {
					require.Equal(t, old[:end-10], readAll(t, again, 10, end, 1<<20), m.name)
				}
				requireFiles(t, again)
				require.NoError(t, again.TruncateFully(start), m.name)
				require.EqualValues(t, start, produceNext(t, again), m.name)
				require.NoError(t, again.Close(t.Context()))
			}
		})
	}
}

func produceNext(t *testing.T, l *Log) int64 {
	t.Helper()
	return produce(t, l, values(0, 1, 5)...).BaseOffset
}
