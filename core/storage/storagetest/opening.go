package storagetest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func openingClauses() []Clause {
	return []Clause{
		{"0.0 component: errors before Start and after Stop, Stop is safe at any time", checkComponent},
		{"1.1 create refuses an existing file and leaves it alone", checkCreateExisting},
		{"1.1 create in a missing directory fails", checkCreateNowhere},
		{"1.2 create allocates nothing before the first append", checkCreateCheap},
		{"1.3 a new segment is empty", checkCreateEmpty},
		{"2.1 open takes the length of the file for the size", checkOpenSize},
		{"2.1 open after a crash: the tail can be cut", checkOpenTail},
		{"2.2 appends go on after open", checkOpenAppend},
		{"2.2 read-only refuses appends and truncation", checkReadOnly},
		{"2.3 open of a missing file fails, of an empty one doesn't", checkOpenMissing},
		{"2.3 open of a directory fails", checkOpenDirectory},
		{"0.1 capacity below the length of the file doesn't hide it", checkCapacityBelowFile},
	}
}

func checkComponent(t T, h Harness) {
	ctx := context.Background()
	s, err := h.New()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, s.Stop(ctx), "stop before start")
	_, err = s.Create(path, storage.Options{Capacity: 100})
	require.Error(t, err, "create before start")
	_, err = s.Open(path, storage.Options{Capacity: 100})
	require.Error(t, err, "open before start")
	require.NoFileExists(t, path)

	s = h.start(t)
	g, err := s.Create(path, storage.Options{Capacity: 100})
	require.NoError(t, err)
	mustAppend(t, g, pattern(1, 10))
	require.NoError(t, g.Close())
	require.NoError(t, s.Stop(ctx))
	require.NoError(t, s.Stop(ctx), "stop again")
	_, err = s.Open(path, storage.Options{Capacity: 100})
	require.Error(t, err, "open after stop")
}

func checkCreateExisting(t T, h Harness) {
	path := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	_, err := h.start(t).Create(path, storage.Options{Capacity: 100})
	require.ErrorIs(t, err, fs.ErrExist)
	requireFile(t, path, []byte("old"), false)
}

func checkCreateNowhere(t T, h Harness) {
	_, err := h.start(t).Create(filepath.Join(t.TempDir(), "missing", "a.log"), storage.Options{Capacity: 100})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func checkCreateCheap(t T, h Harness) {
	g, path := h.create(t, storage.Options{Capacity: 1 << 30})
	requireFile(t, path, nil, false)
	require.Zero(t, diskUsage(t, path), "bytes allocated on disk")
	require.NoError(t, g.Close())
	requireFile(t, path, nil, false)
}

func checkCreateEmpty(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	require.FileExists(t, path)
	requireContent(t, g, nil)
}

func checkOpenSize(t T, h Harness) {
	s, dir := h.start(t), t.TempDir()
	for i, n := range sizes() {
		path := filepath.Join(dir, string(rune('a'+i)))
		want := pattern(i, n)
		require.NoError(t, os.WriteFile(path, want, 0o600))
		for _, readOnly := range []bool{false, true} {
			g, err := s.Open(path, storage.Options{Capacity: defaultCapacity, ReadOnly: readOnly})
			require.NoError(t, err)
			requireContent(t, g, want)
			require.NoError(t, g.Close())
			requireFile(t, path, want, false)
		}
	}
}

func checkOpenTail(t T, h Harness) {
	s := h.start(t)
	path := filepath.Join(t.TempDir(), "a.log")
	want := pattern(1, 10_000)
	torn := append(append([]byte(nil), want...), make([]byte, 50_000)...)
	copy(torn[len(want):], "half a batch")
	require.NoError(t, os.WriteFile(path, torn, 0o600))
	g, err := s.Open(path, storage.Options{Capacity: 100_000})
	require.NoError(t, err)
	requireContent(t, g, torn)
	require.NoError(t, g.Truncate(int64(len(want))))
	requireContent(t, g, want)
	more := pattern(2, 5000)
	mustAppend(t, g, more)
	want = append(want, more...)
	requireContent(t, g, want)
	requireFile(t, path, want, true)
	require.NoError(t, g.Close())
	requireFile(t, path, want, false)
}

func checkOpenAppend(t T, h Harness) {
	s := h.start(t)
	path := filepath.Join(t.TempDir(), "a.log")
	g, err := s.Create(path, storage.Options{Capacity: defaultCapacity})
	require.NoError(t, err)
	var want []byte
	for i, n := range sizes() {
		b := pattern(i, n)
		mustAppend(t, g, b)
		want = append(want, b...)
		requireFile(t, path, want, true)
		require.NoError(t, g.Close())
		requireFile(t, path, want, false)
		g, err = s.Open(path, storage.Options{Capacity: defaultCapacity})
		require.NoError(t, err)
		requireContent(t, g, want)
	}
	require.NoError(t, g.Close())
}

func checkReadOnly(t T, h Harness) {
	path := filepath.Join(t.TempDir(), "a.log")
	want := pattern(1, 5000)
	require.NoError(t, os.WriteFile(path, want, 0o400))
	g, err := h.start(t).Open(path, storage.Options{Capacity: defaultCapacity, ReadOnly: true})
	require.NoError(t, err)
	_, err = g.Append([]byte("x"))
	require.ErrorIs(t, err, storage.ErrSealed)
	require.ErrorIs(t, g.Truncate(10), storage.ErrSealed)
	require.NoError(t, g.Seal())
	require.NoError(t, g.Sync())
	requireContent(t, g, want)
	require.NoError(t, g.Close())
	requireFile(t, path, want, false)
}

func checkOpenMissing(t T, h Harness) {
	s := h.start(t)
	path := filepath.Join(t.TempDir(), "a.log")
	for _, readOnly := range []bool{false, true} {
		_, err := s.Open(path, storage.Options{Capacity: 100, ReadOnly: readOnly})
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoFileExists(t, path)
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, readOnly := range []bool{false, true} {
		g, err := s.Open(path, storage.Options{Capacity: 100, ReadOnly: readOnly})
		require.NoError(t, err)
		requireContent(t, g, nil)
		require.NoError(t, g.Close())
	}
}

func checkOpenDirectory(t T, h Harness) {
	_, err := h.start(t).Open(t.TempDir(), storage.Options{Capacity: 100, ReadOnly: true})
	require.Error(t, err)
}

func checkCapacityBelowFile(t T, h Harness) {
	path := filepath.Join(t.TempDir(), "a.log")
	want := pattern(1, 10_000)
	require.NoError(t, os.WriteFile(path, want, 0o600))
	g, err := h.start(t).Open(path, storage.Options{Capacity: 100})
	require.NoError(t, err)
	requireContent(t, g, want)
	_, err = g.Append([]byte("x"))
	require.ErrorIs(t, err, storage.ErrFull)
	require.NoError(t, g.Truncate(9000))
	mustAppend(t, g, want[9000:])
	requireContent(t, g, want)
	require.NoError(t, g.Close())
	requireFile(t, path, want, false)
}
