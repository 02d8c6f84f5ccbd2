package storagetest

import (
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func damageClauses() []Clause {
	return []Clause{
		{"4.3 a file shortened by somebody else is an error, not a crash", checkForeignTruncate},
		{"10.1 a file deleted by somebody else", checkForeignRemove},
		{"2.1 a crash at any moment leaves the content and a tail", checkCrash},
	}
}

func checkForeignTruncate(t T, h Harness) {
	for _, sealed := range []bool{false, true} {
		for _, left := range []int64{0, 10_000} {
			g, path := h.create(t, storage.Options{})
			want := pattern(1, 200_000)
			mustAppend(t, g, want[:100])
			mustAppend(t, g, want[100:])
			if sealed {
				require.NoError(t, g.Seal())
			}
			v, tail := mustView(t, g, 0, 200_000), mustView(t, g, 199_000, 61)
			require.NoError(t, os.Truncate(path, left))

			for _, n := range []int{10, 61, 5000, 100_000} {
				_, err := g.ReadAt(make([]byte, n), 100_000)
				require.ErrorIs(t, err, storage.ErrFault, "read of %d bytes that are gone", n)
			}
			_, err := v.Bytes(nil)
			require.ErrorIs(t, err, storage.ErrFault)
			_, err = tail.Bytes(nil)
			require.ErrorIs(t, err, storage.ErrFault)
			_, err = v.WriteTo(&collector{})
			require.ErrorIs(t, err, storage.ErrFault)
			sendAnyway(t, v)
			sendAnyway(t, tail)
			tail.Release()

			if left > 0 {
				head := mustView(t, g, 0, left)
				requireViewed(t, head, want[:left])
				requireSent(t, head, want[:left])
				head.Release()
			}
			// Appending may work or fail, at any length; it must not crash.
			for _, n := range []int{10, 1000, 100_000} {
				if !sealed {
					_, _ = g.Append(pattern(2, n))
				}
			}
			v.Release()
			_ = g.Sync()
			_ = g.Close()
		}
	}
}

func checkForeignRemove(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	want := pattern(1, 100_000)
	mustAppend(t, g, want)
	require.NoError(t, os.Remove(path))
	mustAppend(t, g, want)
	requireContent(t, g, append(want[:100_000:100_000], want...))
	require.Error(t, g.Remove(), "there is nothing to remove")
	requireClosed(t, g)
}

func checkCrash(t T, h Harness) {
	s, dir := h.start(t), t.TempDir()
	path, after := filepath.Join(dir, "a.log"), filepath.Join(dir, "crashed.log")
	g, err := s.Create(path, storage.Options{Capacity: defaultCapacity})
	require.NoError(t, err)
	defer func() { _ = g.Close() }()
	var want []byte
	for i, n := range sizes() {
		b := pattern(i, n)
		mustAppend(t, g, b)
		want = append(want, b...)
		requireFile(t, path, want, true)

		// What a process that dies here leaves is what is in the file now.
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(after, left, 0o600))
		c, err := s.Open(after, storage.Options{Capacity: defaultCapacity})
		require.NoError(t, err)
		require.Equal(t, int64(len(left)), c.Size())
		require.NoError(t, c.Truncate(int64(len(want))))
		requireContent(t, c, want)
		mustAppend(t, c, b)
		requireContent(t, c, append(want[:len(want):len(want)], b...))
		require.NoError(t, c.Remove())
	}
}
