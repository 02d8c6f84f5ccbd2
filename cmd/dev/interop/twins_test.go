package interop

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwinsCompare(t *testing.T) {
	dir := t.TempDir()
	w := &twins{bootstrap: "host:1", prefix: "p", dir: dir, data: "/d", steps: []twinStep{
		{tool: "kafka-topics", args: []string{"--topic", "@-t"}, input: "@"},
		{tool: "kafka-dump-log", args: []string{"%DATA%.log"}, quiet: true},
		{tool: "kafka-get-offsets", sort: true},
	}}
	lines := strings.Split(strings.TrimSpace(w.script()), "\n")
	require.Len(t, lines, 3)
	fields := strings.Split(lines[0], "\t")
	args, err := base64.StdEncoding.DecodeString(fields[3])
	require.NoError(t, err)
	require.Equal(t, []string{"0", "TopicCommand"}, fields[:2])
	require.Equal(t, "--bootstrap-server\x00host:1\x00--topic\x00pk-t\x00", string(args))
	require.Equal(t, []string{"/d/pk-text-0/00000000000000000000.log"}, w.argsOf(w.steps[1], barnabasSide))

	bin := filepath.Join(dir, "tool") // prints what it is given, and exits with 3
	require.NoError(t, os.WriteFile(bin, []byte("#!/bin/sh\ncat\necho TopicId: b$$\necho $4\nexit 3\n"), 0o700))
	kafka := func(i, code, out string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, i+".out"), []byte(out), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, i+".code"), []byte(code), 0o600))
	}
	require.ErrorContains(t, w.compare(t.Context(), bin, 0), "didn't come to it")
	kafka("0", "3", "pkTopicId: kkk\npk-t\n")
	require.NoError(t, w.compare(t.Context(), bin, 0))
	kafka("0", "3", "pkTopicId: kkk\npk-u\n")
	require.ErrorContains(t, w.compare(t.Context(), bin, 0), "instead of")
	kafka("0", "0", "pkTopicId: kkk\npk-t\n")
	require.ErrorContains(t, w.compare(t.Context(), bin, 0), "exits 3 instead of 0")
	kafka("1", "3", "something else")
	require.NoError(t, w.compare(t.Context(), bin, 1), "only the code counts")
	kafka("2", "3", "\nTopicId: k\n")
	require.NoError(t, w.compare(t.Context(), bin, 2), "in any order")
}
