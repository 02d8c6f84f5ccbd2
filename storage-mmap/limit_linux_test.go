package storagemmap

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMapsStayBelowWhatTheSystemAllows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "max_map_count")
	require.EqualValues(t, 30_000, mapLimit(30_000, file), "nobody says")
	for said, want := range map[string]int64{
		"65530\n": 30_000, "262144\n": 30_000, "40000\n": 20_000, "1\n": 0, "0\n": 0, "\n": 30_000, "many": 30_000, "-1\n": 30_000,
	} {
		require.NoError(t, os.WriteFile(file, []byte(said), 0o600))
		require.Equal(t, want, mapLimit(30_000, file), "%q", said)
	}
	o := DefaultOptions()
	o.MaxMaps = 1 << 40
	s := started(t, o).(*mmapStorage)
	require.Less(t, s.budget.limit, int64(1<<40))
}
