package log

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A new log has no file that says nothing.
func TestNewLogHasFewFiles(t *testing.T) {
	const base = "00000000000000000000"
	st := &steppingStorage{}
	o := setup(t)
	o.Dir, o.Storage = filepath.Join(o.Dir, "t-0"), st
	o.CleanShutdown = true // as of whatever is made while a broker runs
	id := [16]byte{1, 2, 3}
	begin := func(l *Log, files ...string) {
		require.NoError(t, l.SetTopicID(id))
		require.NoError(t, l.AssignEpoch(4))
		require.EqualValues(t, 4, l.LatestEpoch())
		require.Equal(t, files, filesIn(t, o.Dir))
	}
	l := open(t, o)
	begin(l, base+".log", metadataFile)
	l = crash(t, l)
	require.EqualValues(t, -1, l.LatestEpoch(), "without a record it isn't there")
	begin(l, base+".index", base+".log", base+".timeindex", epochFile, metadataFile) // as they are made anew
	require.NoError(t, l.release(false))
	require.NoError(t, os.RemoveAll(o.Dir))
	l = open(t, o)
	begin(l, base+".log", metadataFile)
	l = reopen(t, l)
	begin(l, base+".index", base+".log", base+".timeindex", metadataFile)
	require.NoError(t, l.release(false))
	require.NoError(t, os.RemoveAll(o.Dir))
	l = open(t, o)
	begin(l, base+".log", metadataFile)

	appended := false
	st.step = func(op, path string) {
		if op != "append" || appended {
			return
		}
		appended = true
		b, err := os.ReadFile(filepath.Join(o.Dir, metadataFile))
		require.NoError(t, err)
		got, err := parseMetadata(b)
		require.NoError(t, err)
		require.Equal(t, id, got)
		b, err = os.ReadFile(filepath.Join(o.Dir, epochFile))
		require.NoError(t, err)
		require.Equal(t, "0\n1\n4 0\n", string(b))
	}
	_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{}), LeaderEpoch: 4})
	require.NoError(t, err)
	require.True(t, appended)
	require.Equal(t, []string{base + ".index", base + ".log", base + ".timeindex", epochFile, metadataFile}, filesIn(t, o.Dir))
	l = crash(t, l)
	require.EqualValues(t, 4, l.LatestEpoch())
	got, ok := l.TopicID()
	require.True(t, ok)
	require.Equal(t, id, got)
}

// A log that begins behind offset 0 can't be opened when a crash takes its topic's id. So the id is made durable before the first file
// of what there was goes: where that can't be, nothing has changed.
func TestTopicIDIsSyncedBeforeALogBeginsBehindZero(t *testing.T) {
	l := open(t, setup(t))
	require.NoError(t, l.SetTopicID([16]byte{1, 2, 3}))
	require.NoError(t, os.Remove(filepath.Join(l.Dir(), metadataFile))) // there is nothing to sync
	require.NoError(t, l.TruncateFully(0), "an empty log needs no id")
	fill(t, l, 3, 1, 10)
	before := filesIn(t, l.Dir())
	require.ErrorIs(t, l.TruncateFully(100), os.ErrNotExist)
	require.ErrorIs(t, l.Err(), ErrFailed)
	require.Equal(t, before, filesIn(t, l.Dir()))
}

// gatedStorage makes a segment only when so many are being made at once.
type gatedStorage struct {
	plainStorage
	all sync.WaitGroup
}

func (s *gatedStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	s.all.Done()
	s.all.Wait()
	return s.plainStorage.Create(path, o)
}

// Logs are made side by side, each once, and spread over the directories.
func TestLogsAreMadeSideBySide(t *testing.T) {
	const logs, askers = 8, 4
	st := &gatedStorage{}
	st.all.Add(logs)
	dirs := []string{t.TempDir(), t.TempDir()}
	m := manager(t, func(o *ManagerOptions) { o.Storage = st }, dirs...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make([]*Log, logs*askers)
	errs := make([]error, logs*askers)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], errs[i] = m.GetOrCreate(ctx, TopicPartition{"t", int32(i % logs)}) })
	}
	wg.Wait()
	for i, l := range got {
		require.NoError(t, errs[i])
		require.Same(t, got[i%logs], l, "of all who ask for it, one makes it")
		require.Equal(t, int32(i%logs), l.Partition())
	}
	for _, d := range dirs {
		found, err := filepath.Glob(filepath.Join(d, "t-*"))
		require.NoError(t, err)
		require.Len(t, found, logs/2)
	}
	require.NoError(t, m.Close(t.Context(), 1))
}

// heldStorage makes no segment before it may.
type heldStorage struct {
	plainStorage
	asked, may chan struct{}
}

func (s *heldStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	close(s.asked)
	<-s.may
	return s.plainStorage.Create(path, o)
}

// A log that is being made is closed in order, too; one whose directory has failed meanwhile takes no records.
func TestLogIsMadeMeanwhile(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("fails=%v", fails), func(t *testing.T) {
			st := &heldStorage{asked: make(chan struct{}), may: make(chan struct{})}
			dir := t.TempDir()
			m := manager(t, func(o *ManagerOptions) { o.Storage = st }, dir)
			tp := TopicPartition{"t", 0}
			made := make(chan error, 1)
			go func() {
				_, err := m.GetOrCreate(t.Context(), tp)
				made <- err
			}()
			<-st.asked
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := m.GetOrCreate(gone, tp)
			require.ErrorIs(t, err, context.Canceled)
			if fails {
				m.dirs[0].failed(os.ErrInvalid)
			}
			closed := make(chan error, 1)
			go func() { closed <- m.Close(t.Context(), 1) }()
			require.Eventually(t, func() bool {
				m.mu.Lock()
				defer m.mu.Unlock()
				return !m.open
			}, time.Minute, time.Millisecond)
			close(st.may)
			err, closeErr := <-made, <-closed
			if fails {
				require.ErrorIs(t, err, ErrOffline)
				require.Error(t, closeErr)
				require.NoFileExists(t, filepath.Join(dir, cleanFile))
				return
			}
			require.NoError(t, err)
			require.NoError(t, closeErr)
			require.FileExists(t, filepath.Join(dir, cleanFile))
			require.Equal(t, []string{"00000000000000000000.index", "00000000000000000000.log", "00000000000000000000.timeindex"}, filesIn(t, filepath.Join(dir, tp.String())))
		})
	}
}
