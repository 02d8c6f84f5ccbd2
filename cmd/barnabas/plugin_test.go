package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNewPlugin tells what was written and how to go on; whether it builds, and works, acceptance/examples sees.
func TestNewPlugin(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for role, hint := range map[string]string{
		"partitioner": "go build -o geo . && barnabas plugin check ./geo",
		"compression": "go build -o geo . && barnabas plugin check ./geo",
		"offsets":     "go build -o geo . && barnabas plugin check --config check.yaml ./geo",
	} {
		dir := filepath.Join(t.TempDir(), "geo")
		got := barnabas(t, nil, "plugin", "new", "geo", "--role", role, "--dir", dir, "--replace", root)
		require.Equal(t, exitOK, got.code, got.err)
		assert.Contains(t, got.out, "cd "+dir+" && go mod tidy && "+hint+"\n")
		for _, file := range []string{".gitignore", "README.md", "barnabas.yaml", "go.mod", "main.go"} {
			assert.FileExists(t, filepath.Join(dir, file))
		}
		got = barnabas(t, nil, "plugin", "new", "geo", "--role", role, "--dir", dir)
		assert.Equal(t, exitWrong, got.code)
		assert.Contains(t, got.err, "not empty")
	}
}

func TestPluginRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"plugin", "check"}, {"plugin", "check", "./no-such-file"}, {"plugin", "check", "--config", "no-such-file", "/bin/true"},
		{"plugin", "new"}, {"plugin", "new", "Geo"}, {"plugin", "new", "--role", "storage", "geo"}, {"plugin", "new", "--replace", t.TempDir(), "geo"},
	} {
		got := barnabas(t, nil, args...)
		assert.Equal(t, exitWrong, got.code, "%v: %s", args, got.err)
	}
	got := barnabas(t, nil, "plugin", "check", "--start-timeout", "1s", "/bin/false")
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.out, "grade F")
}
