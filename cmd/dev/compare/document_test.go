package compare

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "B.md")
	require.Error(t, PartTable.Write(file, "x"), "there is none")
	empty := "# Title\n\n" + string(PartTable.begin()) + string(PartTable.end()) + "\nText.\n"
	require.NoError(t, os.WriteFile(file, []byte(empty), 0o644))
	for _, text := range []string{"first\n", "second\n"} {
		require.NoError(t, PartTable.Write(file, text))
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "# Title\n\n"+string(PartTable.begin())+"\n"+text+"\n"+string(PartTable.end())+"\nText.\n", string(got))
	}
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	require.ErrorContains(t, PartClusters.Write(file, "x"), "no place")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestBenchmarks holds that the repository's document has a place for the results, and explains every row.
func TestBenchmarks(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "barnabas", "BENCHMARKS.md"))
	require.NoError(t, err)
	for _, p := range []Part{PartTable, PartClusters} {
		require.Contains(t, string(document), string(p.begin()))
		require.Contains(t, string(document), string(p.end()))
	}
	for _, name := range Names() {
		require.Contains(t, string(document), "`"+name+"`")
	}
}
