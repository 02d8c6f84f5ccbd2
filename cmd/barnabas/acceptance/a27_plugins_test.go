package acceptance

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// TestA27PluginStart: plug-ins that don't come up. The broker says which, and why, in time; it refuses to start, or starts with
// what stands in, as the configuration says; nothing of the plug-in is left.
//
// hashicorp/go-plugin#199, go-plugin#306
func TestA27PluginStart(t *testing.T) {
	t.Parallel()
	faulty := filepath.Join(t.TempDir(), "faulty")
	out, err := exec.Command("go", "build", "-o", faulty, "../../../plugins/remote/faulty").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, want := range map[string]string{
		"hello":          `no handshake: "hello"`,
		"exit":           `exit status 1, and its last words were "cannot open the map of regions"`,
		"silent":         "within 3s",
		"cookie":         "this is a plug-in for something else",
		"version":        "another version of the protocol",
		"missing":        "no such file",
		"not executable": "permission denied",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			command := filepath.Join(dir, "plug-in")
			switch name {
			case "missing":
			case "not executable":
				write(t, command, []byte("no program"))
			default:
				require.NoError(t, os.Symlink(faulty, command)) // so that its processes can be told from others
			}
			ports := freePorts(t, 2)
			options := func(onFailure string) target.Options {
				return target.Options{Dir: dir, Addr: "127.0.0.1:" + ports[0], Sections: fmt.Sprintf(
					"partitioner: {remote: {command: %q, args: [%q], start_timeout: 3s, on_failure: %s}}\ngateway: {listen: '127.0.0.1:%s'}\n", command, name, onFailure, ports[1])}
			}
			began := time.Now()
			said := refused(t, options("reject"))
			assert.Less(t, time.Since(began), time.Minute)
			assert.Contains(t, said, command)
			assert.Contains(t, said, want)
			gone(t, command)

			n := beginWith(t, options("murmur2"))
			status, answer := frontAt(t, "127.0.0.1:"+ports[1]).post("/topics/t", mediaBinary, `{"records":[{"key":"YQ==","value":"YQ=="}]}`)
			assert.Equal(t, http.StatusOK, status, answer)
			assert.Contains(t, answer, `"error_code":null`)
			n.stop()
			assert.Contains(t, n.said(), command)
			assert.Contains(t, strings.ReplaceAll(n.said(), `\"`, `"`), want)
			gone(t, command)
		})
	}
}

// gone waits until no process of a command is left.
func gone(t *testing.T, command string) {
	t.Helper()
	eventually(t, func() bool { return processes(command) == 0 }, "a process of %s lives", command)
}
