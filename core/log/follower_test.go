package log

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/record"
)

// TestFollowersAppendManyAtOnce gives one follower batches all at once, and another one by one: both logs are the same, files and indexes
// and what they know of producers, and the same as their leader's wherever that rolled.
func TestFollowersAppendManyAtOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := setup(t)
		o.Dir = t.TempDir()
		o.Config.SegmentBytes = int64(rapid.SampledFrom([]int{700, 3000}).Draw(rt, "segment.bytes"))
		o.Config.IndexIntervalBytes = int32(rapid.SampledFrom([]int{1, 150, 4096}).Draw(rt, "index.interval.bytes"))
		o.Config.SegmentMs = int64(rapid.SampledFrom([]int{100, 1 << 40}).Draw(rt, "segment.ms"))
		if rapid.Bool().Draw(rt, "small index") {
			o.Config.IndexSizeMaxBytes = 40
		}
		var all []byte
		var each [][]byte
		offset, epoch, ts := int64(rapid.IntRange(0, 3).Draw(rt, "start")), int32(0), testTime.UnixMilli()
		sequence := int32(0)
		for range rapid.IntRange(1, 16).Draw(rt, "batches") {
			var b []byte
			epoch += int32(rapid.IntRange(0, 5).Draw(rt, "epoch") / 5)
			ts += int64(rapid.IntRange(0, 30).Draw(rt, "ms"))
			switch rapid.IntRange(0, 6).Draw(rt, "kind") {
			case 0:
				b = endTxn(t, 7, 0, 0, rapid.Bool().Draw(rt, "commit"))
				record.SetBaseOffset(b, offset)
				record.SetLeaderEpoch(b, epoch)
			case 1, 2:
				b = batch(t, func(o *record.Options) {
					o.BaseOffset, o.LeaderEpoch = offset, epoch
					o.Producer, o.Transactional = &record.Producer{ID: 7, Sequence: sequence}, true
				}, rec{ts: ts, value: "x"})
				sequence++
			default:
				var recs []rec
				for i := range rapid.IntRange(1, 4).Draw(rt, "records") {
					recs = append(recs, rec{ts: ts + int64(i), value: fmt.Sprintf("%0*d", rapid.IntRange(1, 60).Draw(rt, "size"), i)})
				}
				b = batch(t, func(o *record.Options) { o.BaseOffset, o.LeaderEpoch = offset, epoch }, recs...)
			}
			h := record.Batch(b).Header()
			offset = h.LastOffset() + 1 + int64(rapid.IntRange(0, 9).Draw(rt, "gap")/9)
			each = append(each, b)
			all = append(all, b...)
		}
		one := open(t, o)
		for _, b := range each {
			_, err := one.AppendFollower(b)
			require.NoError(rt, err)
		}
		o.Dir = t.TempDir()
		many := open(t, o)
		cut := rapid.IntRange(0, len(each[0])).Draw(rt, "cut") // of a batch behind that didn't come whole
		info, err := many.AppendFollower(append(all, each[0][:max(0, cut-1)]...))
		require.NoError(rt, err)
		require.Equal(rt, record.Batch(each[0]).Header().BaseOffset, info.BaseOffset)
		require.Equal(rt, one.EndOffset()-1, info.LastOffset)

		require.Equal(rt, one.Segments()[0].BaseOffset, many.Segments()[0].BaseOffset)
		require.Len(rt, many.Segments(), len(one.Segments()))
		require.Equal(rt, one.epochs.entries, many.epochs.entries)
		require.Equal(rt, one.Producers(), many.Producers())
		require.Equal(rt, one.LastStableOffset(), many.LastStableOffset())
		a, b := *one.segments.Load(), *many.segments.Load()
		for i := range a {
			require.Equal(rt, a[i].base, b[i].base)
			require.Equal(rt, a[i].next.Load(), b[i].next.Load())
			require.Equal(rt, a[i].size.Load(), b[i].size.Load())
			require.Equal(rt, a[i].offsets.len(), b[i].offsets.len(), "entries of segment %d", a[i].base)
			require.Equal(rt, a[i].times.len(), b[i].times.len())
		}
		requireFiles(t, many)
		requireIndexes(t, many)
	})
}

// What comes before a batch that is refused stays.
func TestFollowersStopAtABadBatch(t *testing.T) {
	good := func(offset int64) []byte {
		return batch(t, func(o *record.Options) { o.BaseOffset = offset }, rec{value: "x"})
	}
	for name, bad := range map[string][]byte{"offset again": good(1), "offset back": good(0)} {
		l := open(t, setup(t))
		info, err := l.AppendFollower(append(append(good(0), good(1)...), append(bad, good(9)...)...))
		require.ErrorIs(t, err, ErrUnexpectedOffset, name)
		require.EqualValues(t, 2, l.EndOffset(), name)
		require.EqualValues(t, []int64{0, 1}, []int64{info.BaseOffset, info.LastOffset}, name)
	}
	l := open(t, setup(t))
	fill(t, l, 3, 1, 5)
	info, err := l.AppendFollower(good(1))
	require.ErrorIs(t, err, ErrUnexpectedOffset)
	require.EqualValues(t, []int64{-1, -1}, []int64{info.BaseOffset, info.LastOffset})
}
