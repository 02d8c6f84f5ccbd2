package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/core/logging"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

func TestLoggingOptions(t *testing.T) {
	var out bytes.Buffer
	log, levels, err := loggingOptions{Level: "warn", Format: "json"}.logger(&out)
	require.NoError(t, err)
	root := slog.New(levels.Handler(logging.Root, log.Handler()))
	root.Info("quiet")
	root.Warn("loud", "k", 1)
	assert.Contains(t, out.String(), `"msg":"loud","k":1`)
	assert.NotContains(t, out.String(), "quiet")
	_, _, err = loggingOptions{Level: "loud"}.logger(&out)
	assert.Error(t, err)

	over, err := (&logOptions{format: "json"}).over(loggingOptions{Level: "debug", Format: "text"})
	require.NoError(t, err)
	assert.Equal(t, loggingOptions{Level: "debug", Format: "json"}, over)
	_, err = (&logOptions{format: "xml"}).over(defaultLogging())
	assert.ErrorContains(t, err, "--log-format")
	_, err = (&logOptions{level: "loud"}).over(defaultLogging())
	assert.ErrorContains(t, err, "--log-level")
}

func TestLoggingSectionIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"logging: {level: loud}":  `b.yaml:1: logging.level: want trace, debug, info, warn, error or fatal, not "loud"`,
		"logging: {format: xml}":  `b.yaml:1: logging.format: want text or json, not "xml"`,
		"logging: {levl: info}":   `unknown key "levl" (did you mean "level"?)`,
		"logging: {level: debug}": "",
	} {
		got := barnabas(t, nil, "config", "check", write(t, text))
		if want == "" {
			assert.Equal(t, exitOK, got.code, got.err)
			continue
		}
		assert.Equal(t, exitWrong, got.code, text)
		assert.Contains(t, got.err, want, text)
	}
}

// shared is a buffer for several goroutines.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestLevelsChangeWhileRunning changes levels through HTTP, and through Kafka's protocol as kafka-configs does.
func TestLevelsChangeWhileRunning(t *testing.T) {
	var out shared
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: logging.LevelTrace})
	levels := logging.NewLevels(slog.LevelWarn, broker.Loggers()...)
	b := testbroker.Start(t, brokertest.Admin(), brokertest.Logger(slog.New(handler)), brokertest.LogLevels(levels))
	assert.NotContains(t, out.String(), "broker serves", "INFO is below")

	ask := func(method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, b.Admin()+path, strings.NewReader(body))
		require.NoError(t, err)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	status, text := ask("PUT", "/loglevel?logger=groups", "debug\n")
	require.Equal(t, 200, status, text)
	assert.Regexp(t, `"logger": "groups",\s+"level": "DEBUG",\s+"own": true`, text)
	assert.Regexp(t, `"logger": "root",\s+"level": "WARN"`, text)
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"PUT", "/loglevel", "loud", 400, "want TRACE"}, {"PUT", "/loglevel?logger=x", "info", 404, `no such logger as \"x\"`},
		{"DELETE", "/loglevel", "", 400, "nobody to take a level from"}, {"DELETE", "/loglevel?logger=groups", "", 200, "WARN"},
		{"PUT", "/loglevel", strings.Repeat("x", 100_000), 413, "a level is a word"}, {"GET", "/loglevel", "", 200, "transactions"},
	} {
		status, text := ask(c.method, c.path, c.body)
		assert.Equal(t, c.status, status, text)
		assert.Contains(t, text, c.says)
	}
	assert.NotContains(t, out.String(), "log level changed", "that is INFO, too")
	status, _ = ask("PUT", "/loglevel", "info")
	require.Equal(t, 200, status)
	assert.Contains(t, out.String(), "log level changed")

	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	require.NoError(t, err)
	defer client.Close()
	alter := func(validateOnly bool, changes ...kadm.AlterConfig) error {
		t.Helper()
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = validateOnly
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeBrokerLogger, "1"
		for _, c := range changes {
			resource.Configs = append(resource.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: c.Name, Value: c.Value, Op: kmsg.IncrementalAlterConfigOp(c.Op)})
		}
		req.Resources = append(req.Resources, resource)
		resp, err := req.RequestWith(t.Context(), client)
		require.NoError(t, err)
		return kerr.ErrorForCode(resp.Resources[0].ErrorCode)
	}
	level := func(logger string) string {
		t.Helper()
		req := kmsg.NewPtrDescribeConfigsRequest()
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeBrokerLogger, "1"
		req.Resources = append(req.Resources, resource)
		resp, err := req.RequestWith(t.Context(), client)
		require.NoError(t, err)
		require.Len(t, resp.Resources[0].Configs, len(broker.Loggers())+1)
		for _, c := range resp.Resources[0].Configs {
			if c.Name == logger {
				assert.Equal(t, kmsg.ConfigSourceDynamicBrokerLoggerConfig, c.Source)
				assert.False(t, c.ReadOnly)
				return *c.Value
			}
		}
		return ""
	}
	set := func(name, value string) kadm.AlterConfig {
		return kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value}
	}
	require.NoError(t, alter(false, set("controller", "TRACE"), set("root", "ERROR")))
	assert.Equal(t, "TRACE", level("controller"))
	assert.Equal(t, "ERROR", level("logs"))
	require.NoError(t, alter(true, set("root", "DEBUG")))
	assert.Equal(t, "ERROR", level("root"), "only validated")
	assert.ErrorIs(t, alter(false, set("root", "DEBUG"), set("controller", "LOUD")), kerr.InvalidConfig)
	assert.Equal(t, "ERROR", level("root"), "all or nothing")
	assert.ErrorIs(t, alter(false, set("kafka.server.KafkaApis", "INFO")), kerr.InvalidConfig)
	assert.ErrorIs(t, alter(false, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "root"}), kerr.InvalidRequest)
	require.NoError(t, alter(false, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "controller"}))
	assert.Equal(t, "ERROR", level("controller"))
}
