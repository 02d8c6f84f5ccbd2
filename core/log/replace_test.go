package log

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
)

// thin copies every second batch of a log's segments, from the second to the last but one, into a replacement.
func thin(t testing.TB, l *Log) *Replacement {
	t.Helper()
	infos := l.Segments()
	require.Greater(t, len(infos), 4)
	first, end := infos[1].BaseOffset, infos[len(infos)-1].BaseOffset
	r, err := l.Replace(first, infos[len(infos)-2].BaseOffset)
	require.NoError(t, err)
	for at := first; at < end; at++ {
		res, err := l.Read(ReadRequest{Offset: at, UpTo: end, MaxBytes: 1, MinOneBatch: true})
		require.NoError(t, err)
		b, err := res.View.Bytes(nil)
		require.NoError(t, err)
		x, _, err := record.Next(b)
		require.NoError(t, err)
		if at%2 == 0 || at == end-1 {
			require.NoError(t, r.Append(x))
		}
		res.View.Release()
	}
	return r
}

// requireThin checks that a log of n values has been thinned out, or hasn't.
func requireThin(t testing.TB, l *Log, n int64, thinned bool, from, to int64) {
	t.Helper()
	var want []string
	for i := range n {
		if !thinned || i < from || i >= to-1 || i%2 == 0 {
			want = append(want, fmt.Sprintf("%020d", i))
		}
	}
	require.Equal(t, n, l.EndOffset())
	require.Equal(t, want, readAll(t, l, 0, n, 1))
	require.Equal(t, want, readAll(t, l, 0, n, 1<<20))
	for at := range n {
		found, ok, err := l.OffsetForTimestamp(testTime.UnixMilli()+at, n)
		require.NoError(t, err)
		require.True(t, ok)
		require.LessOrEqual(t, found.Offset, at+1)
	}
	requireIndexes(t, l)
}

func TestReplace(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 500, 100
	l := open(t, o)
	fill(t, l, 40, 1, 20)
	infos := l.Segments()
	from, to := infos[1].BaseOffset, infos[len(infos)-1].BaseOffset
	for _, bad := range [][2]int64{{from + 1, to}, {from, to}, {to, to}, {from, 1000}, {infos[2].BaseOffset, from}, {-1, -1}} {
		_, err := l.Replace(bad[0], bad[1])
		require.ErrorIs(t, err, ErrReplaced, "%v", bad)
	}
	require.NoError(t, thin(t, l).Abort())
	requireThin(t, l, 40, false, from, to)
	requireFiles(t, l)

	r := thin(t, l)
	old, err := l.Read(ReadRequest{Offset: from, UpTo: 40, MaxBytes: 1000, MinOneBatch: true})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	old.View.Release()
	require.Len(t, l.Segments(), 3)
	requireThin(t, l, 40, true, from, to)
	requireFiles(t, l)
	for _, how := range []func(testing.TB, *Log) *Log{crash, reopen} {
		l = how(t, l)
		requireThin(t, l, 40, true, from, to)
		requireFiles(t, l)
	}

	// What is replaced must still be there.
	fill(t, l, 40, 1, 20)
	r = thin(t, l)
	require.NoError(t, l.TruncateTo(50))
	require.ErrorIs(t, r.Commit(), ErrReplaced)
	requireFiles(t, l)
	require.EqualValues(t, 50, l.EndOffset())
}

// A crash between any two steps of a replacement leaves the old segments or the new one.
func TestReplaceInterrupted(t *testing.T) {
	o := setup(t)
	o.Logger = quiet
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 500, 100
	l := open(t, o)
	fill(t, l, 40, 1, 20)
	require.NoError(t, l.Flush(t.Context(), 40))
	infos := l.Segments()
	from, to := infos[1].BaseOffset, infos[len(infos)-1].BaseOffset
	r := thin(t, l)
	require.NoError(t, r.settle())
	suffixes := []string{logSuffix, indexSuffix, timeSuffix, txnSuffix}
	type step struct{ from, to string }
	var steps []step
	name := func(base int64, suffix, extra string) string { return segmentPath("", base, suffix) + extra }
	for _, s := range suffixes {
		steps = append(steps, step{name(from, s, cleanedSuffix), name(from, s, swapSuffix)})
	}
	begun := len(steps) - 1 // there is no .txnindex
	for _, info := range infos[1 : len(infos)-1] {
		for _, s := range suffixes {
			steps = append(steps, step{name(info.BaseOffset, s, ""), name(info.BaseOffset, s, deletedSuffix)})
		}
	}
	for _, s := range suffixes {
		steps = append(steps, step{name(from, s, swapSuffix), name(from, s, "")})
	}
	for done := range len(steps) + 1 {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(o.Dir)))
		for _, s := range steps[:done] {
			if err := os.Rename(dir+"/"+s.from, dir+"/"+s.to); err != nil {
				require.True(t, errors.Is(err, fs.ErrNotExist), "%v", err)
			}
		}
		o := o
		o.Dir, o.RecoveryPoint, o.HighWatermark = dir, 40, 40
		l := open(t, o)
		requireThin(t, l, 40, done >= begun, from, to)
		requireFiles(t, l)
		l = crash(t, l)
		requireThin(t, l, 40, done >= begun, from, to)
		require.NoError(t, l.Close(t.Context()))
	}
	require.NoError(t, r.Abort())
}
