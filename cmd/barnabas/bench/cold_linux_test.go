package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDropCache(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "t-0"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t-0", "0.log"), make([]byte, 3<<20+5), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644))
	left, err := DropCache(dir)
	require.NoError(t, err) // how much is left is up to the file system: one in memory keeps all
	require.GreaterOrEqual(t, left, 0.0)
	require.LessOrEqual(t, left, 1.0)
	_, err = DropCache(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
