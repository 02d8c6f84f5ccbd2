package main

import (
	"io/fs"
	"os"
	"path/filepath"
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

// documents reads all Markdown files of the repository, hidden folders apart, by their path from its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	root := os.DirFS("../..")
	require.NoError(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".md"):
			return nil
		}
		data, err := fs.ReadFile(root, name)
		texts[name] = string(data)
		return err
	}))
	return texts
}

// snippets finds the YAML blocks in all documents.
func snippets(t *testing.T) (found []snippet) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	for name, text := range documents(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			found = append(found, snippet{file: name, text: m[1]})
		}
	}
	require.NotEmpty(t, found)
	return found
}

// TestSnippetsCompose reads every YAML block that the documentation shows as a configuration of its own.
func TestSnippetsCompose(t *testing.T) {
	for _, s := range snippets(t) {
		got := barnabas(t, nil, "config", "check", write(t, s.text))
		assert.Equal(t, exitOK, got.code, "%s shows\n%s\n%s", s.file, s.text, got.err)
		assert.Empty(t, got.err, "%s shows\n%s", s.file, s.text)
	}
}

// TestLinksResolve follows every link within the repository.
func TestLinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	links := 0
	for name, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join("../..", filepath.Dir(name), m[1]))
			assert.NoError(t, err, "%s links to %s", name, m[1])
		}
	}
	assert.NotZero(t, links)
}
