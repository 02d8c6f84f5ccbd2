//go:build unix

package acceptance

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// TestReadOnlyData: a directory that can't be written is refused by a message that names it.
func TestReadOnlyData(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "barnabas-readonly-") // t.TempDir is closed to others
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, d := range []string{dir, filepath.Dir(program())} {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	n := beginIn(t, dir, "", nil)
	n.dial().createTopic("t", 1, nil)
	n.stop()
	require.NoError(t, filepath.WalkDir(n.data(), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o555)
		}
		return os.Chmod(path, 0o444)
	}))
	before := fingerprint(t, n.data())
	cmd, err := target.BarnabasCommand(program(), n.options)
	require.NoError(t, err)
	if os.Geteuid() == 0 { // whom no permission keeps out
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	ended := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer ended.Stop()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	assert.Positive(t, exit.ExitCode(), "%s", out)
	assert.Contains(t, string(out), n.data())
	assert.Contains(t, string(out), "permission denied")
	assert.Equal(t, before, fingerprint(t, n.data()), "untouched")
}

// TestFullDisk fills the only disk while records come: what was acknowledged is there when there is room again, what isn't gets
// Kafka's error for a disk that fails, and the broker, which has no log directory left, stops and says why, as Kafka's do. A limit
// on the size of files stands for the disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		n.dial().createTopic("t", 1, forever())
		n.dial().createTopic("u", 1, forever())
		n.stop()

		// 4096 blocks of 512 bytes: 2 MiB a file.
		cmd, err := target.BarnabasCommand("/bin/sh", n.options)
		require.NoError(t, err)
		cmd.Args = append([]string{"sh", "-c", "ulimit -f 4096; exec \"$0\" \"$@\"", program()}, cmd.Args[1:]...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n.Peer, err = peers.Start(ctx, cmd, n.options.Addr, n.data())
		require.NoError(t, err)
		c := n.dial()
		value := bytes.Repeat([]byte("v"), 100_000)
		acknowledged := 0
		for {
			got := c.produceTo("t", 0, batch(rec{value: value, timestamp: 1000}))
			if got.ErrorCode != 0 {
				require.Equal(t, int16(56), got.ErrorCode, "KAFKA_STORAGE_ERROR")
				require.Equal(t, int64(-1), got.BaseOffset)
				break
			}
			require.Equal(t, int64(acknowledged), got.BaseOffset)
			acknowledged++
			require.Less(t, acknowledged, 60, "more than there is room for")
		}
		require.Positive(t, acknowledged)
		var exit *exec.ExitError
		require.ErrorAs(t, n.Wait(ctx), &exit, "the broker ends by itself, not with success")
		require.Positive(t, exit.ExitCode())
		n.ended()
		assert.Contains(t, n.said(), "all log directories have failed")

		n.start() // with room
		c = n.dial()
		records := c.all("t", 0, 0)
		require.GreaterOrEqual(t, len(records), acknowledged)
		for i, r := range records {
			require.Equal(t, int64(i), r.Offset)
			require.True(t, bytes.Equal(value, r.Value))
		}
		c.accepted("t", int64(len(records)), batch(rec{value: value, timestamp: 1000}))
		c.accepted("u", 0, batch(rec{value: value, timestamp: 1000}))
	})
}
