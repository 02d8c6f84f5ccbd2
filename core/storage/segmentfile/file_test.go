package segmentfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func newTestFile(t *testing.T) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	f, err := Create(path, 0)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f, path
}

func TestUsersKeepTheDescriptorOpen(t *testing.T) {
	f, _ := newTestFile(t)
	_, err := f.WriteAt([]byte("bytes"), 0)
	require.NoError(t, err)
	require.True(t, f.Retain())
	f.Share()
	require.True(t, f.Close())
	require.False(t, f.Close(), "again")
	require.True(t, f.Closed())
	require.False(t, f.Retain(), "after close")

	b := make([]byte, 5)
	f.Release()
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err, "one user is left")
	require.Equal(t, "bytes", string(b))
	f.Release()
	_, err = f.ReadAt(b, 0)
	require.ErrorIs(t, err, os.ErrClosed, "no user is left")
}

func TestErrorsCarryThePresentPath(t *testing.T) {
	f, path := newTestFile(t)
	require.NoError(t, f.Rename(path+".deleted"))
	err := f.Error("read", &fs.PathError{Op: "read", Path: path, Err: storage.ErrFault})
	require.ErrorIs(t, err, storage.ErrFault)
	require.EqualError(t, err, "read segment "+path+".deleted: "+storage.ErrFault.Error())
}

// A sync that fails must fail for good: the kernel reports lost pages once, and then calls them clean.
func TestFailedSyncIsFinal(t *testing.T) {
	for _, cut := range []bool{false, true} {
		f, _ := newTestFile(t)
		_, err := f.WriteAt([]byte("bytes"), 0)
		require.NoError(t, err)
		if cut {
			require.NoError(t, f.Cut(3))
		}
		good := f.f
		closed, err := os.Open(os.DevNull)
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		f.f = closed
		first := f.Sync()
		require.Error(t, first)
		require.NotErrorIs(t, first, storage.ErrFailed)
		f.f = good
		second := f.Sync()
		require.ErrorIs(t, second, storage.ErrFailed)
		require.ErrorIs(t, second, errors.Unwrap(first), "the cause")
		require.ErrorIs(t, f.Failed("append to"), storage.ErrFailed)
	}
}

func TestFirstFailureIsKept(t *testing.T) {
	f, _ := newTestFile(t)
	require.NoError(t, f.Failed("sync"))
	one, two := errors.New("one"), errors.New("two")
	require.ErrorIs(t, f.Fail("append to", one), one)
	require.ErrorIs(t, f.Fail("sync", two), two)
	require.ErrorIs(t, f.Failed("sync"), one)
	require.NotErrorIs(t, f.Failed("sync"), two)
}

func TestAllocateMakesZeros(t *testing.T) {
	f, path := newTestFile(t)
	_, err := f.WriteAt([]byte("bytes"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Allocate(5, 100_000))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, append([]byte("bytes"), make([]byte, 100_000)...), got)
	require.Error(t, f.Allocate(100_005, 1<<62), "more than a file can have")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, int64(100_005), info.Size(), "length after a failed allocation")
}

func TestWriteZerosIsTheSame(t *testing.T) {
	f, path := newTestFile(t)
	require.NoError(t, writeZeros(f.f, 10, 600_001))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 600_011), got)
}

func TestCutNeverExtends(t *testing.T) {
	f, path := newTestFile(t)
	_, err := f.WriteAt([]byte("bytes"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Cut(5))
	require.NoError(t, f.Cut(3))
	require.ErrorIs(t, f.Cut(4), storage.ErrFault)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "byt", string(got))
}
