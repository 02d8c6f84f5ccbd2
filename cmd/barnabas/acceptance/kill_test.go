package acceptance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/kill"
)

// TestKillUnderLoad kills each storage's broker three times while it is written to; `go run ./cmd/dev kill` does it 20 times.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		got, err := kill.Run(t.Context(), kill.Options{
			Binary: program(), Dir: t.TempDir(), Storage: storage, Rounds: 3, Least: 200 * time.Millisecond, Most: 800 * time.Millisecond, Say: t.Logf,
		})
		require.NoError(t, err)
		assert.Equal(t, 3, got.Kills)
		assert.NotZero(t, got.Lookups)
		assert.NotZero(t, got.Files.OffsetEntries)
	})
}
