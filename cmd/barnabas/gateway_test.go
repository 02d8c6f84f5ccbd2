package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGatewayComposes(t *testing.T) {
	for text, want := range map[string]string{
		"gateway:":               "b.yaml:1: gateway: want the gateway's options, {} for the defaults",
		"gateway: on":            "b.yaml:1: gateway: want a mapping",
		"gateway: {port: 5}":     `b.yaml:1: gateway: unknown key "port"`,
		"gateway: {listen: x}":   `b.yaml:1: gateway.listen: want HOST:PORT, not "x"`,
		"gatway: {}":             `unknown key "gatway" (did you mean "gateway"?)`,
		"gateway: {max_body: 1}": "b.yaml:1: gateway.max_body: must be between",
	} {
		got := barnabas(t, nil, "config", "check", write(t, text))
		assert.Equal(t, exitWrong, got.code)
		assert.Contains(t, got.err, strings.TrimPrefix(want, "b.yaml"), text)
	}
	got := barnabas(t, nil, "config", "check", write(t, "gateway: {listen: '127.0.0.1:99'}"))
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "listen: 127.0.0.1:99")
	assert.NotContains(t, barnabas(t, nil, "config", "check", write(t, "{}")).out, "gateway")
	assert.Contains(t, barnabas(t, nil, "plugins").out, "max_consumers")
}

// TestGatewayServes runs a broker with its front door, whose partitioner is the configured one, and stops it.
func TestGatewayServes(t *testing.T) {
	reader, writer := io.Pipe()
	a := newApp(nil, writer, io.Discard, nil)
	a.parts = testParts(t)
	from := elsewhere(t, "../../configs/gateway.yaml")
	from.sets = append(from.sets, "broker.num.partitions=10")
	c, err := a.load(from)
	require.NoError(t, err)
	signals := make(chan os.Signal, 1)
	ended := make(chan error, 1)
	go func() {
		err := a.serve(context.Background(), c, slog.New(slog.DiscardHandler), signals)
		_ = writer.CloseWithError(err)
		ended <- err
	}()
	base := ""
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "http"); ok {
			base = strings.TrimSpace(rest)
		}
		if strings.HasPrefix(lines.Text(), "serving") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Post(base+"/topics/t", "application/vnd.kafka.binary.v2+json", strings.NewReader(`{"records":[{"key":"ZW4=","value":"YQ=="},{"key":"ZnI=","value":"YQ=="}]}`))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 200, resp.StatusCode)
	assert.Regexp(t, `"offsets":\[\{"partition":\d,"offset":0.*\{"partition":\d,"offset":0`, string(body))
	signals <- syscall.SIGTERM
	select {
	case err := <-ended:
		assert.NoError(t, err)
	case <-time.After(time.Minute):
		assert.Fail(t, "it doesn't stop")
	}
}

// TestGatewayPortTaken ends the broker, too, when its front door can't be opened.
func TestGatewayPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	got := barnabas(t, nil, "serve", "--set", "broker.listeners=PLAINTEXT://127.0.0.1:0", "--set", "broker.log.dirs="+t.TempDir(), "--set", "gateway.listen="+taken.Addr().String())
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "address already in use")
}
