package examples

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/plugins/remote"
	"github.com/barnabas-mq/barnabas/plugins/sdk/plugincheck"
)

// TestProtocolCopy holds the example's copy of the protocol, which its author would have taken along, against ours.
func TestProtocolCopy(t *testing.T) {
	ours, err := os.ReadFile("../../../../plugins/remote/proto/v1/plugin.proto")
	require.NoError(t, err)
	theirs, err := os.ReadFile(filepath.Join(example(t, "python-partitioner"), "plugin.proto"))
	require.NoError(t, err)
	require.Equal(t, string(ours), string(theirs), "run `go run ./cmd/dev generate`")
}

// options are those of a plug-in with its own given as YAML.
func options(t *testing.T, command, own string) remote.Options {
	t.Helper()
	o := remote.Defaults()
	o.Command = command
	var err error
	o.Config, err = config.Parse("", []byte(own))
	require.NoError(t, err)
	return o
}

// check holds a plug-in against the contract of its role, and against what a broker does to it.
func check(t *testing.T, command, role, own string) {
	t.Helper()
	t.Run("check", func(t *testing.T) {
		plugincheck.Test(t, plugincheck.Options{Command: command, Role: role, Config: own, StartTimeout: 30 * time.Second, CallTimeout: 5 * time.Second})
	})
}

var quiet = slog.New(slog.DiscardHandler)

// produced starts a broker on port any, produces lines with the partitioner of a configuration, and gives what the partitions hold:
// lines of the partition and the value.
func produced(t *testing.T, partitioner, lines string, flags ...string) string {
	t.Helper()
	broker, err := target.StartBarnabas(t.Context(), program(), target.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, broker.Stop()) }()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	conf, in := file("barnabas.yaml", "partitioner:\n  remote:\n"+partitioner), file("lines", lines)
	command(t, dir, program(), "topic", "create", "t", "-b", broker.Addr, "--partitions", "8")
	command(t, dir, program(), append([]string{"produce", "-t", "t", "-b", broker.Addr, "-K", "=", "-f", in, "-c", conf}, flags...)...)
	return command(t, dir, program(), "consume", "-t", "t", "-b", broker.Addr, "--template", "{{.Partition}} {{.Value}}")
}

func TestRegion(t *testing.T) {
	t.Parallel()
	bin := goPlugin(t, "region")
	check(t, bin, "partitioner", "regions: {eu: [0, 3, 11]}")
	t.Run("broker", func(t *testing.T) {
		out := produced(t, "    command: "+bin+"\n    config: {regions: {eu: [5]}, default: [2]}\n", "a=1\nb=2\n", "-H", "region=eu")
		require.ElementsMatch(t, []string{"5 1", "5 2"}, strings.Split(strings.TrimSpace(out), "\n"))
	})
}

func TestPythonPartitioner(t *testing.T) {
	t.Parallel()
	run := pythonPlugin(t)
	check(t, run, "partitioner", "separator: '/'")
	t.Run("options", func(t *testing.T) {
		p := remote.NewPartitioner(options(t, run, "separator: ''\n"), quiet, nil)
		require.ErrorContains(t, p.Start(t.Context()), "separator: must not be empty")
		require.NoError(t, p.Stop(t.Context()))
	})
	t.Run("broker", func(t *testing.T) {
		out := produced(t, "    command: "+run+"\n", "acme:1=x\nacme:2=y\nacme:3=z\n")
		at := map[string]bool{}
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			at[strings.Fields(line)[0]] = true
		}
		require.Len(t, at, 1, "a tenant's records stay together:\n%s", out)
	})
}

func TestSQLiteOffsets(t *testing.T) {
	t.Parallel()
	bin := goPlugin(t, "sqlite-offsets")
	check(t, bin, "offsets", "path: $DIR/offsets.db")
	t.Run("broker", func(t *testing.T) {
		dir := t.TempDir()
		port, err := peers.FreePort()
		require.NoError(t, err)
		addr, conf := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(dir, "barnabas.yaml")
		yaml := fmt.Sprintf("broker: {listeners: 'PLAINTEXT://%s', log.dirs: data}\noffsets:\n  remote:\n    command: %s\n    config: {path: offsets.db}\n", addr, bin)
		require.NoError(t, os.WriteFile(conf, []byte(yaml), 0o644))
		lines := filepath.Join(dir, "lines")
		// Each life of the broker goes on where the group stood at the end of the one before.
		for _, value := range []string{"one", "two"} {
			serve := exec.Command(program(), "serve", "-c", conf)
			serve.Dir = dir
			broker, err := peers.Start(t.Context(), serve, addr, filepath.Join(dir, "data"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(lines, []byte(value+"\n"), 0o644))
			command(t, dir, program(), "produce", "-t", "t", "-b", addr, "--create", "-f", lines)
			require.Equal(t, value+"\n", command(t, dir, program(), "consume", "-t", "t", "-b", addr, "-g", "billing"))
			require.NoError(t, broker.Stop())
		}
	})
}
