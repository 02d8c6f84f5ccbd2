package log

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// countedStorage counts what is asked of a storage.
type countedStorage struct {
	storage.Storage
	open        atomic.Int64 // segments that are open
	reads, size atomic.Int64 // how often segments were read, and how much of them
}

func (c *countedStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	return c.counted(c.Storage.Create(path, o))
}

func (c *countedStorage) Open(path string, o storage.Options) (storage.Segment, error) {
	return c.counted(c.Storage.Open(path, o))
}

func (c *countedStorage) counted(s storage.Segment, err error) (storage.Segment, error) {
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &countedSegment{Segment: s, of: c}, nil
}

type countedSegment struct {
	storage.Segment
	of     *countedStorage
	closed atomic.Bool
}

func (s *countedSegment) ReadAt(b []byte, pos int64) (int, error) {
	n, err := s.Segment.ReadAt(b, pos)
	s.of.reads.Add(1)
	s.of.size.Add(int64(n))
	return n, err
}

func (s *countedSegment) View(pos, n int64) (storage.View, error) {
	s.of.reads.Add(1)
	s.of.size.Add(n)
	return s.Segment.View(pos, n)
}

func (s *countedSegment) Close() error {
	s.gone()
	return s.Segment.Close()
}

func (s *countedSegment) Remove() error {
	s.gone()
	return s.Segment.Remove()
}

func (s *countedSegment) gone() {
	if s.closed.CompareAndSwap(false, true) {
		s.of.open.Add(-1)
	}
}

// segmentsOf is a log of so many segments of 4 KB, with the storage that counts.
func segmentsOf(t *testing.T, n int) (*Log, *countedStorage) {
	t.Helper()
	o := setup(t)
	counted := &countedStorage{Storage: o.Storage}
	o.Storage = counted
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 4096, 500
	l := open(t, o)
	for len(*l.segments.Load()) < n {
		fill(t, l, 1, 5, 100)
	}
	return l, counted
}

func TestOpeningDoesNotReadSegments(t *testing.T) {
	was := map[int][2]int64{}
	for _, n := range []int{20, 200} {
		l, counted := segmentsOf(t, n)
		require.NoError(t, l.Close(t.Context()))
		require.Zero(t, counted.open.Load(), "segments are open behind a closed log")
		counted.reads.Store(0)
		counted.size.Store(0)
		l = reopen(t, l)
		require.Len(t, *l.segments.Load(), n)
		was[n] = [2]int64{counted.reads.Load(), counted.size.Load()}
		require.LessOrEqual(t, was[n][1], int64(4096), "more than the last segment was read")
		requireValues(t, l, 0, l.EndOffset(), 100)
	}
	require.Equal(t, was[20], was[200], "reads and bytes: what an opening reads grows with the number of segments")
}

// In hours of rolling, retention and restarts nothing may stay open but what the log has.
func TestNothingStaysOpen(t *testing.T) {
	o := setup(t)
	counted := &countedStorage{Storage: o.Storage}
	o.Storage = counted
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Config.RetentionBytes = 4096, 500, 20_000
	l := open(t, o)
	const rounds = 20
	rolled := 0
	for i := range rounds {
		for range 10 {
			before := len(*l.segments.Load())
			fill(t, l, 5, 5, 100)
			rolled += len(*l.segments.Load()) - before
		}
		require.NoError(t, l.Flush(t.Context(), l.EndOffset()))
		_, err := l.DeleteOldSegments(testTime)
		require.NoError(t, err)
		require.EqualValues(t, len(*l.segments.Load()), counted.open.Load())
		require.LessOrEqual(t, len(*l.segments.Load()), 8)
		require.LessOrEqual(t, len(l.snapshots), 9)
		if i%10 == 9 {
			l = reopen(t, l)
			require.EqualValues(t, len(*l.segments.Load()), counted.open.Load(), "after a restart")
		}
	}
	require.Greater(t, rolled, 100)
	require.NoError(t, l.Close(t.Context()))
	require.Zero(t, counted.open.Load())
}
