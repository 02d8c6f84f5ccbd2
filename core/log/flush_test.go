package log

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// slowSync holds every sync until it is told to go on.
type slowSync struct {
	plainStorage
	began, goOn chan struct{}
}

func (s *slowSync) Create(path string, o storage.Options) (storage.Segment, error) {
	g, err := s.plainStorage.Create(path, o)
	if err != nil {
		return nil, err
	}
	return slowSegment{g, s}, nil
}

type slowSegment struct {
	storage.Segment
	s *slowSync
}

func (g slowSegment) Sync() error {
	g.s.began <- struct{}{}
	<-g.s.goOn
	return g.Segment.Sync()
}

// All who wait while a sync runs share the next one.
func TestGroupCommit(t *testing.T) {
	st := &slowSync{began: make(chan struct{}, 100), goOn: make(chan struct{})}
	o := setup(t)
	o.Storage = st
	o.Config.FlushMessages = 1
	l := open(t, o)
	var writers sync.WaitGroup
	flush := func(upTo int64) {
		writers.Go(func() {
			if err := l.Flush(context.Background(), upTo); err != nil {
				t.Error(err)
			}
			if l.RecoveryPoint() < upTo {
				t.Errorf("acknowledged %d, durable up to %d", upTo, l.RecoveryPoint())
			}
		})
	}
	info := produce(t, l, values(0, 1, 5)...)
	require.True(t, info.Flush)
	flush(1)
	<-st.began
	for i := range 20 { // while the first sync runs
		info := produce(t, l, values(1+i, 1, 5)...)
		require.True(t, info.Flush)
		flush(info.LastOffset + 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Flush(ctx, 21), context.Canceled, "who gives up leaves the sync to its owner")
	st.goOn <- struct{}{}
	<-st.began
	st.goOn <- struct{}{}
	writers.Wait()
	require.Equal(t, 2, st.syncs)
	require.EqualValues(t, 21, l.RecoveryPoint())
	require.NoError(t, l.Flush(t.Context(), math.MaxInt64), "all is durable: no sync")
	require.Equal(t, 2, st.syncs)

	// What was appended before, and is durable, needs no sync when it is sent again.
	info = lead(t, l, sent(t, 1, 0, 0, false, values(0, 1, 5)...))
	require.True(t, info.Flush)
	flush(22)
	<-st.began
	again := lead(t, l, sent(t, 1, 0, 0, false, values(0, 1, 5)...))
	require.True(t, again.Duplicate && again.Flush, "it isn't yet")
	st.goOn <- struct{}{}
	writers.Wait()
	again = lead(t, l, sent(t, 1, 0, 0, false, values(0, 1, 5)...))
	require.True(t, again.Duplicate && !again.Flush)
	close(st.goOn)
}

// A sync whose segment a truncation takes away meanwhile is no failure: it waits until it is seen what is left, and syncs that.
func TestSyncWhileTheLogBeginsAnew(t *testing.T) {
	st := &steppingStorage{}
	o := setup(t)
	o.Storage = st
	l := open(t, o)
	fill(t, l, 3, 1, 10)
	syncing, removed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	st.step = func(op, _ string) {
		switch op {
		case "before sync":
			once.Do(func() { // then there is no segment any more to be synced
				close(syncing)
				<-removed
			})
		case "before create":
			close(removed)
			time.Sleep(20 * time.Millisecond) // for a sync that doesn't wait to go wrong
		}
	}
	flushed := make(chan error, 1)
	go func() { flushed <- l.Flush(t.Context(), 3) }()
	<-syncing
	require.NoError(t, l.TruncateFully(7))
	require.NoError(t, <-flushed)
	require.NoError(t, l.Err())
	require.EqualValues(t, 7, l.RecoveryPoint())
}

func TestFlushMessages(t *testing.T) {
	o := setup(t)
	o.Config.FlushMessages = 5
	l := open(t, o)
	for i := range 12 {
		info := produce(t, l, values(i, 1, 5)...)
		require.Equal(t, i == 4 || i == 9, info.Flush, "record %d", i)
		if info.Flush {
			require.NoError(t, l.Flush(t.Context(), info.LastOffset+1))
		}
	}
}

// A log whose write or sync failed takes no more writes, and says so; what was read before can be read.
func TestFailedLog(t *testing.T) {
	for name, fail := range map[string]func(st *plainStorage, l *Log) error{
		"append": func(st *plainStorage, l *Log) error {
			st.failAppend = syscall.ENOSPC
			_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{})})
			st.failAppend = nil
			return err
		},
		"follower append": func(st *plainStorage, l *Log) error {
			st.failAppend = syscall.EIO
			_, err := l.AppendFollower(batch(t, func(o *record.Options) { o.BaseOffset = l.EndOffset() }, rec{}))
			st.failAppend = nil
			return err
		},
		"sync": func(st *plainStorage, l *Log) error {
			st.failSync = syscall.EIO
			err := l.Flush(t.Context(), l.EndOffset())
			st.failSync = nil
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := setup(t)
			st := &plainStorage{}
			o.Storage = st
			l := open(t, o)
			fill(t, l, 3, 1, 10)
			require.ErrorIs(t, fail(st, l), ErrFailed)
			_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{})})
			require.ErrorIs(t, err, ErrFailed)
			_, err = l.AppendFollower(batch(t, func(o *record.Options) { o.BaseOffset = 3 }, rec{}))
			require.ErrorIs(t, err, ErrFailed)
			require.ErrorIs(t, l.Flush(t.Context(), 3), ErrFailed)
			require.ErrorIs(t, l.TruncateTo(1), ErrFailed)
			require.ErrorIs(t, l.AssignEpoch(9), ErrFailed)
			_, err = l.DeleteOldSegments(testTime)
			require.ErrorIs(t, err, ErrFailed)
			require.Zero(t, l.RecoveryPoint())
			requireValues(t, l, 0, 3, 10)
			require.ErrorIs(t, l.Close(t.Context()), ErrFailed)
			require.NoError(t, l.Close(t.Context()), "twice is fine")
			l = crash(t, l)
			requireValues(t, l, 0, 3, 10)
			fill(t, l, 1, 1, 10)
		})
	}
}

// What is appended while Close waits for its sync is durable, too, before the log counts as closed in order: also in segments
// that were sealed meanwhile.
func TestAppendsBesideCloseAreDurable(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes = 300
	st := &steppingStorage{}
	o.Storage = st
	l := open(t, o)
	fill(t, l, 3, 1, 10)
	require.NoError(t, l.Flush(t.Context(), l.EndOffset()))
	before := len(l.Segments())
	fill(t, l, 20, 1, 10)
	synced := map[string]bool{}
	st.step = func(op, path string) { synced[path] = synced[path] || op == "before sync" }
	require.NoError(t, l.release(true))
	st.step = nil
	for _, s := range l.Segments()[before:] {
		require.True(t, synced[s.Path], s.Path)
	}
	require.Equal(t, l.EndOffset(), l.RecoveryPoint())
}

func TestClosedLog(t *testing.T) {
	l := open(t, setup(t))
	fill(t, l, 3, 1, 10)
	res, err := l.Read(ReadRequest{UpTo: 3, MaxBytes: 1 << 20})
	require.NoError(t, err)
	require.NoError(t, l.Close(t.Context()))
	require.NoError(t, l.Close(t.Context()))
	b, err := res.View.Bytes(nil)
	require.NoError(t, err)
	require.Len(t, b, int(l.Size()), "views outlive the log")
	res.View.Release()
	_, err = l.Read(ReadRequest{UpTo: 3})
	require.ErrorIs(t, err, ErrClosed)
	_, err = l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{})})
	require.ErrorIs(t, err, ErrClosed)
	_, _, err = l.OffsetForTimestamp(0, 3)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, l.TruncateTo(0), ErrClosed)
	require.NoError(t, l.Flush(t.Context(), 3), "it is durable")
	require.ErrorIs(t, l.Err(), ErrClosed)
}

// Readers, a writer, syncs, retention and the high watermark, all at once.
func TestConcurrently(t *testing.T) {
	o := setup(t)
	o.Logger = quiet
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Config.RetentionBytes = 4000, 200, 12_000
	l := open(t, o)
	const n = 2000
	var others sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	run := func(f func() error) {
		others.Go(func() {
			for ctx.Err() == nil {
				if err := f(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		at := int64(0)
		run(func() error {
			res, err := l.Read(ReadRequest{Offset: at, UpTo: l.HighWatermark(), MaxBytes: 2000, MinOneBatch: true, Aborted: true})
			if errors.Is(err, ErrOffsetOutOfRange) {
				at = l.StartOffset()
				return nil
			}
			if err != nil || res.View == nil {
				return err
			}
			defer res.View.Release()
			b, err := res.View.Bytes(nil)
			if err != nil {
				return err
			}
			for x, err := range record.All(b) {
				if err != nil {
					return err
				}
				if h := x.Header(); h.BaseOffset != at || record.CheckCRC(x) != nil {
					return fmt.Errorf("offset %d where %d is next", h.BaseOffset, at)
				}
				at++
			}
			return nil
		})
	}
	run(func() error { return l.Flush(ctx, l.EndOffset()) })
	run(func() error { l.SetHighWatermark(l.EndOffset()); return nil })
	run(func() error {
		_, err := l.DeleteOldSegments(testTime)
		time.Sleep(time.Millisecond)
		return err
	})
	run(func() error {
		_, _, err := l.OffsetForTimestamp(testTime.UnixMilli()+l.StartOffset()+5, l.EndOffset())
		l.EndOffsetForEpoch(0)
		l.Producers()
		l.Segments()
		return err
	})
	for i := range n {
		produce(t, l, values(i, 1, 20)...)
	}
	stop()
	others.Wait()
	require.EqualValues(t, n, l.EndOffset())
	l = reopen(t, l)
	requireValues(t, l, l.StartOffset(), n, 20)
}

// Limits of what a leader takes (A08, A09, A10, A22): nothing of what is refused is appended.
func TestLeaderRefuses(t *testing.T) {
	o := setup(t)
	o.Config.MaxMessageBytes, o.Config.SegmentBytes = 1000, 900
	l := open(t, o)
	good := batch(t, nil, rec{value: "hello"})
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-1] ^= 1
	sized := func(n int) []byte {
		b := batch(t, nil, rec{value: string(make([]byte, n))})
		for len(b) > n+70 {
			b = batch(t, nil, rec{value: string(make([]byte, n))})
		}
		return b
	}
	for name, tc := range map[string]struct {
		b    []byte
		want error
	}{
		"a flipped bit":            {flipped, record.ErrCorrupt},
		"larger than allowed":      {sized(1000), record.ErrTooLarge},
		"larger than a segment":    {sized(870), record.ErrLargerThanSegment},
		"two batches":              {append(append([]byte(nil), good...), good...), record.ErrInvalid},
		"a base offset":            {batch(t, func(o *record.Options) { o.BaseOffset = 5 }, rec{}), record.ErrInvalid},
		"a marker from a client":   {endTxn(t, 1, 0, 0, true), record.ErrInvalid},
		"a header and nothing":     {good[:record.HeaderSize], nil},
		"a producer, no sequence":  {sent(t, 1, 0, -1, false, rec{}), record.ErrInvalid},
		"an older format, damaged": {make([]byte, 40), record.ErrCorrupt},
	} {
		info, err := l.AppendLeader(LeaderAppend{Batches: append([]byte(nil), tc.b...)})
		require.ErrorIs(t, err, tc.want, name)
		require.EqualValues(t, -1, info.BaseOffset, name)
		require.Zero(t, l.EndOffset(), name)
	}
	cfg := l.Config()
	cfg.Compact = true
	l.Configure(cfg)
	_, err := l.AppendLeader(LeaderAppend{Batches: good})
	require.ErrorIs(t, err, record.ErrInvalid, "no key in a compacted topic")
	cfg.Compact = false
	l.Configure(cfg)
	require.EqualValues(t, 0, produce(t, l, rec{value: "hello"}).BaseOffset)
}
