package storagemmap

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// maps counts the maps of files whose path has the given beginning.
func maps(t *testing.T, prefix string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return bytes.Count(b, []byte(prefix))
}

// rss reads one line of /proc/self/status, in bytes.
func rss(t *testing.T, line string) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	var kib int64
	_, err = fmt.Sscanf(string(b[bytes.Index(b, []byte(line)):]), line+": %d kB", &kib)
	require.NoError(t, err)
	return kib << 10
}

func TestIdleSegmentsCostNothing(t *testing.T) {
	s, dir := started(t, DefaultOptions()), t.TempDir()
	var open []storage.Segment
	for i := range 500 {
		path := filepath.Join(dir, fmt.Sprintf("%d.log", i))
		g, err := s.Create(path, storage.Options{Capacity: 1 << 30})
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = g.Append(make([]byte, 1000))
			require.NoError(t, err)
			require.NoError(t, g.Close())
			g, err = s.Open(path, storage.Options{Capacity: 1 << 30})
			require.NoError(t, err)
		}
		open = append(open, g)
		require.Equal(t, g.Size(), length(t, path))
	}
	require.Zero(t, maps(t, dir))
	for _, g := range open {
		require.NoError(t, g.Close())
	}
}

func TestMapsAreGivenBack(t *testing.T) {
	g, path := created(t, DefaultOptions(), storage.Options{Capacity: 1 << 30})
	_, err := g.Append(make([]byte, 100_000))
	require.NoError(t, err)
	held, err := g.View(0, 100_000)
	require.NoError(t, err)
	require.Equal(t, 1, maps(t, path), "one map, of the capacity")
	require.NoError(t, g.Seal())
	require.Equal(t, 1, maps(t, path), "kept for the view")
	v, err := g.View(0, 100_000)
	require.NoError(t, err)
	require.Equal(t, 2, maps(t, path), "and one of the sealed segment")
	held.Release()
	require.Equal(t, 1, maps(t, path))
	require.NoError(t, g.Close())
	require.Equal(t, 1, maps(t, path), "kept for the view")
	part, err := v.Slice(10, 10)
	require.NoError(t, err)
	v.Release()
	require.Equal(t, 1, maps(t, path), "kept for the slice")
	part.Release()
	require.Zero(t, maps(t, path))
}

// TestMappedPagesAreTheFiles holds that what is mapped counts as memory of the file, which the system can take back, and
// not of the process.
func TestMappedPagesAreTheFiles(t *testing.T) {
	const size = 128 << 20
	runtime.GC()
	anonymous, file := rss(t, "RssAnon"), rss(t, "RssFile")
	g, _ := created(t, DefaultOptions(), storage.Options{Capacity: size})
	for b := make([]byte, 1000); g.Size() < size-1000; {
		if _, err := g.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	require.Less(t, rss(t, "RssAnon")-anonymous, int64(32<<20))
	require.Greater(t, rss(t, "RssFile")-file, int64(size/2))
}
