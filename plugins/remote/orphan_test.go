package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/plugins/remote"
)

// hostVariable makes the test's executable a host that starts the plug-in it names and waits to be killed.
const hostVariable = "REMOTE_TEST_HOST"

func actAsHost(command string) {
	o := remote.Defaults()
	o.Command, o.Args = command, []string{os.Getenv("REMOTE_TEST_MODE")}
	p := remote.NewPartitioner(o, nil, nil)
	if err := p.Start(context.Background()); err != nil {
		panic(err)
	}
	_, _, pid := p.Describe()
	_, _ = fmt.Fprintln(os.Stdout, pid)
	select {}
}

// TestEndsWithAKilledHost kills a host as nobody can prevent, while its plug-in listens to its standard input, and while it
// doesn't.
func TestEndsWithAKilledHost(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"good", "deaf"} {
		t.Run(mode, func(t *testing.T) {
			exe, err := os.Executable()
			require.NoError(t, err)
			host := exec.Command(exe)
			host.Env = append(os.Environ(), hostVariable+"="+faulty, "REMOTE_TEST_MODE="+mode)
			out, err := host.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, host.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(pid, 0), "the plug-in runs")
			require.NoError(t, host.Process.Kill())
			_ = host.Wait()
			gone(t, pid)
		})
	}
}
