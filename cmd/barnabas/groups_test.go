package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

// TestCommitsOutliveTheProcess kills a broker under load, many times. Every offset that was acknowledged is there
// afterwards, or a later one; and groups that were deleted stay so.
func TestCommitsOutliveTheProcess(t *testing.T) {
	program := filepath.Join(t.TempDir(), "barnabas")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	p := startProcess(t, program, dir)
	_, err = p.admin.CreateTopic(ctx, 1, 1, nil, "t")
	require.NoError(t, err)
	const groups = 8
	var asked, acknowledged [groups]atomic.Int64
	for round := range 8 {
		gone := fmt.Sprintf("gone-%d", round)
		at := func(n int64) (o kadm.Offsets) {
			o.Add(kadm.Offset{Topic: "t", At: n, LeaderEpoch: -1})
			return o
		}
		require.NoError(t, p.admin.CommitAllOffsets(ctx, gone, at(1)))
		deleted, err := p.admin.DeleteGroup(ctx, gone)
		require.NoError(t, err)
		require.NoError(t, deleted.Err)

		loaded, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for g := range groups {
			wg.Go(func() {
				for loaded.Err() == nil {
					n := asked[g].Add(1)
					if p.admin.CommitAllOffsets(loaded, fmt.Sprintf("g%d", g), at(n)) == nil {
						acknowledged[g].Store(n)
					}
				}
			})
		}
		require.Eventually(t, func() bool {
			for g := range groups {
				if acknowledged[g].Load() == 0 {
					return false
				}
			}
			return true
		}, time.Minute, time.Millisecond, "there is no load")
		time.Sleep(time.Duration(50+30*round) * time.Millisecond)
		require.NoError(t, p.Process.Signal(syscall.SIGKILL))
		stop()
		wg.Wait()
		p.admin.Close()
		_ = p.Wait()

		p = startProcess(t, program, dir)
		for g := range groups {
			got, err := p.admin.FetchOffsets(ctx, fmt.Sprintf("g%d", g))
			require.NoError(t, err)
			o, ok := got.Lookup("t", 0)
			if !ok {
				require.Zero(t, acknowledged[g].Load(), "round %d: all is lost", round)
				continue
			}
			require.GreaterOrEqual(t, o.At, acknowledged[g].Load(), "round %d: what was acknowledged is lost", round)
			require.LessOrEqual(t, o.At, asked[g].Load(), "round %d: nobody committed this", round)
		}
		list, err := p.admin.ListGroups(ctx)
		require.NoError(t, err)
		for r := range round + 1 {
			require.NotContains(t, list.Groups(), fmt.Sprintf("gone-%d", r))
		}
	}
	p.end(t, syscall.SIGTERM)
}
