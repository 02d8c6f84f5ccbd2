package acceptance

import (
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// storages are the names of the storages; bothStorages runs a test once a storage.
func bothStorages(t *testing.T, test func(t *testing.T, storage string)) {
	for _, storage := range []string{"mmap", "sendfile"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			test(t, storage)
		})
	}
}

// props are broker properties, or a topic's configuration.
type props map[string]string

// node is a broker on a directory, which may be killed, stopped and started again at the same address.
type node struct {
	t *testing.T
	*peers.Peer
	options target.Options
	log     string // what ended processes printed
}

// begin starts a broker on a directory of the test's own.
func begin(t *testing.T, storage string, p props) *node {
	t.Helper()
	return beginIn(t, t.TempDir(), storage, p)
}

// beginIn starts a broker with its configuration in dir and its data in dir/data. It is stopped when the test ends, and
// must do so cleanly.
func beginIn(t *testing.T, dir, storage string, p props) *node {
	t.Helper()
	port, err := peers.FreePort()
	require.NoError(t, err)
	return beginWith(t, target.Options{
		Dir: dir, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Storage: storage, Properties: maps.Clone(p),
	})
}

func beginWith(t *testing.T, o target.Options) *node {
	t.Helper()
	n := &node{t: t, options: o}
	n.start()
	t.Cleanup(func() {
		if n.Peer != nil {
			out := n.Output()
			require.NoError(t, n.Peer.Stop(), "the broker's end")
			if t.Failed() {
				t.Logf("the broker said:\n%s%s", n.log, out)
			}
		}
	})
	return n
}

// start starts the broker again.
func (n *node) start() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := target.StartBarnabas(ctx, program(), n.options)
	require.NoError(n.t, err)
	n.Peer = p
}

// ended notes what the process printed.
func (n *node) ended() {
	n.log += n.Output()
	n.Peer = nil
}

// kill ends the process with SIGKILL.
func (n *node) kill() {
	n.Kill()
	n.ended()
}

// stop ends the process as SIGTERM does, cleanly.
func (n *node) stop() {
	n.t.Helper()
	require.NoError(n.t, n.Stop())
	n.ended()
}

// said is everything that the broker printed, over all its processes (of long output, the end).
func (n *node) said() string {
	if n.Peer == nil {
		return n.log
	}
	return n.log + n.Output()
}

// data is the path of a file in the data directory.
func (n *node) data(names ...string) string {
	return filepath.Join(append([]string{n.options.Dir, "data"}, names...)...)
}

// refused runs a broker that must not start, and gives what it printed.
func refused(t *testing.T, o target.Options) string {
	t.Helper()
	if o.Addr == "" {
		port, err := peers.FreePort()
		require.NoError(t, err)
		o.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	cmd, err := target.BarnabasCommand(program(), o)
	require.NoError(t, err)
	ended := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer ended.Stop()
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "it started:\n%s", out)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Positive(t, exit.ExitCode(), "it was killed, for it ran and ran:\n%s", out)
	require.NotContains(t, string(out), "serving ")
	require.NotContains(t, string(out), "goroutine ", "a panic")
	return string(out)
}

// eventually waits for a condition.
func eventually(t *testing.T, condition func() bool, why string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 20*time.Millisecond, append([]any{why}, args...)...)
}

// write makes a file.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o644))
}

// read gives a file's content.
func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}
