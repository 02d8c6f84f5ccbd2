package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServiceManagerIsTold has a broker run as a unit of Type=notify would, from its start to its end.
func TestServiceManagerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "100000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	// next waits for a message that holds a word, and gives those that came before it.
	next := func(word string) (before []string) {
		t.Helper()
		buffer := make([]byte, 4096)
		for {
			n, err := socket.Read(buffer)
			require.NoError(t, err, "no %s came after %q", word, before)
			if text := string(buffer[:n]); strings.Contains(text, word) {
				return append(before, text)
			}
			before = append(before, string(buffer[:n]))
		}
	}
	a := newApp(nil, io.Discard, io.Discard, nil)
	a.parts = testParts(t)
	c, err := a.load(elsewhere(t, ""))
	require.NoError(t, err)
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() { ended <- a.serve(context.Background(), c, slog.New(slog.DiscardHandler), signals) }()
	before := next("READY=1")
	assert.Len(t, before, 2)
	assert.Contains(t, before[0], "STATUS=starting")
	assert.Regexp(t, `^READY=1\nSTATUS=serving PLAINTEXT://127\.0\.0\.1:\d+$`, before[1])
	next("WATCHDOG=1")
	next("WATCHDOG=1")
	signals <- syscall.SIGTERM
	next("STOPPING=1")
	require.NoError(t, <-ended)
	assert.NoError(t, socket.SetReadDeadline(time.Now().Add(-time.Second)))

	// A manager that is gone keeps nobody from serving, and without one nobody is told.
	t.Setenv("NOTIFY_SOCKET", path+"-gone")
	var said strings.Builder
	serviceManager{slog.New(slog.NewTextHandler(&said, nil))}.starting()
	assert.Contains(t, said.String(), "can't be told")
	t.Setenv("NOTIFY_SOCKET", "")
	serviceManager{slog.New(slog.NewTextHandler(&said, nil))}.starting()
	assert.Equal(t, 1, strings.Count(said.String(), "\n"))
}

const unitFile = "../../configs/systemd/barnabas.service"

// TestUnit holds the unit against the program: the command that it starts, its exit codes and its times; and against systemd, where that is
// installed.
func TestUnit(t *testing.T) {
	file, err := os.Open(unitFile)
	require.NoError(t, err)
	defer file.Close()
	settings, section := map[string]string{}, ""
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		key, value, isSetting := strings.Cut(line, "=")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line
		default:
			require.True(t, isSetting && section != "" && regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(key), "line %d: %s", n, line)
			settings[section+key] = value
		}
	}
	require.NoError(t, lines.Err())
	assert.Equal(t, "notify", settings["[Service]Type"])
	assert.Equal(t, strconv.Itoa(exitWrong), settings["[Service]RestartPreventExitStatus"])
	stop, err := time.ParseDuration(strings.TrimSuffix(settings["[Service]TimeoutStopSec"], "in"))
	require.NoError(t, err)
	assert.Greater(t, stop, patience, "who is killed while it closes its logs has to recover them")
	for _, key := range []string{"NoNewPrivileges", "ProtectHome", "PrivateDevices", "RestrictSUIDSGID", "MemoryDenyWriteExecute"} {
		assert.Equal(t, "yes", settings["[Service]"+key], key)
	}
	args := strings.Fields(settings["[Service]ExecStart"])
	a := newApp(nil, io.Discard, io.Discard, nil)
	cmd, rest, err := newRoot(a).Find(args[1:])
	require.NoError(t, err)
	assert.Equal(t, "serve", cmd.Name())
	assert.NoError(t, cmd.ParseFlags(rest), "the program takes the flags")

	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // the unit is read by this test's own eyes alone
	}
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(unitFile)
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "barnabas.service")
	require.NoError(t, os.WriteFile(unit, []byte(strings.Replace(string(text), args[0], self, 1)), 0o600))
	// Its exit code also tells of other units of this machine: what counts is what it says of this one.
	out, _ := exec.CommandContext(t.Context(), tool, "verify", "--man=no", unit).CombinedOutput()
	for _, line := range strings.Split(string(out), "\n") {
		assert.NotContains(t, line, "barnabas.service:", "systemd has nothing to say of the unit")
	}
}

// TestContainerfile holds the recipe of the image against the program.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile("../../configs/oci/Containerfile")
	require.NoError(t, err)
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	last := map[string]string{} // the last instruction of each kind counts
	for _, line := range strings.Split(joined, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		instruction, rest, ok := strings.Cut(line, " ")
		require.True(t, ok && instruction == strings.ToUpper(instruction), line)
		last[instruction] = rest
	}
	assert.Equal(t, "scratch", last["FROM"])
	assert.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, last["USER"], "a number that isn't root's: Kubernetes can't look names up")
	assert.Contains(t, last["RUN"], "CGO_ENABLED=0 go build")
	goMod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`\ngo (\d+\.\d+)`).FindSubmatch(goMod)
	assert.Contains(t, joined, "golang:"+string(version[1])+" ", "the image builds with what go.mod asks for")

	words := regexp.MustCompile(`[^\[\]", ]+`)
	serve := words.FindAllString(last["CMD"], -1)
	cmd, rest, err := newRoot(newApp(nil, io.Discard, io.Discard, nil)).Find(serve)
	require.NoError(t, err)
	assert.Equal(t, "serve", cmd.Name())
	assert.NoError(t, cmd.ParseFlags(rest))
	assert.Regexp(t, `podman build --format docker `, string(text), "podman's own format has no health check")
	_, check, ok := strings.Cut(last["HEALTHCHECK"], "CMD ")
	require.True(t, ok)
	cmd, _, err = newRoot(newApp(nil, io.Discard, io.Discard, nil)).Find(words.FindAllString(check, -1)[1:])
	require.NoError(t, err)
	assert.Equal(t, "health", cmd.Name())

	// The image's environment is a configuration, Kafka's variables go over it where they say something else.
	t.Chdir(t.TempDir())
	environ := append(strings.Fields(last["ENV"]), "KAFKA_NUM_PARTITIONS=3", "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092")
	got := barnabas(t, environ, "config", "show", "--kafka-environment", "--output", "json")
	require.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "PLAINTEXT://0.0.0.0:9092")
	assert.Contains(t, got.out, "127.0.0.1:9644", "the admin server is on, for the health check")
}
