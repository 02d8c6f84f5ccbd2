//go:build unix

package log

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a file descriptor for what goes before the first record nothing is appended, and nothing is lost.
func TestNoDescriptorForTheFirstRecord(t *testing.T) {
	l := open(t, setup(t))
	require.NoError(t, l.SetTopicID([16]byte{1}))
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: old.Max}))
	_, err := l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{})})
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
	require.ErrorIs(t, err, syscall.EMFILE)
	require.Zero(t, l.EndOffset())
	fill(t, l, 1, 1, 10)
	require.FileExists(t, filepath.Join(l.Dir(), metadataFile))
}
