package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// elsewhere moves a composition to a free port and a directory of the test's, the rest as it is.
func elsewhere(t *testing.T, file string) source {
	t.Helper()
	from := source{file: file, sets: []string{
		"broker.listeners=PLAINTEXT://127.0.0.1:0",
		"broker.log.dirs=" + t.TempDir(),
	}}
	text, err := os.ReadFile(file)
	for _, key := range []string{gatewayKey, adminKey} {
		if err == nil && strings.Contains("\n"+string(text), "\n"+key+":") {
			from.sets = append(from.sets, key+".listen=127.0.0.1:0")
		}
	}
	return from
}

// address reads what serve prints until it says where it serves, and goes on reading behind the test's back.
func address(t *testing.T, out io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "serving"); ok {
			_, hostPort, ok := strings.Cut(strings.TrimSpace(rest), "://")
			require.True(t, ok, lines.Text())
			return hostPort
		}
	}
	require.Fail(t, "serve ended without saying where it serves")
	return ""
}

// start runs serve in this process and gives the broker's address. It is stopped by a signal when the test ends.
func start(t *testing.T, from source) string {
	t.Helper()
	hostPort, _ := running(t, from)
	return hostPort
}

// running is start with a way to stop the broker before the test ends.
func running(t *testing.T, from source) (hostPort string, stop func()) {
	t.Helper()
	serves, stop := launch(t, from)
	return serves(), stop
}

// launch is running that doesn't wait: serves does, and gives the address.
func launch(t *testing.T, from source) (serves func() string, stop func()) {
	t.Helper()
	reader, writer := io.Pipe()
	a := newApp(nil, writer, io.Discard, nil)
	a.parts = testParts(t)
	c, err := a.load(from)
	require.NoError(t, err)
	signals := make(chan os.Signal, 1)
	ended := make(chan error, 1)
	go func() {
		err := a.serve(context.Background(), c, slog.New(slog.DiscardHandler), signals)
		_ = writer.CloseWithError(err)
		ended <- err
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			signals <- syscall.SIGTERM
			select {
			case err := <-ended:
				assert.NoError(t, err)
			case <-time.After(time.Minute):
				assert.Fail(t, "the broker doesn't stop")
			}
		})
	}
	t.Cleanup(stop)
	serves = func() string {
		t.Helper()
		hostPort := address(t, reader)
		go func() { _, _ = io.Copy(io.Discard, reader) }()
		return hostPort
	}
	return serves, stop
}

// roundTrip produces a record and consumes it.
func roundTrip(t *testing.T, hostPort, topic, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(hostPort), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(topic),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr())
	for {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		for _, record := range fetches.Records() {
			if string(record.Value) == value {
				return
			}
		}
	}
}

// TestShippedConfigurationsServe starts every file in configs/ and sends a record through it, but for those that need more than a
// broker: see TestZooKeeperConfigurationsServe and TestThreeBrokersWithoutZooKeeperServe.
func TestShippedConfigurationsServe(t *testing.T) {
	for _, file := range shipped(t) {
		if name := filepath.Base(file); strings.HasPrefix(name, "zookeeper-") || name == "memberlist-3.yaml" || name == "cluster-3.yaml" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			roundTrip(t, start(t, elsewhere(t, file)), "t", "through "+file)
		})
	}
}

// needsZooKeeper says whether a snippet is a broker's of a cluster.
func needsZooKeeper(s snippet) bool { return strings.Contains(s.text, "zookeeper:\n") }

// TestSnippetsServe starts every configuration that the documentation shows, but for those with an executable that the reader
// has still to build: these are composed only, and started by the tests of what they are about. Those that need a ZooKeeper are
// started by TestZooKeeperConfigurationsServe.
func TestSnippetsServe(t *testing.T) {
	for _, s := range snippets(t) {
		if strings.Contains(s.text, "command:") || needsZooKeeper(s) {
			continue
		}
		t.Run(s.file, func(t *testing.T) {
			roundTrip(t, start(t, elsewhere(t, write(t, s.text))), "t", s.file)
		})
	}
}

// TestProcess runs the program itself: it serves, ends cleanly on SIGTERM, and has the data when it is back, under the
// other storage.
func TestProcess(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "barnabas")
	build, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(build))
	data := t.TempDir()
	serve := func(storage, value string) {
		cmd := exec.Command(binary, "serve", "--set", "broker.listeners=PLAINTEXT://127.0.0.1:0", "--set", "broker.log.dirs="+data, "--set", "storage="+storage)
		cmd.Dir = t.TempDir()
		logged := new(strings.Builder)
		cmd.Stderr = logged
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		defer func() { _ = cmd.Process.Kill() }()
		hostPort := address(t, out)
		if value != "" {
			roundTrip(t, hostPort, "kept", value)
		}
		roundTrip(t, hostPort, "kept", "first")
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, out)
		require.NoError(t, cmd.Wait(), logged.String())
		assert.FileExists(t, filepath.Join(data, ".kafka_cleanshutdown"))
	}
	serve("mmap", "")
	serve("sendfile", "second")
	serve("mmap", "third")
}

// TestServeRefuses runs the command where it can't serve.
func TestServeRefuses(t *testing.T) {
	hostPort := start(t, elsewhere(t, ""))
	data := "broker.log.dirs=" + t.TempDir()
	got := barnabas(t, nil, "serve", "--set", "broker.listeners=PLAINTEXT://"+hostPort, "--set", data)
	assert.Equal(t, exitFailed, got.code, "the port is taken")
	assert.Contains(t, got.err, "address already in use")
	assert.NotContains(t, got.out, "serving")

	got = barnabas(t, nil, "serve", "--set", "broker.listeners=PLAINTEXT://0.0.0.0:0", "--set", "broker.advertised.listeners=PLAINTEXT://0.0.0.0:9092", "--set", data)
	assert.Equal(t, exitWrong, got.code)
	assert.Contains(t, got.err, "cannot be connected to")

	got = barnabas(t, nil, "serve", "--log-format", "xml")
	assert.Equal(t, exitWrong, got.code)
	got = barnabas(t, nil, "serve", "extra")
	assert.Equal(t, exitWrong, got.code)
}
