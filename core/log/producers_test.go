package log

import (
	"errors"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/log/producers"
	"github.com/barnabas-mq/barnabas/core/record"
)

// sent builds what an idempotent producer sends.
func sent(t testing.TB, id int64, epoch int16, sequence int32, txn bool, recs ...rec) []byte {
	return batch(t, func(o *record.Options) {
		o.Producer, o.Transactional = &record.Producer{ID: id, Epoch: epoch, Sequence: sequence}, txn
	}, recs...)
}

// endTxn builds a transaction marker.
func endTxn(t testing.TB, id int64, epoch int16, coordinator int32, commit bool) []byte {
	t.Helper()
	b := record.NewBuilder(record.Options{Producer: &record.Producer{ID: id, Epoch: epoch, Sequence: -1}, Transactional: true, Control: true})
	require.NoError(t, b.Append(record.EndTxnMarker{Commit: commit, CoordinatorEpoch: coordinator}.Record(0, testTime.UnixMilli())))
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

func lead(t testing.TB, l *Log, b []byte) AppendInfo {
	t.Helper()
	info, err := l.AppendLeader(LeaderAppend{Batches: b})
	require.NoError(t, err)
	return info
}

func mark(t testing.TB, l *Log, b []byte) AppendInfo {
	t.Helper()
	info, err := l.AppendLeader(LeaderAppend{Batches: b, Origin: record.FromCoordinator})
	require.NoError(t, err)
	return info
}

func TestIdempotence(t *testing.T) {
	l := open(t, setup(t))
	try := func(id int64, epoch int16, sequence int32, n int) (AppendInfo, error) {
		return l.AppendLeader(LeaderAppend{Batches: sent(t, id, epoch, sequence, false, values(0, n, 5)...)})
	}
	info, err := try(1, 0, 17, 2) // unknown: any sequence will do
	require.NoError(t, err)
	require.EqualValues(t, 0, info.BaseOffset)
	info, err = try(1, 0, 17, 2)
	require.NoError(t, err)
	require.True(t, info.Duplicate)
	require.EqualValues(t, 0, info.BaseOffset)
	require.EqualValues(t, 1, info.LastOffset)
	require.EqualValues(t, 2, l.EndOffset())
	for _, sequence := range []int32{17, 18, 20, 0} { // 17 with another length
		_, err = try(1, 0, sequence, 1)
		require.ErrorIs(t, err, producers.ErrOutOfOrder)
	}
	for i := range 6 {
		info, err = try(1, 0, int32(19+i), 1)
		require.NoError(t, err)
		require.False(t, info.Duplicate)
	}
	info, err = try(1, 0, 20, 1) // within the last five
	require.NoError(t, err)
	require.True(t, info.Duplicate)
	require.EqualValues(t, 3, info.BaseOffset)
	_, err = try(1, 0, 19, 1) // older
	require.ErrorIs(t, err, producers.ErrOutOfOrder)
	_, err = try(1, 1, 3, 1) // a new epoch begins at 0
	require.ErrorIs(t, err, producers.ErrOutOfOrder)
	_, err = try(1, 1, 0, 1)
	require.NoError(t, err)
	_, err = try(1, 0, 25, 1)
	require.ErrorIs(t, err, producers.ErrEpoch)
	require.EqualValues(t, 9, l.EndOffset())

	// The sequence wraps.
	_, err = try(2, 0, math.MaxInt32-1, 2)
	require.NoError(t, err)
	_, err = try(2, 0, 1, 1)
	require.ErrorIs(t, err, producers.ErrOutOfOrder)
	_, err = try(2, 0, 0, 1)
	require.NoError(t, err)
	_, err = try(2, 0, math.MaxInt32-1, 2)
	require.NoError(t, err)

	// After a restart from the snapshot one batch is known; after a crash what is replayed.
	for _, how := range []func(testing.TB, *Log) *Log{reopen, crash} {
		l = how(t, l)
		info, err = try(2, 0, 0, 1)
		require.NoError(t, err)
		require.True(t, info.Duplicate)
		require.EqualValues(t, 11, info.BaseOffset)
		_, err = try(1, 1, 5, 1)
		require.ErrorIs(t, err, producers.ErrOutOfOrder)
	}
	// What is cut is forgotten.
	require.NoError(t, l.TruncateTo(11))
	info, err = try(2, 0, 0, 1)
	require.NoError(t, err)
	require.False(t, info.Duplicate)
	require.Equal(t, 2, len(l.Producers()))
	require.Equal(t, 2, l.ExpireProducers(testTime.Add(1000000), 0))
}

func TestTransactions(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 600, 100
	l := open(t, o)
	stable := func() int64 { return l.LastStableOffset() }
	lead(t, l, sent(t, 1, 0, 0, true, values(0, 2, 5)...)) // 0, 1
	l.SetHighWatermark(2)
	require.EqualValues(t, 0, stable())
	require.True(t, l.TransactionOpen(1, 0))
	require.False(t, l.TransactionOpen(1, 1))
	_, err := l.AppendLeader(LeaderAppend{Batches: sent(t, 1, 0, 2, false, values(0, 1, 5)...)})
	require.ErrorIs(t, err, producers.ErrTxnState)
	lead(t, l, sent(t, 2, 0, 0, true, values(2, 1, 5)...)) // 2
	mark(t, l, endTxn(t, 1, 0, 7, false))                  // 3: aborted
	require.EqualValues(t, 0, stable())
	l.SetHighWatermark(3)
	require.EqualValues(t, 0, stable(), "the marker isn't replicated")
	l.SetHighWatermark(4)
	require.EqualValues(t, 2, stable())
	_, err = l.AppendLeader(LeaderAppend{Batches: endTxn(t, 1, 0, 6, true), Origin: record.FromCoordinator})
	require.ErrorIs(t, err, producers.ErrCoordinatorFenced)
	_, err = l.AppendLeader(LeaderAppend{Batches: endTxn(t, 1, 0, 7, true)})
	require.ErrorIs(t, err, record.ErrInvalid, "a client can't send markers")
	for i := range 10 {
		produce(t, l, values(4+i, 1, 40)...) // 4 … 13
	}
	lead(t, l, sent(t, 1, 0, 2, true, values(14, 1, 5)...)) // 14
	mark(t, l, endTxn(t, 2, 0, 7, true))                    // 15: committed
	l.SetHighWatermark(16)
	require.EqualValues(t, 14, stable())
	mark(t, l, endTxn(t, 1, 1, 7, false)) // 16: aborted, with a new epoch
	l.SetHighWatermark(17)
	require.EqualValues(t, 17, stable())
	require.Greater(t, len(l.Segments()), 2)
	require.Equal(t, ProducerState{1, 1, -1, testTime.UnixMilli(), 7, -1}, l.Producers()[0])

	check := func(l *Log) {
		t.Helper()
		all := []AbortedTxn{{1, 0}, {1, 14}}
		for _, tc := range []struct {
			from int64
			max  int
			want []AbortedTxn
		}{
			{0, 1, all[:1]}, // Kafka may tell more than needed, never less
			{3, 1, all[:1]},
			{4, 1, nil},
			{14, 1 << 20, all[1:]},
			{16, 1 << 20, all[1:]},
		} {
			res, err := l.Read(ReadRequest{Offset: tc.from, UpTo: 17, MaxBytes: tc.max, MinOneBatch: true, Aborted: true})
			require.NoError(t, err)
			require.Equal(t, tc.want, res.Aborted, "from %d", tc.from)
			res.View.Release()
		}
		require.EqualValues(t, 17, l.LastStableOffset())
	}
	check(l)
	for _, how := range []func(testing.TB, *Log) *Log{reopen, crash, reopen} {
		l = how(t, l)
		check(l)
		requireFiles(t, l)
	}
	// A follower learns the same from the bytes.
	b, err := os.ReadFile(l.Segments()[0].Path)
	require.NoError(t, err)
	for _, s := range l.Segments()[1:] {
		x, err := os.ReadFile(s.Path)
		require.NoError(t, err)
		b = append(b, x...)
	}
	fo := setup(t)
	fo.Config = o.Config
	f := open(t, fo)
	_, err = f.AppendFollower(b)
	require.NoError(t, err)
	f.SetHighWatermark(17)
	check(f)
	require.Equal(t, l.Producers(), f.Producers())
	// Cutting takes transactions back: the second one is open again.
	require.NoError(t, f.TruncateTo(16))
	require.EqualValues(t, 14, f.LastStableOffset())
	f = reopen(t, f)
	require.EqualValues(t, 14, f.LastStableOffset())
	require.True(t, f.TransactionOpen(1, 0))
}

// Snapshots that are torn, of another version or missing: an older one and the batches say the same.
func TestBadSnapshots(t *testing.T) {
	for _, bad := range []func(path string) error{
		os.Remove,
		func(p string) error { return os.Truncate(p, 9) },
		func(p string) error { return os.Truncate(p, 0) },
		func(p string) error { return os.WriteFile(p, []byte("\x00\x02 something of another version"), 0o644) },
	} {
		o := setup(t)
		o.Config.SegmentBytes = 500
		l := open(t, o)
		for i := range 20 {
			lead(t, l, sent(t, int64(1+i%3), 0, int32(i/3), false, values(i, 1, 20)...))
		}
		want := l.Producers()
		require.NoError(t, l.Close(t.Context()))
		require.NotEmpty(t, l.snapshots)
		for _, offset := range l.snapshots[1:] {
			require.NoError(t, bad(segmentPath(o.Dir, offset, snapshotSuffix)))
		}
		l = reopen(t, l)
		require.Equal(t, want, l.Producers())
		l = crash(t, l)
		require.Equal(t, want, l.Producers())
	}
}

func TestCoordinatorBatches(t *testing.T) {
	l := open(t, setup(t))
	mark(t, l, sent(t, 1, 3, -1, true, values(0, 1, 5)...))
	mark(t, l, sent(t, 1, 3, -1, true, values(1, 1, 5)...))
	_, err := l.AppendLeader(LeaderAppend{Batches: sent(t, 1, 2, -1, true, values(1, 1, 5)...), Origin: record.FromCoordinator})
	require.ErrorIs(t, err, producers.ErrEpoch)
	l.SetHighWatermark(2)
	require.EqualValues(t, 0, l.LastStableOffset())
	mark(t, l, endTxn(t, 1, 3, 0, true))
	l.SetHighWatermark(3)
	require.EqualValues(t, 3, l.LastStableOffset())
}

// TestVerify: a batch that would open a transaction is appended only when the coordinator says so; those that follow, that
// come again, or that are no part of a transaction aren't asked about.
func TestVerify(t *testing.T) {
	l := open(t, setup(t))
	refused := errors.New("not in the transaction")
	asked, answer := 0, refused
	try := func(id int64, epoch int16, sequence int32, txn bool) error {
		_, err := l.AppendLeader(LeaderAppend{Batches: sent(t, id, epoch, sequence, txn, values(0, 1, 5)...), Verify: func(askedID int64, askedEpoch int16) error {
			require.Equal(t, id, askedID)
			require.Equal(t, epoch, askedEpoch)
			asked++
			return answer
		}})
		return err
	}
	require.NoError(t, try(9, 0, 0, false))
	require.Zero(t, asked, "no transaction")
	require.ErrorIs(t, try(1, 0, 0, true), refused)
	require.EqualValues(t, 1, l.EndOffset(), "nothing was appended")
	require.Equal(t, 1, asked)
	answer = nil
	require.NoError(t, try(1, 0, 0, true))
	require.Equal(t, 2, asked)
	answer = refused
	require.NoError(t, try(1, 0, 1, true), "the transaction is open")
	require.NoError(t, try(1, 0, 1, true), "sent again")
	require.Equal(t, 2, asked)
	require.ErrorIs(t, try(1, 1, 0, true), refused, "of another epoch it isn't")
	mark(t, l, endTxn(t, 1, 0, 7, true))
	require.ErrorIs(t, try(1, 0, 2, true), refused, "the next one")
}
