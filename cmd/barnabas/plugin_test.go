package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNewPlugin writes a repository, builds it, and runs its tests, which hold the executable against the contract; then the
// commands look at it.
func TestNewPlugin(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "geo")
	got := barnabas(t, nil, "plugin", "new", "geo", "--dir", dir, "--replace", root)
	require.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "plugin check ./geo")
	// The checksums are known here, so nothing is asked of the network.
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	for _, args := range [][]string{{"gofmt", "-l", "."}, {"go", "build", "-mod=mod", "-o", "geo", "."}, {"go", "test", "-mod=mod", "./..."}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
		if args[0] == "gofmt" {
			assert.Empty(t, string(out))
		}
	}

	got = barnabas(t, nil, "plugin", "check", filepath.Join(dir, "geo"))
	assert.Equal(t, exitOK, got.code, got.out)
	assert.Contains(t, got.out, "ok    clause 1.1")
	assert.Regexp(t, `geo \S+, partitioner: grade [AB], 0 of \d+ checks failed`, got.out)

	config := write(t, "partitioner: {remote: {command: "+filepath.Join(dir, "geo")+"}}\n")
	got = barnabas(t, nil, "plugins", "-c", config)
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Regexp(t, `partitioner remote +geo \S+, process [1-9]\d*`, got.out)

	got = barnabas(t, nil, "plugin", "new", "geo", "--dir", dir)
	assert.Equal(t, exitWrong, got.code)
	assert.Contains(t, got.err, "not empty")
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
