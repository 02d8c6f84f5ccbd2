package log

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// manager opens a manager over directories; change may alter its options.
func manager(t testing.TB, change func(*ManagerOptions), paths ...string) *Manager {
	t.Helper()
	m, err := tryManager(t, change, paths...)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close(context.Background(), 0) })
	return m
}

func tryManager(t testing.TB, change func(*ManagerOptions), paths ...string) (*Manager, error) {
	t.Helper()
	o := DefaultManagerOptions()
	o.Storage, o.Logger = &plainStorage{}, quiet
	o.Now = func() time.Time { return testTime }
	o.Config = func(string) Config { c := DefaultConfig(); c.RetentionMs = -1; return c }
	if change != nil {
		change(&o)
	}
	var dirs []*Dir
	for _, p := range paths {
		dirs = append(dirs, openDir(t, p))
	}
	m := NewManager(o, dirs...)
	if err := m.Open(t.Context()); err != nil {
		require.NoError(t, m.Close(t.Context(), 0))
		return nil, err
	}
	return m, nil
}

func create(t testing.TB, m *Manager, topic string, partition int32) *Log {
	t.Helper()
	l, err := m.GetOrCreate(t.Context(), TopicPartition{topic, partition})
	require.NoError(t, err)
	return l
}

func TestManager(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	m := manager(t, nil, a, b)
	_, err := m.Get(TopicPartition{"t", 0})
	require.ErrorIs(t, err, ErrNoLog)
	for i := range int32(6) {
		l := create(t, m, "t", i)
		fill(t, l, int(i)+1, 1, 10)
	}
	require.Same(t, create(t, m, "t", 3), create(t, m, "t", 3))
	for _, name := range []string{"", "..", "a/b"} {
		_, err = m.GetOrCreate(t.Context(), TopicPartition{name, 0})
		require.Error(t, err)
	}
	for _, tp := range []TopicPartition{{"t", -1}, {strings.Repeat("x", maxTopic), 100000}} {
		_, err = m.GetOrCreate(t.Context(), tp)
		require.ErrorIs(t, err, ErrNoLog)
	}
	entries, err := os.ReadDir(b)
	require.NoError(t, err)
	require.Len(t, entries, 4, "spread over both directories: %v", entries)
	l := create(t, m, "t", 5)
	_, err = l.AdvanceStartOffset(2)
	require.NoError(t, err)
	l.SetHighWatermark(6)
	require.NoError(t, m.Close(t.Context(), 9))
	_, err = m.GetOrCreate(t.Context(), TopicPartition{"x", 0})
	require.ErrorIs(t, err, ErrClosed)
	marker, err := os.ReadFile(filepath.Join(a, cleanFile))
	require.NoError(t, err)
	require.Equal(t, `{"version":0,"brokerEpoch":9}`, string(marker))

	m = manager(t, nil, a, b)
	require.NoFileExists(t, filepath.Join(a, cleanFile))
	n := 0
	for l := range m.All() {
		n++
		require.EqualValues(t, l.Partition()+1, l.EndOffset())
		require.Equal(t, l.EndOffset(), l.RecoveryPoint())
		require.Equal(t, l.EndOffset(), l.HighWatermark())
	}
	require.Equal(t, 6, n)
	require.EqualValues(t, 2, create(t, m, "t", 5).StartOffset())
	require.NoError(t, m.Close(t.Context(), 9))
}

func TestManagerDelete(t *testing.T) {
	dir := t.TempDir()
	m := manager(t, nil, dir)
	tp := TopicPartition{"a.b-1.c", 0}
	long := TopicPartition{strings.Repeat("x", maxTopic), 99999}
	for _, tp := range []TopicPartition{tp, long, {"other", 0}} {
		fill(t, create(t, m, tp.Topic, tp.Partition), 20, 1, 10)
	}
	_, err := create(t, m, tp.Topic, tp.Partition).AdvanceStartOffset(15)
	require.NoError(t, err)
	require.NoError(t, m.Checkpoint())
	old := create(t, m, tp.Topic, tp.Partition)
	require.NoError(t, m.Delete(tp))
	require.ErrorIs(t, m.Delete(tp), ErrNoLog)
	require.NoError(t, m.Delete(long))
	_, err = old.Read(ReadRequest{UpTo: 20})
	require.ErrorIs(t, err, ErrClosed)
	_, err = old.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{})})
	require.ErrorIs(t, err, ErrClosed)

	// The same name again, at once; then the machine dies before anything was checkpointed.
	fill(t, create(t, m, tp.Topic, tp.Partition), 3, 1, 10)
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	m = manager(t, nil, copied)
	l, err := m.Get(tp)
	require.NoError(t, err)
	require.EqualValues(t, 0, l.StartOffset(), "not the deleted one's")
	require.EqualValues(t, 3, l.EndOffset())
	require.EqualValues(t, 20, create(t, m, "other", 0).EndOffset())
	entries, err := os.ReadDir(copied)
	require.NoError(t, err)
	for _, e := range entries {
		require.NotContains(t, e.Name(), deleteSuffix, "deletions are finished")
	}
}

func TestManagerRefuses(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	m := manager(t, nil, dir)
	fill(t, create(t, m, "t", 0), 2, 1, 10)
	require.NoError(t, m.Close(t.Context(), 0))
	list := func() (names []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := list()
	require.NoError(t, os.Mkdir(filepath.Join(other, "my photos"), 0o755))
	_, err := tryManager(t, nil, dir, other)
	require.ErrorIs(t, err, ErrDirFormat)
	require.ErrorContains(t, err, "my photos")
	require.NoError(t, os.Remove(filepath.Join(other, "my photos")))
	require.NoError(t, os.Mkdir(filepath.Join(other, "t-0"), 0o755))
	_, err = tryManager(t, nil, dir, other)
	require.ErrorContains(t, err, "in both")
	require.NoError(t, os.Remove(filepath.Join(other, "t-0")))
	metadata := filepath.Join(dir, "t-0", metadataFile)
	require.NoError(t, os.WriteFile(metadata, []byte("version: 7\n"), 0o644))
	_, err = tryManager(t, nil, dir)
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, os.Remove(metadata))
	require.Equal(t, before, list(), "nothing changed, the marker included")
	m = manager(t, nil, dir)
	require.EqualValues(t, 2, create(t, m, "t", 0).EndOffset())
}

func TestDirFailure(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	failed := make(chan *Dir, 10)
	st := &plainStorage{}
	m := manager(t, func(o *ManagerOptions) {
		o.Storage = st
		o.DirFailed = func(d *Dir, err error) { failed <- d }
	}, a, b)
	for i := range int32(4) {
		fill(t, create(t, m, "t", i), 2, 1, 10)
	}
	l := create(t, m, "t", 0)
	bad := m.DirOf(l)
	st.mu.Lock()
	st.failSync = errors.New("input/output error")
	st.mu.Unlock()
	err := l.Flush(t.Context(), 2)
	require.ErrorIs(t, err, ErrFailed)
	st.mu.Lock()
	st.failSync = nil
	st.mu.Unlock()
	require.ErrorIs(t, l.Flush(t.Context(), 2), ErrFailed, "trying again would lie")
	require.Same(t, bad, <-failed)
	require.ErrorIs(t, bad.Err(), ErrOffline)
	for l := range m.All() {
		_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{})})
		if m.DirOf(l) == bad {
			require.ErrorIs(t, err, ErrFailed)
			_, err = m.GetOrCreate(t.Context(), TopicPartition{"t", l.Partition()})
			require.ErrorIs(t, err, ErrOffline)
		} else {
			require.NoError(t, err)
		}
	}
	require.NotSame(t, bad, m.DirOf(create(t, m, "new", 0)))
	require.Error(t, m.Close(t.Context(), 1))
	require.Empty(t, failed)
	require.NoFileExists(t, filepath.Join(bad.Path(), cleanFile))
	for _, d := range m.Dirs() {
		if d != bad {
			require.FileExists(t, filepath.Join(d.Path(), cleanFile))
		}
	}
}

// crowdedStorage has no file descriptor left for another segment while crowded is set.
type crowdedStorage struct {
	plainStorage
	crowded atomic.Bool
}

func (s *crowdedStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	if s.crowded.Load() {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
	}
	return s.plainStorage.Create(path, o)
}

// One log too many doesn't take the others' directory offline.
func TestNoDescriptorForANewLog(t *testing.T) {
	st := &crowdedStorage{}
	m := manager(t, func(o *ManagerOptions) {
		o.Storage = st
		o.DirFailed = func(*Dir, error) { t.Error("a directory failed") }
	}, t.TempDir())
	l := create(t, m, "t", 0)
	st.crowded.Store(true)
	_, err := m.GetOrCreate(t.Context(), TopicPartition{"t", 1})
	require.ErrorIs(t, err, ErrOffline)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.NoDirExists(t, filepath.Join(m.DirOf(l).Path(), "t-1"))
	fill(t, l, 2, 1, 10)
	st.crowded.Store(false)
	fill(t, create(t, m, "t", 1), 2, 1, 10)
	require.NoError(t, m.Close(t.Context(), 1))
}

// Checkpoints are written when something changed, and not before their time.
func TestCheckpointsAreWritten(t *testing.T) {
	dir := t.TempDir()
	m := manager(t, func(o *ManagerOptions) {
		o.HighWatermarkInterval, o.RecoveryPointInterval = 10*time.Millisecond, time.Hour
	}, dir)
	l := create(t, m, "t", 0)
	fill(t, l, 3, 1, 10)
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(dir, HighWatermarks))
		return err == nil && string(b) == "0\n1\nt 0 3\n"
	}, time.Minute, time.Millisecond)
	require.NoFileExists(t, filepath.Join(dir, RecoveryPoints))
	require.NoError(t, l.Flush(t.Context(), 3))
	require.NoError(t, m.Checkpoint())
	b, err := os.ReadFile(filepath.Join(dir, RecoveryPoints))
	require.NoError(t, err)
	require.Equal(t, "0\n1\nt 0 3\n", string(b))
	b, err = os.ReadFile(filepath.Join(dir, StartOffsets))
	require.True(t, err != nil || string(b) == "0\n0\n", "only starts that are no segment's base")
}

// lateOpen holds the opening of one partition's segments until it is told to go on.
type lateOpen struct {
	plainStorage
	partition   string
	began, goOn chan struct{}
}

func (s *lateOpen) Open(path string, o storage.Options) (storage.Segment, error) {
	if filepath.Base(filepath.Dir(path)) == s.partition {
		close(s.began)
		<-s.goOn
	}
	return s.plainStorage.Open(path, o)
}

// A checkpoint file that is written while logs are being opened keeps what it says of those that are still to come: after a crash
// deleted records would be there again.
func TestCheckpointsWhileOpening(t *testing.T) {
	dir := t.TempDir()
	m := manager(t, nil, dir)
	for p := range int32(2) {
		l := create(t, m, "t", p)
		fill(t, l, 9, 1, 10)
		_, err := l.AdvanceStartOffset(5)
		require.NoError(t, err)
	}
	require.NoError(t, m.Close(t.Context(), 1))

	st := &lateOpen{partition: "t-1", began: make(chan struct{}), goOn: make(chan struct{})}
	o := m.o
	o.Storage, o.RecoveryThreads = st, 2
	m = NewManager(o, openDir(t, dir))
	t.Cleanup(func() { m.Close(context.Background(), 1) })
	opened := make(chan error, 1)
	go func() { opened <- m.Open(t.Context()) }()
	<-st.began
	require.Eventually(t, func() bool {
		_, err := m.Get(TopicPartition{"t", 0})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, m.dirs[0].write(startOffsets)) // as a log does that has lost its end
	written, err := m.dirs[0].ReadCheckpoint(StartOffsets)
	require.NoError(t, err)
	require.Equal(t, map[TopicPartition]int64{{"t", 0}: 5, {"t", 1}: 5}, written)
	close(st.goOn)
	require.NoError(t, <-opened)
}

// A recovery point that a truncation moves back is written at once: until it is, a crash would leave what takes the place of the
// records that were cut unchecked.
func TestTruncationMovesTheRecoveryPointBackAtOnce(t *testing.T) {
	for name, cut := range map[string]func(*Log) error{
		"to an offset":            func(l *Log) error { return l.TruncateTo(2) },
		"below the first segment": func(l *Log) error { return l.TruncateTo(1) },
		"fully":                   func(l *Log) error { return l.TruncateFully(2) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := manager(t, func(o *ManagerOptions) { o.RecoveryPointInterval = time.Hour }, dir)
			l := create(t, m, "t", 0)
			if name == "below the first segment" {
				require.NoError(t, l.TruncateFully(2))
			}
			other := create(t, m, "t", 1)
			fill(t, l, 10, 1, 10)
			fill(t, other, 3, 1, 10)
			for _, l := range []*Log{l, other} {
				require.NoError(t, l.Flush(t.Context(), l.EndOffset()))
			}
			require.NoError(t, m.Checkpoint())
			require.NoError(t, cut(l))
			written, err := m.Dirs()[0].ReadCheckpoint(RecoveryPoints)
			require.NoError(t, err)
			require.Len(t, written, 2)
			require.EqualValues(t, 3, written[TopicPartition{"t", 1}])
			require.LessOrEqual(t, written[TopicPartition{"t", 0}], l.RecoveryPoint())
			require.LessOrEqual(t, l.RecoveryPoint(), int64(2))
		})
	}
}

// Upkeep: retention, flush.ms and forgotten producers.
func TestUpkeep(t *testing.T) {
	dir := t.TempDir()
	m := manager(t, func(o *ManagerOptions) {
		o.InitialDelay, o.RetentionInterval, o.FlushInterval = time.Millisecond, time.Millisecond, time.Millisecond
		o.ProducerExpirationInterval, o.ProducerExpiration = time.Millisecond, time.Millisecond
		o.Config = func(string) Config {
			c := DefaultConfig()
			c.SegmentBytes, c.RetentionMs, c.RetentionBytes, c.FlushMs, c.FileDeleteDelayMs = 300, -1, 300, 1, 1
			return c
		}
	}, dir)
	l := create(t, m, "t", 0)
	lead(t, l, sent(t, 1, 0, 0, false, rec{ts: 1}))
	fill(t, l, 20, 1, 30)
	require.Eventually(t, func() bool {
		entries, err := os.ReadDir(l.Dir())
		require.NoError(t, err)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), deletedSuffix) {
				return false
			}
		}
		return l.StartOffset() > 10 && l.RecoveryPoint() == 21 && len(l.Producers()) == 0
	}, time.Minute, time.Millisecond)
	requireValues21 := readAll(t, l, l.StartOffset(), 21, math.MaxInt32)
	require.Len(t, requireValues21, int(21-l.StartOffset()))
}

func TestAgenda(t *testing.T) {
	var a agenda
	var did []string
	at := func(s int) time.Time { return testTime.Add(time.Duration(s) * time.Second) }
	for _, s := range []int{5, 1, 3, 1} {
		a.add(at(s), func() { did = append(did, fmt.Sprint(s)) })
	}
	run := func(now int) time.Time {
		for {
			f, next := a.take(at(now))
			if f == nil {
				return next
			}
			f()
		}
	}
	require.Equal(t, at(1), run(0))
	require.Empty(t, did)
	require.Equal(t, at(5), run(3))
	require.Equal(t, []string{"1", "1", "3"}, did)
	require.True(t, run(9).IsZero())
	require.Equal(t, []string{"1", "1", "3", "5"}, did)
}

func TestManyLogs(t *testing.T) {
	dir := t.TempDir()
	m := manager(t, nil, dir)
	for i := range int32(200) {
		l := create(t, m, "many", i)
		if i%2 == 0 {
			fill(t, l, 3, 1, 10)
		}
	}
	require.NoError(t, m.Close(t.Context(), 0))
	for range 2 {
		m = manager(t, nil, dir)
		for i := range int32(200) {
			l, err := m.Get(TopicPartition{"many", i})
			require.NoError(t, err)
			require.Equal(t, int64(3-i%2*3), l.EndOffset())
		}
		require.NoError(t, m.Close(t.Context(), 0))
	}
}
