package log

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var quiet = slog.New(slog.DiscardHandler)

func openDir(t testing.TB, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path, quiet)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func TestDirClaim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := openDir(t, path)
	_, ok := d.Meta()
	require.False(t, ok)
	require.NoError(t, d.Claim(Meta{1, "M3vQ1yXzTfq2l7n0aBcDeg"}))
	b, err := os.ReadFile(filepath.Join(path, metaFile))
	require.NoError(t, err)
	require.Equal(t, "version=0\nbroker.id=1\ncluster.id=M3vQ1yXzTfq2l7n0aBcDeg\n", string(b))
	_, err = OpenDir(path, quiet)
	require.ErrorIs(t, err, ErrDirInUse)
	require.NoError(t, d.Close())

	d = openDir(t, path)
	m, ok := d.Meta()
	require.True(t, ok)
	require.Equal(t, Meta{1, "M3vQ1yXzTfq2l7n0aBcDeg"}, m)
	require.ErrorIs(t, d.Claim(Meta{2, m.ClusterID}), ErrDirForeign)
	require.ErrorIs(t, d.Claim(Meta{1, "other"}), ErrDirForeign)
	require.NoError(t, d.Claim(m))
	total, usable, err := d.Space()
	require.NoError(t, err)
	require.GreaterOrEqual(t, total, usable)
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the probe leaves nothing")
}

func TestMetaProperties(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Meta
		bad  string
	}{
		{text: "#\n#Tue Nov 29 14:37:00 UTC 2026\ncluster.id=abc\nversion=0\nbroker.id=7\n", want: Meta{7, "abc"}},
		{text: "version = 0\r\ncluster.id: a\\=b\r\n! note\r\n\r\n", want: Meta{-1, "a=b"}},
		{text: "version=1\nnode.id=1\ncluster.id=abc", bad: "without ZooKeeper"},
		{text: "version=2", bad: "newer"},
		{text: "version=" + strings.Repeat("9", 1000), bad: "newer"},
		{text: "", bad: "no version"},
		{text: "\x00\xff\n=\n=", bad: "no version"},
		{text: "version=0\nbroker.id=x", bad: "broker.id"},
		{text: "version=0\nbroker.id=-2", bad: "broker.id"},
		{text: "version=0\nbroker.id=99999999999", bad: "broker.id"},
		{text: strings.Repeat("#", maxMetaBytes+1), bad: "bytes"},
	} {
		m, err := parseMeta([]byte(tc.text))
		if tc.bad != "" {
			require.ErrorIs(t, err, ErrDirFormat)
			require.ErrorContains(t, err, tc.bad)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.want, m)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, metaFile), []byte("version=1\n"), 0o644))
	_, err := OpenDir(dir, quiet)
	require.ErrorIs(t, err, ErrDirFormat)
	_, err = OpenDir(dir, quiet)
	require.NotErrorIs(t, err, ErrDirInUse, "the lock was given back")
}

func TestDirectoryNames(t *testing.T) {
	id := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	long := strings.Repeat("a", maxTopic)
	require.Equal(t, "t-1.00112233445566778899aabbccddeeff-delete", deletedName("t", 1, id))
	require.Len(t, deletedName(long, 12345, id), maxName)
	for name, want := range map[string]dirKind{
		"t-0": partitionDir, "a-b-12": partitionDir, "a.b_c-3": partitionDir, "--1": partitionDir, ".hidden-0": partitionDir,
		long + "-2147483647":                         partitionDir,
		deletedName("t", 1, id):                      deletedDir,
		deletedName("a.b-1.c", 1, id):                deletedDir,
		deletedName(long, 1, id):                     deletedDir,
		"a.b-1.c-0":                                  partitionDir,
		"t-delete":                                   strangeDir,
		"t-1.0011-delete":                            strangeDir,
		"." + strings.Repeat("0", 32) + "-delete":    strangeDir,
		"t-1." + strings.Repeat("0", 32) + "-future": keptDir,
		"t-1." + strings.Repeat("0", 32) + "-stray":  keptDir,
		"remote-log-index-cache":                     keptDir, "lost+found": keptDir, ".snapshots": keptDir,
		"t": strangeDir, "t-": strangeDir, "-1": strangeDir, "t-01": strangeDir, "t-+1": strangeDir, "t-2147483648": strangeDir, "t--1x": strangeDir,
		"a b-0": strangeDir, "..-0": strangeDir, ".-0": strangeDir, "é-0": strangeDir, long + "a-0": strangeDir, "backup": strangeDir,
	} {
		kind, tp := kindOf(name)
		if name == "..-0" || name == ".-0" {
			want = keptDir // as names that begin with a dot
		}
		require.Equal(t, want, kind, name)
		if kind == partitionDir {
			require.Equal(t, name, tp.String())
		}
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", "a b", "a\x00b", "ä", long + "a"} {
		require.Error(t, CheckTopic(bad), "%q", bad)
	}
	require.NoError(t, CheckTopic(long))
}

func TestCheckpointFiles(t *testing.T) {
	d := openDir(t, t.TempDir())
	got, err := d.ReadCheckpoint(HighWatermarks)
	require.NoError(t, err)
	require.Empty(t, got)
	want := map[TopicPartition]int64{{"a", 0}: 5, {"b.c", 12}: 1 << 40}
	require.NoError(t, d.WriteCheckpoint(HighWatermarks, want))
	got, err = d.ReadCheckpoint(HighWatermarks)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, "0\n1\nt 3 99\n", string(formatOffsets(map[TopicPartition]int64{{"t", 3}: 99})))
	for _, bad := range []string{"", "0", "0\n", "1\n0\n", "0\n1\n", "0\n0\nt 0 1\n", "0\n1\nt 0 1\nt 1 1\n", "0\n1\nt 0\n", "0\n1\nt 0 1 2\n",
		"0\n1\nt -1 1\n", "0\n1\nt 0 -1\n", "0\n1\nt 0 99999999999999999999\n", "0\n1\n../x 0 1\n", "0\n-1\n", "0\n999999999999\n", "0\n1\n\n", "\x00\x00\x00"} {
		_, err := parseOffsets([]byte(bad))
		require.Error(t, err, "%q", bad)
		require.NoError(t, os.WriteFile(filepath.Join(d.Path(), StartOffsets), []byte(bad), 0o644))
		got, err := d.ReadCheckpoint(StartOffsets)
		require.NoError(t, err)
		require.Empty(t, got)
	}
}

func TestDirReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		// Whoever may write everywhere is stopped by a file in the way.
		path := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		_, err := OpenDir(path, quiet)
		require.Error(t, err)
		return
	}
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o500))
	_, err := OpenDir(path, quiet)
	require.ErrorContains(t, err, "can't be written to")
}
