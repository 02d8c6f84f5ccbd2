package tools

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

func testTools(t *testing.T) *Tools {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o644))
	t.Chdir(dir)
	env, err := task.NewEnv(io.Discard)
	require.NoError(t, err)
	return New(env)
}

func TestOnceFillsAFolderOnce(t *testing.T) {
	tools := testTools(t)
	fills := 0
	fill := func(dir string) error {
		fills++
		return os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644)
	}
	first, err := tools.once("kind", "name", []byte("manifest"), fill)
	require.NoError(t, err)
	again, err := tools.once("kind", "name", []byte("manifest"), fill)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, 1, fills)

	other, err := tools.once("kind", "name", []byte("another manifest"), fill)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	require.Equal(t, 2, fills)
}

func TestOnceStartsAgainAfterAFailure(t *testing.T) {
	tools := testTools(t)
	left := ""
	_, err := tools.once("kind", "name", nil, func(dir string) error {
		left = filepath.Join(dir, "half")
		require.NoError(t, os.WriteFile(left, nil, 0o644))
		return errors.New("the network went away")
	})
	require.ErrorContains(t, err, "the network went away")
	require.ErrorContains(t, err, "name")

	_, err = tools.once("kind", "name", nil, func(string) error { return nil })
	require.NoError(t, err)
	require.NoFileExists(t, left)
}

func TestDebianTakesWhatIsThere(t *testing.T) {
	path, err := testTools(t).Debian(context.Background(), "sh", "no-such-package")
	require.NoError(t, err)
	require.NotEmpty(t, path)
}

func TestGoBuildsOnce(t *testing.T) {
	tools := testTools(t)
	require.NoError(t, os.Mkdir("program", 0o755))
	write := func(text string) {
		require.NoError(t, os.WriteFile("program/main.go", []byte("package main\n\nfunc main() {"+text+"}\n"), 0o644))
	}
	require.NoError(t, os.WriteFile("program/main_test.go", []byte("package main\n"), 0o644))
	for name, build := range map[string]func(context.Context, string) (string, error){"program": tools.GoBuild, "program.test": tools.GoTest} {
		write("nothing")
		_, err := build(t.Context(), "./program")
		require.Error(t, err)
		write("")
		bin, err := build(t.Context(), "./program")
		require.NoError(t, err)
		require.Equal(t, name, filepath.Base(bin))
		before, err := os.Stat(bin)
		require.NoError(t, err)

		write("println()")
		again, err := build(t.Context(), "./program")
		require.NoError(t, err)
		require.Equal(t, bin, again)
		after, err := os.Stat(again)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()), "it was built again while it may run")
	}
}
