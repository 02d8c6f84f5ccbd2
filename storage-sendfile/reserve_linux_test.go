package storagesendfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// taken is what a file takes on the disk, and how long it is.
func taken(t *testing.T, path string) (blocks, length int64) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512, info.Size()
}

func TestReservesAheadAndGivesBack(t *testing.T) {
	s, err := New(DefaultOptions())
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	path := filepath.Join(t.TempDir(), "a.log")
	g, err := s.Create(path, storage.Options{Capacity: 64 << 20})
	require.NoError(t, err)
	const part = 40 << 10
	_, err = g.Append(make([]byte, part))
	require.NoError(t, err)
	blocks, _ := taken(t, path)
	require.LessOrEqual(t, blocks, int64(reserveFrom), "a small segment has no more than it needs")
	for range 99 {
		_, err = g.Append(make([]byte, part))
		require.NoError(t, err)
	}
	blocks, length := taken(t, path)
	require.Equal(t, int64(100*part), length, "the length is true all the time")
	require.Greater(t, blocks, length+length/4)
	require.LessOrEqual(t, blocks, 2*length+part)
	require.NoError(t, g.Truncate(50*part))
	_, err = g.Append(make([]byte, part))
	require.NoError(t, err)
	require.NoError(t, g.Seal())
	blocks, length = taken(t, path)
	require.Equal(t, int64(51*part), length)
	require.LessOrEqual(t, blocks, length+(64<<10))
	require.NoError(t, g.Close())

	none, err := New(Options{Chunk: minChunk})
	require.NoError(t, err)
	require.NoError(t, none.Start(t.Context()))
	path = filepath.Join(t.TempDir(), "b.log")
	g, err = none.Create(path, storage.Options{Capacity: 64 << 20})
	require.NoError(t, err)
	_, err = g.Append(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, g.Sync())
	blocks, _ = taken(t, path)
	require.LessOrEqual(t, blocks, int64(1<<20+64<<10))
	require.NoError(t, g.Close())
}
