package log

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// compacting opens a manager whose logs are compacted as soon as possible.
func compacting(t testing.TB, change func(*ManagerOptions), paths ...string) *Manager {
	t.Helper()
	return manager(t, func(o *ManagerOptions) {
		o.Cleaner.Backoff = time.Millisecond
		o.Config = func(string) Config {
			c := compacted(t).Config
			c.MinCleanableDirtyRatio = 0
			return c
		}
		if change != nil {
			change(o)
		}
	}, paths...)
}

func compactedTo(t testing.TB, l *Log, offset int64) {
	t.Helper()
	require.Eventually(t, func() bool { return l.CleanedTo() == offset }, time.Minute, time.Millisecond)
}

func TestCleaner(t *testing.T) {
	dir := t.TempDir()
	m := compacting(t, nil, dir)
	a, b := create(t, m, "a", 0), create(t, m, "b", 3)
	for _, l := range []*Log{a, b} {
		put(t, l, "k=1", "k=2")
		rollNow(t, l)
	}
	compactedTo(t, a, 2)
	compactedTo(t, b, 2)
	require.Equal(t, []string{"1:k=2"}, contents(t, a))
	checkpoint := func() string {
		f, err := os.ReadFile(filepath.Join(dir, CleanerOffsets))
		require.NoError(t, err)
		return string(f)
	}
	require.Eventually(t, func() bool {
		return strings.HasPrefix(checkpoint(), "0\n2\n") && strings.Contains(checkpoint(), "a 0 2\n") && strings.Contains(checkpoint(), "b 3 2\n")
	}, time.Minute, time.Millisecond)
	// What is cut off below is dirty again before it is cut.
	require.NoError(t, a.TruncateTo(1))
	require.NotContains(t, checkpoint(), "a 0 2\n")
	require.NoError(t, m.Close(t.Context(), 0))
	m = compacting(t, nil, dir)
	b, err := m.Get(TopicPartition{"b", 3})
	require.NoError(t, err)
	require.EqualValues(t, 2, b.CleanedTo())
	// Of a log that was made anew nothing was compacted.
	require.NoError(t, m.Delete(TopicPartition{"b", 3}))
	b = create(t, m, "b", 3)
	require.Zero(t, b.CleanedTo())
	require.NotContains(t, checkpoint(), "b 3")
}

// A topic that becomes compacted is noticed without a look at the others; one that isn't compacted is left alone.
func TestCleanerNotices(t *testing.T) {
	m := compacting(t, func(o *ManagerOptions) {
		o.Config = func(string) Config {
			c := compacted(t).Config
			c.Compact, c.MinCleanableDirtyRatio = false, 0
			return c
		}
	}, t.TempDir())
	l := create(t, m, "t", 0)
	put(t, l, "k=1", "k=2")
	rollNow(t, l)
	time.Sleep(20 * time.Millisecond)
	require.Zero(t, l.CleanedTo())
	c := l.Config()
	c.Compact = true
	l.Configure(c)
	compactedTo(t, l, 2)
	// The high watermark moves later than the segment is closed.
	_, err := l.AppendLeader(LeaderAppend{Batches: keyed(t, record.Options{}, "k=3")})
	require.NoError(t, err)
	rollNow(t, l)
	time.Sleep(20 * time.Millisecond)
	require.EqualValues(t, 2, l.CleanedTo())
	l.SetHighWatermark(math.MaxInt64)
	compactedTo(t, l, 3)
}

func TestCleanerOff(t *testing.T) {
	for name, change := range map[string]func(o *ManagerOptions){
		"disabled":   func(o *ManagerOptions) { o.Compaction = false },
		"no threads": func(o *ManagerOptions) { o.Cleaner.Threads = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			m := compacting(t, change, t.TempDir())
			l := create(t, m, "t", 0)
			put(t, l, "k=1", "k=2")
			rollNow(t, l)
			time.Sleep(30 * time.Millisecond)
			require.Zero(t, l.CleanedTo())
			o := m.o.Cleaner
			o.Threads = 2
			m.SetCleaner(o)
			if name == "no threads" {
				compactedTo(t, l, 2)
			}
		})
	}
}

// A log that can't be compacted is told of once, and the others go on.
func TestUncleanable(t *testing.T) {
	var out syncBuffer
	m := compacting(t, func(o *ManagerOptions) { o.Logger = slog.New(slog.NewTextHandler(&out, nil)) }, t.TempDir())
	bad, good := create(t, m, "bad", 0), create(t, m, "good", 0)
	put(t, bad, "k=1", "k=2")
	path := bad.Segments()[0].Path
	flipLastBit(t, path)
	rollNow(t, bad)
	for i := range 5 {
		put(t, good, fmt.Sprintf("k=%d", i))
		rollNow(t, good)
		compactedTo(t, good, int64(i)+1)
	}
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "can't be compacted") }, time.Minute, time.Millisecond)
	put(t, bad, "k=3")
	rollNow(t, bad)
	put(t, good, "k=9")
	rollNow(t, good)
	compactedTo(t, good, 6)
	require.Equal(t, 1, strings.Count(out.String(), "can't be compacted"), out.String())
	require.NoError(t, bad.Err())
	require.Zero(t, bad.CleanedTo())
}

// fullStorage has no space for cleaned segments while full is set.
type fullStorage struct {
	plainStorage
	full atomic.Bool
}

func (s *fullStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	if s.full.Load() && strings.HasSuffix(path, cleanedSuffix) {
		return nil, &os.PathError{Op: "create", Path: path, Err: syscall.ENOSPC}
	}
	return s.plainStorage.Create(path, o)
}

// A disk that was full for a while doesn't end the compaction of a log.
func TestCompactionGoesOnWhenThereIsSpaceAgain(t *testing.T) {
	var out syncBuffer
	st := &fullStorage{}
	st.full.Store(true)
	m := compacting(t, func(o *ManagerOptions) {
		o.Storage, o.Logger = st, slog.New(slog.NewTextHandler(&out, nil))
	}, t.TempDir())
	l := create(t, m, "t", 0)
	put(t, l, "k=1", "k=2")
	rollNow(t, l)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "no space left") }, time.Minute, time.Millisecond)
	require.NoError(t, l.Err())
	st.full.Store(false)
	compactedTo(t, l, 2)
	require.Equal(t, []string{"1:k=2"}, contents(t, l))
}

// With compact,delete retention applies, too.
func TestCompactAndDelete(t *testing.T) {
	m := compacting(t, func(o *ManagerOptions) {
		o.Config = func(string) Config {
			c := compacted(t).Config
			c.Delete, c.MinCleanableDirtyRatio, c.RetentionMs = true, 0, 1000
			return c
		}
		o.Now = func() time.Time { return testTime.Add(2 * time.Second) }
	}, t.TempDir())
	l := create(t, m, "t", 0)
	put(t, l, "k=1", "k=2")
	rollNow(t, l)
	compactedTo(t, l, 2)
	m.EnforceRetention()
	require.EqualValues(t, 2, l.StartOffset())
	require.Empty(t, contents(t, l))
}

// Many logs, more than one thread, and a stop in the middle: what was begun is given up and done anew.
func TestCleanerStops(t *testing.T) {
	dir := t.TempDir()
	m := compacting(t, func(o *ManagerOptions) { o.Cleaner.Threads, o.Cleaner.BytesPerSecond = 3, 100 }, dir)
	for i := range int32(6) {
		l := create(t, m, "t", i)
		for n := range 20 {
			put(t, l, fmt.Sprintf("k%d=%d", n%3, n))
		}
		rollNow(t, l)
	}
	time.Sleep(10 * time.Millisecond)
	began := time.Now()
	require.NoError(t, m.Close(t.Context(), 0))
	require.Less(t, time.Since(began), time.Minute)
	m = compacting(t, func(o *ManagerOptions) { o.Cleaner.Threads = 3 }, dir)
	for i := range int32(6) {
		l, err := m.Get(TopicPartition{"t", i})
		require.NoError(t, err)
		l.SetHighWatermark(math.MaxInt64)
		compactedTo(t, l, 20)
		require.Equal(t, map[string]string{"k0": "18", "k1": "19", "k2": "17"}, latest(t, l))
		left, err := filepath.Glob(filepath.Join(l.Dir(), "*"+cleanedSuffix))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// Appends, reads, and compaction at the same time.
func TestCompactionBesideReaders(t *testing.T) {
	m := compacting(t, func(o *ManagerOptions) {
		config := o.Config
		o.Config = func(topic string) Config { c := config(topic); c.FileDeleteDelayMs = 0; return c }
	}, t.TempDir())
	l := create(t, m, "t", 0)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				latest(t, l)
			}
		})
	}
	for i := range 400 {
		put(t, l, fmt.Sprintf("k%d=%d", i%7, i))
	}
	stop()
	readers.Wait()
	rollNow(t, l)
	compactedTo(t, l, 400)
	want := map[string]string{}
	for i := range 400 {
		want[fmt.Sprintf("k%d", i%7)] = fmt.Sprint(i)
	}
	require.Equal(t, want, latest(t, l))
	require.Less(t, l.Size(), int64(4000))
}

func TestThrottle(t *testing.T) {
	var th throttle
	now := testTime
	require.Equal(t, time.Second, th.take(now, 100, 100))
	require.Equal(t, 1500*time.Millisecond, th.take(now.Add(500*time.Millisecond), 100, 100))
	require.Equal(t, time.Second, th.take(now.Add(time.Hour), 100, 100), "time that was not used is lost")
	require.Zero(t, th.take(now.Add(2*time.Hour), 1, 1e18))
	th = throttle{}
	require.Equal(t, maxPause, th.take(now, 1000, 1e-9))
	th = throttle{}
	require.Equal(t, maxPause, th.take(now, 1000, 0))
}

// syncBuffer may be written to and read at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
