//go:build unix

package storagemmap

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func started(t *testing.T, o Options) storage.Storage {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	require.NoError(t, s.Start(context.Background()))
	return s
}

func created(t *testing.T, o Options, so storage.Options) (*segment, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	g, err := started(t, o).Create(path, so)
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return g.(*segment), path
}

func length(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

func TestGrowth(t *testing.T) {
	o := Options{CopyBelow: 4 << 10, MinGrowth: 16 << 10, MaxGrowth: 64 << 10, MaxMaps: 10}
	g, path := created(t, o, storage.Options{Capacity: 200_001})
	for _, step := range []struct {
		append, size, length int64
		mapped               bool
	}{
		{0, 0, 0, false},
		{100, 100, 100, false},            // small: nothing ahead, no map
		{16_284, 16_384, 16_384, false},   // still
		{1, 16_385, 32_768, true},         // as much again
		{16_383, 32_768, 32_768, true},    // to the byte
		{5000, 37_768, 65_536, true},      // doubled
		{30_000, 67_768, 131_072, true},   // doubled, the last time
		{100_000, 167_768, 196_608, true}, // by max_growth
		{30_000, 197_768, 200_001, true},  // never beyond the capacity
		{2233, 200_001, 200_001, true},    // which can be used up
	} {
		_, err := g.Append(make([]byte, step.append))
		require.NoError(t, err)
		require.Equal(t, step.size, g.Size())
		require.Equal(t, step.length, length(t, path), "length at size %d", step.size)
		require.Equal(t, step.mapped, g.current.Load() != nil, "mapped at size %d", step.size)
	}
}

func TestEmptySegmentIsNeverMapped(t *testing.T) {
	g, path := created(t, DefaultOptions(), storage.Options{Capacity: 1 << 30})
	_, err := g.View(0, 1)
	require.ErrorIs(t, err, storage.ErrRange)
	v, err := g.View(0, 0)
	require.NoError(t, err)
	v.Release()
	require.Nil(t, g.current.Load())
	require.Zero(t, length(t, path))
}

// TestWithoutMaps uses a capacity that no address space has room for: everything works then, by system calls.
func TestWithoutMaps(t *testing.T) {
	g, _ := created(t, DefaultOptions(), storage.Options{Capacity: 1 << 56})
	var want []byte
	for i := range 200 {
		b := make([]byte, 1+i*17%3000)
		for j := range b {
			b[j] = byte(i + j)
		}
		_, err := g.Append(b)
		require.NoError(t, err)
		want = append(want, b...)
	}
	require.Greater(t, len(want), 2*int(DefaultOptions().MinGrowth))
	v, err := g.View(0, g.Size())
	require.NoError(t, err)
	require.Nil(t, g.current.Load())
	require.Nil(t, v.Mapped())
	got, err := v.Bytes(nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	v.Release()
	require.NoError(t, g.Seal())
	v, err = g.View(0, g.Size())
	require.NoError(t, err)
	require.Equal(t, want, v.Mapped(), "sealed, it needs no more room than it has bytes")
	v.Release()
}

func mapped(t *testing.T, n int) (data []byte, f *os.File) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "a"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(int64(n)))
	data, err = unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(data); _ = f.Close() })
	return data, f
}

func TestGuardedCopy(t *testing.T) {
	data, f := mapped(t, 1<<20)
	b := make([]byte, 100_000)
	require.NoError(t, guardedCopy(b, data))
	require.NoError(t, guardedCopy(data, b))
	require.NoError(t, f.Truncate(0))
	for _, n := range []int{1, 61, 5000, 100_000} {
		require.ErrorIs(t, guardedCopy(b[:n], data[500_000:]), storage.ErrFault, "read of %d", n)
		require.ErrorIs(t, guardedCopy(data[500_000:], b[:n]), storage.ErrFault, "write of %d", n)
	}
	require.NoError(t, f.Truncate(1<<20))
	require.NoError(t, guardedCopy(data, b), "back again")
}

// TestGuardCatchesNothingElse holds that a fault at an address that isn't part of the copy goes on as a panic.
func TestGuardCatchesNothingElse(t *testing.T) {
	data, _ := mapped(t, 1<<20)
	address := &data[0]
	require.False(t, within(data[4096:], pointer(address)))
	require.True(t, within(data, pointer(address)))
	require.True(t, within(data, pointer(&data[len(data)-1])))
	require.False(t, within(data[:4096], pointer(&data[8192])))
}

func TestAppendIntoAFileThatWasCut(t *testing.T) {
	g, path := created(t, DefaultOptions(), storage.Options{Capacity: 1 << 20})
	_, err := g.Append(make([]byte, 100_000))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 0))
	_, err = g.Append(make([]byte, 100))
	require.ErrorIs(t, err, storage.ErrFault)
	require.Equal(t, int64(100_000), g.Size())
	_, err = g.Append(make([]byte, 100))
	require.ErrorIs(t, err, storage.ErrFailed)
	require.ErrorIs(t, g.Sync(), storage.ErrFailed)
	require.ErrorIs(t, g.Truncate(0), storage.ErrFailed)
	require.ErrorIs(t, g.Close(), storage.ErrFault)
	require.Zero(t, length(t, path), "what is lost isn't made up for by zeros")
}

func TestSendFromAFileThatWasCut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	server, err := l.Accept()
	require.NoError(t, err)
	g, path := created(t, DefaultOptions(), storage.Options{Capacity: 1 << 20})
	_, err = g.Append(make([]byte, 500_000))
	require.NoError(t, err)
	v, err := g.View(0, 500_000)
	require.NoError(t, err)
	defer v.Release()
	require.NotNil(t, v.Mapped())
	require.NoError(t, os.Truncate(path, 8192))

	got := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, client)
		got <- n
	}()
	n, err := v.WriteTo(server)
	require.ErrorIs(t, err, storage.ErrFault)
	require.False(t, errors.Is(err, unix.EPIPE))
	require.NoError(t, server.Close())
	require.Equal(t, n, <-got, "what was told is what went out")
}
