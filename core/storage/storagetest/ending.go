package storagetest

import (
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func endingClauses() []Clause {
	return []Clause{
		{"6.1 sync in every state", checkSync},
		{"7.1 truncation outside of the segment is refused", checkTruncateRange},
		{"7.1 truncating to the size cuts a preallocated tail", checkTruncateTail},
		{"7.2 what was cut never comes back", checkTruncateAppend},
		{"8.1 seal gives the file its true length", checkSeal},
		{"8.3 a sealed segment can be truncated", checkSealTruncate},
		{"9.1 rename replaces and goes on", checkRename},
		{"9.2 a rename that fails changes nothing", checkRenameFails},
		{"10.1 remove deletes, after close, too, and only once", checkRemove},
		{"11.1 close twice, and use after close", checkClose},
	}
}

func checkSync(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	require.NoError(t, g.Sync(), "of an empty segment")
	want := pattern(1, 10_000)
	mustAppend(t, g, want)
	require.NoError(t, g.Sync())
	require.NoError(t, g.Truncate(5000))
	require.NoError(t, g.Sync())
	require.NoError(t, g.Rename(path+".x"))
	require.NoError(t, g.Sync())
	mustAppend(t, g, want)
	require.NoError(t, g.Seal())
	require.NoError(t, g.Sync())
	requireContent(t, g, append(want[:5000:5000], want...))
	require.NoError(t, g.Close())
	require.ErrorIs(t, g.Sync(), storage.ErrClosed)
}

func checkTruncateRange(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	want := pattern(1, 10_000)
	mustAppend(t, g, want)
	for _, size := range []int64{-1, 10_001, 1 << 40} {
		require.ErrorIs(t, g.Truncate(size), storage.ErrRange)
		requireContent(t, g, want)
	}
	requireFile(t, path, want, true)
}

func checkTruncateTail(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	want := pattern(1, 10_000)
	mustAppend(t, g, want)
	require.NoError(t, g.Truncate(10_000))
	requireFile(t, path, want, false)
	requireContent(t, g, want)
	mustAppend(t, g, want)
	requireContent(t, g, append(want[:10_000:10_000], want...))
}

func checkTruncateAppend(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	var want []byte
	for i, n := range []int{10_000, 100, 70_000, 4096, 1, 300_000} {
		b := pattern(i, n)
		mustAppend(t, g, b)
		want = append(want, b...)
		cut := len(want) * 2 / 3
		require.NoError(t, g.Truncate(int64(cut)))
		want = want[:cut]
		requireContent(t, g, want)
		requireFile(t, path, want, true)
		_, err := g.View(int64(cut), 1)
		require.ErrorIs(t, err, storage.ErrRange)
	}
	require.NoError(t, g.Truncate(0))
	requireContent(t, g, nil)
	mustAppend(t, g, []byte("anew"))
	requireContent(t, g, []byte("anew"))
	require.NoError(t, g.Close())
	requireFile(t, path, []byte("anew"), false)
}

func checkSeal(t T, h Harness) {
	for i, n := range sizes() {
		g, path := h.create(t, storage.Options{})
		want := pattern(i, n)
		mustAppend(t, g, want)
		require.NoError(t, g.Seal())
		requireFile(t, path, want, false)
		require.NoError(t, g.Seal(), "again")
		requireContent(t, g, want)
		require.NoError(t, g.Close())
		require.ErrorIs(t, g.Seal(), storage.ErrClosed)
	}
}

func checkSealTruncate(t T, h Harness) {
	s := h.start(t)
	path := filepath.Join(t.TempDir(), "a.log")
	g, err := s.Create(path, storage.Options{Capacity: defaultCapacity})
	require.NoError(t, err)
	want := pattern(1, 100_000)
	mustAppend(t, g, want)
	require.NoError(t, g.Seal())
	requireContent(t, g, want)
	require.NoError(t, g.Truncate(50_001))
	requireContent(t, g, want[:50_001])
	requireFile(t, path, want[:50_001], false)
	_, err = g.Append([]byte("x"))
	require.ErrorIs(t, err, storage.ErrSealed)
	require.NoError(t, g.Close())
	g, err = s.Open(path, storage.Options{Capacity: defaultCapacity})
	require.NoError(t, err)
	mustAppend(t, g, want[50_001:])
	requireContent(t, g, want)
	require.NoError(t, g.Close())
	requireFile(t, path, want, false)
}

func checkRename(t T, h Harness) {
	for _, sealed := range []bool{false, true} {
		g, path := h.create(t, storage.Options{})
		want := pattern(1, 10_000)
		mustAppend(t, g, want)
		if sealed {
			require.NoError(t, g.Seal())
		}
		moved := path + ".cleaned"
		require.NoError(t, os.WriteFile(moved, []byte("in the way"), 0o600))
		require.NoError(t, g.Rename(moved))
		require.NoFileExists(t, path)
		requireContent(t, g, want)
		requireFile(t, moved, want, !sealed)
		if !sealed {
			mustAppend(t, g, want)
			want = append(want, want...)
		}
		require.NoError(t, g.Sync())
		require.NoError(t, g.Truncate(6000))
		want = want[:6000]
		requireContent(t, g, want)
		// A new file under the old name is none of the segment's business.
		require.NoError(t, os.WriteFile(path, []byte("new"), 0o600))
		require.NoError(t, g.Close())
		requireFile(t, moved, want, false)
		require.NoError(t, g.Remove())
		require.NoFileExists(t, moved)
		requireFile(t, path, []byte("new"), false)
		require.ErrorIs(t, g.Rename(path+".y"), storage.ErrClosed)
	}
}

func checkRenameFails(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	want := pattern(1, 10_000)
	mustAppend(t, g, want)
	require.Error(t, g.Rename(filepath.Join(path+".missing", "a.log")))
	mustAppend(t, g, want)
	requireContent(t, g, append(want[:10_000:10_000], want...))
	require.NoError(t, g.Remove())
	require.NoFileExists(t, path)
}

func checkRemove(t T, h Harness) {
	for _, closed := range []bool{false, true} {
		g, path := h.create(t, storage.Options{})
		mustAppend(t, g, pattern(1, 10_000))
		if closed {
			require.NoError(t, g.Close())
		}
		require.NoError(t, g.Remove())
		require.NoFileExists(t, path)
		requireClosed(t, g)
		require.NoError(t, os.WriteFile(path, []byte("the next one"), 0o600))
		require.NoError(t, g.Close())
		require.NoError(t, g.Remove(), "again")
		requireFile(t, path, []byte("the next one"), false)
	}
}

func checkClose(t T, h Harness) {
	for i, n := range sizes() {
		g, path := h.create(t, storage.Options{})
		want := pattern(i, n)
		mustAppend(t, g, want)
		require.NoError(t, g.Close())
		requireFile(t, path, want, false)
		requireClosed(t, g)
		require.NoError(t, g.Close(), "again")
		requireFile(t, path, want, false)
	}
}

// requireClosed checks that every use is answered with ErrClosed.
func requireClosed(t T, g storage.Segment) {
	t.Helper()
	_, err := g.Append([]byte("x"))
	require.ErrorIs(t, err, storage.ErrClosed, "append")
	_, err = g.View(0, 0)
	require.ErrorIs(t, err, storage.ErrClosed, "view")
	_, err = g.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, storage.ErrClosed, "read")
	require.ErrorIs(t, g.Sync(), storage.ErrClosed, "sync")
	require.ErrorIs(t, g.Truncate(0), storage.ErrClosed, "truncate")
	require.ErrorIs(t, g.Seal(), storage.ErrClosed, "seal")
	require.ErrorIs(t, g.Rename(filepath.Join(t.TempDir(), "x")), storage.ErrClosed, "rename")
}
