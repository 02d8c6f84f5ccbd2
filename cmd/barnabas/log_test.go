package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logsOf runs a broker with a topic t of two partitions, and gives its log directory. The records of partition 0 come in every codec.
func logsOf(t *testing.T) string {
	t.Helper()
	from := elsewhere(t, "")
	b := start(t, from)
	must(t, "", "topic", "create", "t", "-p", "2", "-b", b)
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		must(t, codec+":"+long()+"\n"+codec+":\n", "produce", "-t", "t", "-b", b, "-z", codec, "-p", "0", "-K", ":", "-H", "h=v")
	}
	return strings.TrimPrefix(from.sets[1], "broker.log.dirs=")
}

// long is a value that is worth compressing.
func long() string { return strings.Repeat("x", 300) }

// copied is a copy of a directory that no broker has.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(dir))
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

func TestLogVerify(t *testing.T) {
	dir := logsOf(t)
	t0 := filepath.Join(dir, "t-0")
	assert.Regexp(t, `: 2 partitions, 2 segments, 5 batches, 10 records, \d+ index entries: 0 faults\n$`, must(t, "", "log", "verify", "--deep", dir), "while the broker has it")
	assert.Contains(t, must(t, "", "log", "verify", t0, filepath.Join(dir, "t-1")), "t-1: 1 partition, 1 segment, 0 batches, 0 index entries: 0 faults\n")

	broken := copied(t, t0)
	segment := filepath.Join(broken, "00000000000000000000.log")
	b, err := os.ReadFile(segment)
	require.NoError(t, err)
	b[70] ^= 4
	require.NoError(t, os.WriteFile(segment, b, 0o600))
	got := typed(t, "", "log", "verify", broken)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.out, segment+" at 0: checksum is ")
	assert.Equal(t, "1 fault found\n", got.err)

	got = typed(t, "", "log", "verify", "--deep", "-o", "json", broken, filepath.Join(dir, "t-1"))
	assert.Equal(t, exitFailed, got.code)
	var all []verifiedView
	require.NoError(t, json.Unmarshal([]byte(got.out), &all), got.out)
	require.Len(t, all, 2)
	assert.Equal(t, 1, all[0].Faults)
	require.Len(t, all[0].Findings, 1)
	assert.Equal(t, segment, all[0].Findings[0].File)
	assert.EqualValues(t, 0, *all[0].Findings[0].Position)
	assert.Contains(t, all[0].Findings[0].Text, "checksum is ")
	assert.Equal(t, verifiedView{Dir: filepath.Join(dir, "t-1"), Partitions: 1, Segments: 1, Records: new(int), Findings: []logFindingView{}}, all[1])

	for want, args := range map[string][]string{
		"wants at least one DIR":                       {},
		"--output: want table, json or yaml":           {"-o", "xml", dir},
		"no such file":                                 {filepath.Join(dir, "t-9")},
		"is neither a log directory nor a partition's": {t.TempDir()},
		"--limit: want a size above 0":                 {"--limit", "0", dir},
		segment:                                        {segment},
		`want a size`:                                  {"--limit", "much", dir},
		"unknown flag: --fix":                          {"--fix", dir},
		"is neither a log directory nor a partition's: it has ": {dir, t.TempDir()},
	} {
		got := typed(t, "", append([]string{"log", "verify"}, args...)...)
		assert.Equal(t, exitWrong, got.code, want)
		assert.Contains(t, got.err, want)
		assert.Empty(t, got.out)
	}
	got = typed(t, "", "log", "verify", "--deep", "--limit", "1", copied(t, t0))
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.out, "records: ")
}

func TestLogDump(t *testing.T) {
	dir := logsOf(t)
	segment := filepath.Join(dir, "t-0", "00000000000000000000.log")
	shallow := must(t, "", "log", "dump", segment)
	assert.Regexp(t, `(?m)^.+\.log: \d+ bytes\n  offsets 0 to 1 at 0: \d+ bytes, 2 records, none, epoch 0, 20\S+Z, producer \d+ epoch 0 sequence 0, crc [0-9a-f]{8}$`, shallow)
	assert.Contains(t, shallow, "zstd")
	assert.NotContains(t, shallow, "key")
	deep := must(t, "", "log", "dump", "--deep", segment)
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		assert.Contains(t, deep, `key "`+codec+`", value "`+long()+`", header "h" "v"`)
		assert.Contains(t, deep, `key "`+codec+`", value "", header "h" "v"`)
	}

	kinds := map[string]int{}
	for line := range strings.Lines(must(t, "", "log", "dump", "--deep", "-o", "json", dir)) {
		var item struct{ Kind, File string }
		require.NoError(t, json.Unmarshal([]byte(line), &item), line)
		require.FileExists(t, item.File)
		kinds[item.Kind]++
	}
	assert.Equal(t, 5, kinds["batch"])
	assert.Equal(t, 10, kinds["record"])
	assert.Equal(t, 2, kinds["metadata"])
	assert.NotZero(t, kinds["epoch"])

	broken := copied(t, filepath.Join(dir, "t-0"))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "leader-epoch-checkpoint"), []byte("1\n0\n"), 0o600))
	got := typed(t, "", "log", "dump", broken)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.out, `DAMAGE: version "1", want 0`)
	assert.Equal(t, "damage in 1 place\n", got.err)

	for want, args := range map[string][]string{
		"wants at least one FILE or DIR":               {},
		"the name is of no file of a log":              {write(t, "")},
		"--format: want plain or json":                 {"-o", "xml", dir},
		"is neither a log directory nor a partition's": {t.TempDir()},
	} {
		got := typed(t, "", append([]string{"log", "dump"}, args...)...)
		assert.Equal(t, exitWrong, got.code, want)
		assert.Contains(t, got.err, want)
	}
}

// TestLogDumpShowsEveryFile dumps the little files of a partition with a transaction in it.
func TestLogDumpShowsEveryFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"00000000000000000010.index":            "\x00\x00\x00\x05\x00\x00\x01\x00" + strings.Repeat("\x00", 16),
		"00000000000000000010.timeindex":        "\x00\x00\x00\x00\x00\x00\x03\xe8\x00\x00\x00\x05",
		"00000000000000000010.txnindex.deleted": "\x00\x00" + strings.Repeat("\x00\x00\x00\x00\x00\x00\x00\x07", 4),
		"00000000000000000010.snapshot":         "\x00\x01\x48\x67\x4b\xc7\x00\x00\x00\x00",
		"leader-epoch-checkpoint":               "0\n1\n3 10\n",
		"partition.metadata":                    "version: 0\ntopic_id: Syo9mJEBTZyAKx9vPBGq_g",
		"replication-offset-checkpoint":         "0\n1\nt 0 12\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	out := must(t, "", "log", "dump", dir)
	for _, want := range []string{
		"  offset 15 at 256\n  behind it: 2 preallocated slots\n",
		"  1970-01-01T00:00:01.000Z (1000) offset 15\n",
		"  producer 7 aborted offsets 7 to 7, last stable offset 7\n",
		".snapshot: 10 bytes\n",
		"  leader epoch 3 from offset 10 on\n",
		"  topic id Syo9mJEBTZyAKx9vPBGq_g\n",
		"  t-0: offset 12\n",
	} {
		assert.Contains(t, out, want)
	}
}
