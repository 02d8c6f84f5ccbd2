package storagemmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/log/logtest"
)

// A whole log over this storage, against a model.
func TestLog(t *testing.T) {
	st, err := New(DefaultOptions())
	require.NoError(t, err)
	require.NoError(t, st.Start(t.Context()))
	defer st.Stop(t.Context())
	t.Run("histories", func(t *testing.T) { logtest.Run(t, st) })
	t.Run("compaction", func(t *testing.T) { logtest.RunCompaction(t, st) })
}

func BenchmarkLog(b *testing.B) {
	st, err := New(DefaultOptions())
	require.NoError(b, err)
	require.NoError(b, st.Start(b.Context()))
	defer st.Stop(b.Context())
	logtest.RunBenchmarks(b, st)
}
