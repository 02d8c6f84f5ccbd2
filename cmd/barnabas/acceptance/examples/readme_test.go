package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

// TestFifteenMinutes takes the steps of plugins/README.md, at a free port.
func TestFifteenMinutes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../plugins/README.md")
	require.NoError(t, err)
	script := "set -euo pipefail\n"
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	port, err := peers.FreePort()
	require.NoError(t, err)
	script = strings.ReplaceAll(script, "19092", strconv.Itoa(port))
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "BARNABAS="+root, "PATH="+filepath.Dir(program())+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^[01] eu-1$`, string(out))
	require.Regexp(t, `(?m)^[01] eu-2$`, string(out))
	require.Regexp(t, `(?m)^[23] us-1$`, string(out))
}
