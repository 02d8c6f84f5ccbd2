package examples

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// TestMain builds the program once, into a folder that the environment names to the tests.
func TestMain(m *testing.M) {
	code, err := withProgram(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const folderVariable = "ACCEPTANCE_FOLDER"

func withProgram(run func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "barnabas-examples-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "barnabas"), "../..").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, out)
	}
	if err := os.Setenv(folderVariable, dir); err != nil {
		return 0, err
	}
	if err := flag.Set("test.parallel", "4"); err != nil { // they wait as much as they work
		return 0, err
	}
	return run(), nil
}

// program is the path of the binary under test.
func program() string { return filepath.Join(os.Getenv(folderVariable), "barnabas") }

// example is the folder of one of the examples.
func example(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../../../plugins/examples", name))
	require.NoError(t, err)
	return dir
}

// command runs a command and gives what it printed. It must end with 0.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v in %s:\n%s", name, args, dir, out)
	return string(out)
}

// goPlugin tests and builds one of the examples in Go, as its author would.
func goPlugin(t *testing.T, name string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	dir := example(t, name)
	command(t, dir, "go", "test", ".")
	command(t, dir, "go", "build", "-o", bin, ".")
	return bin
}

// pythonPlugin lays out the example in Python as its README does, with the environment that is kept in the repository's cache.
func pythonPlugin(t *testing.T) string {
	t.Helper()
	env, err := task.NewEnv(os.Stderr)
	require.NoError(t, err)
	from, dir := example(t, "python-partitioner"), filepath.Join(t.TempDir(), "python-partitioner")
	requirements, err := os.ReadFile(filepath.Join(from, "requirements.txt"))
	require.NoError(t, err)
	python, err := tools.New(env).Python(context.WithoutCancel(t.Context()), "python-partitioner", requirements)
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".venv"))) // somebody's own
	require.NoError(t, os.Symlink(filepath.Dir(filepath.Dir(python)), filepath.Join(dir, ".venv")))
	return filepath.Join(dir, "run")
}
