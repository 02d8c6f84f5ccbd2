package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manifest writes a corpus of texts and returns its manifest.
func manifest(t *testing.T, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	var lines strings.Builder
	for i, text := range texts {
		path := filepath.Join(dir, string(rune('a'+i)))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		f, err := NewFile(filepath.Base(path), path, time.UnixMilli(1_000_000+int64(i)*1000))
		require.NoError(t, err)
		lines.WriteString(f.Line())
	}
	path := filepath.Join(dir, "corpus.tsv")
	require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o644))
	return path
}

// play runs a program around client and returns its results by check.
func play(t *testing.T, client Client, quirks Quirks, args Args) map[string]Result {
	t.Helper()
	args.Bootstrap, args.Client, args.Prefix = "nowhere:1", "fake", "p"
	args.Corpus = manifest(t, "one", "two\n", "three and more", "four")
	var out bytes.Buffer
	err := run(context.Background(), args.Flags(), strings.NewReader(""), &out, func(string) (Client, Quirks, error) { return client, quirks, nil })
	require.NoError(t, err)
	results := map[string]Result{}
	for line := range strings.Lines(out.String()) {
		var r Result
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Equal(t, "fake", r.Client)
		results[r.Check] = r
	}
	return results
}

func TestChecksPassForAGoodClient(t *testing.T) {
	results := play(t, newFake(""), Quirks{}, Args{Role: RoleChecks, Codecs: []string{"none", "gzip"}})
	require.Len(t, results, 9)
	for _, r := range results {
		require.True(t, r.OK, "%s: %s", r.Check, r.Detail)
	}
}

// Every check must find what is wrong with a broker or client that lies in one way.
func TestChecksFindEachFault(t *testing.T) {
	for fault, check := range map[string]string{
		"nothing can be created":           "create",
		"topics can be created twice":      "create",
		"one partition too few":            "create",
		"topics can be deleted twice":      "delete",
		"gzip is refused":                  "produce gzip",
		"offsets are answered wrong":       "produce none",
		"a byte is flipped":                "consume from start none",
		"a value is cut":                   "consume from start none",
		"keys are lost":                    "consume from start none",
		"headers are wrong":                "consume from start none",
		"timestamps are lost":              "consume from start none",
		"an offset is skipped":             "consume from start none",
		"the end is one too early":         "consume from end",
		"timestamps find the record after": "consume by timestamp",
		"late timestamps find the end":     "consume by timestamp",
		"commits are forgotten":            "commit and resume",
		"commits are one too far":          "commit and resume",
	} {
		t.Run(fault, func(t *testing.T) {
			r := play(t, newFake(fault), Quirks{}, Args{Role: RoleChecks, Codecs: []string{"none", "gzip"}})
			require.False(t, r[check].OK, "%s passed", check)
			require.NotEmpty(t, r[check].Detail)
		})
	}
}

func TestReadComparesWhatOthersWrote(t *testing.T) {
	for fault, ok := range map[string]bool{"": true, "a byte is flipped": false} {
		client := newFake(fault)
		args := Args{Role: RoleRead, Topics: []Written{{Client: "other", Codec: "lz4", Topic: "p-none"}}}
		play(t, client, Quirks{}, Args{Role: RoleChecks, Codecs: []string{"none"}})
		results := play(t, client, Quirks{}, args)
		require.Len(t, results, 1)
		require.Equal(t, ok, results["read lz4 from other"].OK)
	}
}

func TestQuirksLeaveChecksOut(t *testing.T) {
	results := play(t, newFake("nothing can be created"), Quirks{NoAdmin: true}, Args{Role: RoleChecks, Codecs: []string{"none"}})
	require.NotContains(t, results, "create")
	require.NotContains(t, results, "delete")
	require.True(t, results["produce none"].OK)
}

func TestMemberEndsWithItsInput(t *testing.T) {
	in, end := io.Pipe()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		args := Args{Role: RoleMember, Bootstrap: "nowhere:1", Group: "g", Topic: "t"}
		done <- run(context.Background(), args.Flags(), in, &out, func(string) (Client, Quirks, error) { return newFake(""), Quirks{}, nil })
	}()
	select {
	case <-done:
		t.Fatal("ended while its input was open")
	case <-time.After(20 * time.Millisecond):
	}
	require.NoError(t, end.Close())
	require.NoError(t, <-done)
	require.JSONEq(t, `{"event":"assigned","partitions":[0],"partition":0,"offset":0}`, out.String())
}

func TestArgsGoThroughFlags(t *testing.T) {
	a := Args{
		Role: RoleRead, Client: "c", Bootstrap: "h:1", Prefix: "p", Corpus: "/m", Codecs: []string{"none", "zstd"},
		Topics: []Written{{"a", "gzip", "t-1"}, {"b", "none", "t:2"}}, Group: "g", Topic: "t",
	}
	got, err := ParseArgs(a.Flags())
	require.NoError(t, err)
	require.Equal(t, a, got)

	for _, bad := range [][]string{{}, {"--bootstrap"}, {"--bootstrap", "h:1", "--topics", "a:b"}, {"--bootstrap", "h:1", "--unknown", "x"}} {
		_, err := ParseArgs(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestLoadCorpusRefusesWhatChanged(t *testing.T) {
	path := manifest(t, "one", "two")
	files, err := LoadCorpus(path)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.NoError(t, os.WriteFile(files[1].Path, []byte("TWO"), 0o644))
	_, err = LoadCorpus(path)
	require.ErrorContains(t, err, "has changed")

	for _, bad := range []string{"1\t2\t3\n", "x\ty\t1\tname\t/nowhere\n", "1\ty\t1\tname\t/nowhere\n"} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o644))
		_, err := LoadCorpus(path)
		require.Error(t, err)
	}
}
