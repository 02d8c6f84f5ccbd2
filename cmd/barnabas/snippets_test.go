package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// snippet is a YAML block in a Markdown file of the repository.
type snippet struct {
	file string
	text string
}

// snippets finds the YAML blocks in all Markdown files below a folder, hidden ones apart.
func snippets(t *testing.T, root string) (found []snippet) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	fsys := os.DirFS(root)
	require.NoError(t, fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".md"):
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		for _, m := range block.FindAllStringSubmatch(string(data), -1) {
			found = append(found, snippet{file: name, text: m[1]})
		}
		return nil
	}))
	return found
}

// TestSnippetsCompose reads every YAML block that the documentation shows as a configuration of its own.
func TestSnippetsCompose(t *testing.T) {
	all := snippets(t, "../..")
	require.NotEmpty(t, all)
	for _, s := range all {
		got := barnabas(t, nil, "config", "check", write(t, s.text))
		assert.Equal(t, exitOK, got.code, "%s shows\n%s\n%s", s.file, s.text, got.err)
		assert.Empty(t, got.err, "%s shows\n%s", s.file, s.text)
	}
}
