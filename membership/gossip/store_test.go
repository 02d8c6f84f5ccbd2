package gossip

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// TestDamagedStore damages each file of a store, and starts the server on it: the damage is named with the directory, and nothing panics. An older
// snapshot isn't needed, and at the log's end damage looks like what a crash leaves: there the server starts.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	g.timings.Snapshot = 10 * time.Millisecond
	s := &solo{g}
	c := s.Member().(*soloMember)
	ctx := within(t)
	require.NoError(t, c.Start(ctx))
	term, err := c.Campaign(ctx, 1)
	require.NoError(t, err)
	set := func(n int) {
		_, err := c.Metadata().SetConfigs(ctx, term.Epoch(), []election.Config{{Entity: election.Entity{Kind: election.BrokerEntity, Name: fmt.Sprint(n)}, Values: map[string]string{"k": "v"}}})
		require.NoError(t, err)
	}
	written := 0
	for ; written < 150 || c.node.Status().Snapshot == 0; written++ {
		set(written)
	}
	require.NoError(t, c.Stop(ctx))
	dir := c.server.(*host).dir

	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	require.GreaterOrEqual(t, len(files), 4, "log, its description, a snapshot and its description")
	refused := 0
	kept := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.CopyFS(kept, os.DirFS(dir)))
	for _, path := range files {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for name, damage := range map[string]func([]byte) []byte{
			"empty":    func([]byte) []byte { return nil },
			"half":     func(b []byte) []byte { return b[:len(b)/2] },
			"flipped":  func(b []byte) []byte { b[min(len(b)/3, 2000)] ^= 0x55; return b },
			"garbage":  func(b []byte) []byte { return append([]byte("garbage"), b[min(7, len(b)):]...) },
			"all zero": func(b []byte) []byte { clear(b); return b },
		} {
			require.NoError(t, os.WriteFile(path, damage(append([]byte(nil), whole...)), 0o600))
			what := fmt.Sprintf("%s of %s", name, path)
			m := s.Member().(*soloMember)
			if err := m.coordination.Start(ctx); err != nil {
				require.ErrorContains(t, err, dir, what)
				require.NotContains(t, err.Error(), "panic", what)
				refused++
			} else {
				require.NotEqual(t, member.IdentityFile, filepath.Base(path), what)
				require.NoError(t, m.Stop(ctx), what)
			}
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.CopyFS(dir, os.DirFS(kept)))
		}
	}
	require.Greater(t, refused, 5)
}
