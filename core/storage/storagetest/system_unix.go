//go:build unix

package storagetest

import (
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func systemClauses() []Clause {
	return []Clause{
		{"1.2 preallocation is given back by seal and close", checkPreallocate},
		{"3.4 an append that the system refuses changes nothing", checkLimit},
		{"1.2 preallocation that the system refuses leaves no file", checkPreallocateTooMuch},
	}
}

// diskUsage is how many bytes the file takes on disk.
func diskUsage(t T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	return int64(st.Blocks) * 512
}

func checkPreallocate(t T, h Harness) {
	const capacity = 3 << 20
	for _, closing := range []bool{false, true} {
		g, path := h.create(t, storage.Options{Capacity: capacity, Preallocate: true})
		require.GreaterOrEqual(t, diskUsage(t, path), int64(capacity))
		require.Zero(t, g.Size())
		want := pattern(1, 10_000)
		mustAppend(t, g, want)
		require.GreaterOrEqual(t, diskUsage(t, path), int64(capacity))
		requireContent(t, g, want)
		if closing {
			require.NoError(t, g.Close())
		} else {
			require.NoError(t, g.Seal())
		}
		requireFile(t, path, want, false)
		require.Less(t, diskUsage(t, path), int64(capacity))
	}
}

// limitFiles lets no file of this process grow beyond n bytes until the check ends: the nearest to a full disk that can be
// had everywhere.
func limitFiles(t T, n uint64) {
	t.Helper()
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	signal.Ignore(syscall.SIGXFSZ)
	limited := before
	limited.Cur = rlim(n)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limited))
	t.Cleanup(func() {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before))
		signal.Reset(syscall.SIGXFSZ)
	})
}

func checkLimit(t T, h Harness) {
	const limit = 1_000_000
	for _, n := range []int{100, 3000, 70_000} {
		g, path := h.create(t, storage.Options{})
		var want []byte
		mustAppend(t, g, pattern(1, 900_000))
		want = append(want, pattern(1, 900_000)...)
		v := mustView(t, g, 0, 900_000)
		func() {
			inner := &cleanups{T: t}
			defer inner.run()
			limitFiles(inner, limit)
			for i := range limit {
				b := pattern(i, n)
				if _, err := g.Append(b); err != nil {
					break
				}
				want = append(want, b...)
			}
			require.LessOrEqual(t, len(want), limit)
			require.Greater(t, len(want), limit-3*n-10_000, "the last bytes below the limit are of use")
			requireContent(t, g, want)
			requireViewed(t, v, want[:900_000])
		}()
		if _, err := g.Append(pattern(7, n)); err != nil {
			require.ErrorIs(t, err, storage.ErrFailed, "the segment may be broken, or go on")
		} else {
			want = append(want, pattern(7, n)...)
		}
		requireContent(t, g, want)
		v.Release()
		require.NoError(t, g.Close())
		requireFile(t, path, want, false)
	}
}

func checkPreallocateTooMuch(t T, h Harness) {
	path := filepath.Join(t.TempDir(), "a.log")
	_, err := h.start(t).Create(path, storage.Options{Capacity: 1 << 60, Preallocate: true})
	require.Error(t, err)
	require.NoFileExists(t, path)
}

// cleanups is a T whose clean-up runs when told.
type cleanups struct {
	T
	list []func()
}

func (c *cleanups) Cleanup(f func()) { c.list = append(c.list, f) }

func (c *cleanups) run() {
	for i := len(c.list) - 1; i >= 0; i-- {
		c.list[i]()
	}
}
