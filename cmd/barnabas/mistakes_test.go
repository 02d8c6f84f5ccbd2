package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mistakes lists the files of testdata/mistakes, one for each kind of mistake that people make.
func mistakes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// TestMistakes holds what is said about each mistake, word by word: the place, what is wrong, and what was probably meant.
func TestMistakes(t *testing.T) {
	for _, file := range mistakes(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			got := barnabas(t, nil, "config", "check", file)
			assert.Equal(t, exitWrong, got.code)
			assert.Empty(t, got.out)
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), filepath.ToSlash(got.err))
			for line := range strings.Lines(got.err) {
				assert.Regexp(t, `^testdata/mistakes/[a-z-]+\.yaml:\d+: `, filepath.ToSlash(line), "a place in front of each line")
			}
			serve := barnabas(t, nil, "serve", "-c", file)
			assert.Equal(t, exitWrong, serve.code, "a broker doesn't start with it, nor in part")
			assert.Equal(t, got.err, serve.err)
		})
	}
}
