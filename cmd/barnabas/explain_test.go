package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

func TestExplainCommand(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin())
	at := strings.TrimPrefix(b.Admin(), "http://")
	require.Equal(t, exitOK, barnabas(t, nil, "topic", "create", "orders", "--bootstrap", b.Addr()).code)

	got := barnabas(t, nil, "explain", "partition", "orders-0", "--admin", at, "--events")
	require.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "partition orders-0, as broker 1 sees it: well: 1 replica in sync, broker 1 leads\n  - broker 1 leads because it is the preferred replica")
	assert.Regexp(t, `\d\d:\d\d:\d\d\.\d\d\d  broker 1 leads from epoch 0 on: it is the partition's first leader`, got.out)

	got = barnabas(t, nil, "explain", "broker", "--admin", at, "--output", "json")
	require.Equal(t, exitOK, got.code, got.err)
	var list []explanation
	require.NoError(t, json.Unmarshal([]byte(got.out), &list))
	require.Len(t, list, 1)
	assert.Contains(t, list[0].Summary, "ready, for ")
	assert.Contains(t, string(list[0].State), `"registration"`)

	got = barnabas(t, nil, "explain", "group", "g", "--admin", at, "--output", "yaml")
	require.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "about: group g\n")

	got = barnabas(t, nil, "explain", "partition", "orders", "--admin", at)
	assert.Equal(t, exitWrong, got.code)
	assert.Contains(t, got.err, `want ?name=TOPIC-PARTITION, such as orders-0, not "orders"`)

	// Who answers is shown, who doesn't fails the command.
	nobody := unused(t)
	got = barnabas(t, nil, "explain", "broker", "--admin", nobody+","+at)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.out, "ready, for ")
	assert.Contains(t, got.err, "no admin server listens at "+nobody)
}

// TestExplainSeveral shows who knows most, and names who wasn't asked.
func TestExplainSeveral(t *testing.T) {
	answer := func(text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	other := answer(`{"about": "group g", "broker": 1, "summary": "broker 2 coordinates the group, not this one", "ask": [{"broker": 2, "why": "it coordinates the group"}]}`)
	coordinator := answer(`{"about": "group g", "broker": 2, "summary": "the group is stable", "findings": [{"code": "rebalance", "text": "because"}], "state": {"a": 1}}`)
	got := barnabas(t, nil, "explain", "group", "g", "--admin", other)
	assert.Equal(t, "group g, as broker 1 sees it: broker 2 coordinates the group, not this one\n  broker 2 knows more: it coordinates the group (--admin asks several)\n", got.out)
	got = barnabas(t, nil, "explain", "group", "g", "--admin", other+","+coordinator)
	assert.Equal(t, "group g, as broker 2 sees it: the group is stable\n  - because\n", got.out)

	for text, want := range map[string]string{"<html>": "is no admin server of a broker", strings.Repeat("x", 100): "is no admin server of a broker"} {
		got := barnabas(t, nil, "explain", "broker", "--admin", answer(text))
		assert.Equal(t, exitFailed, got.code)
		assert.Contains(t, got.err, want)
	}
	for _, args := range [][]string{{"explain", "broker", "--admin", "x"}, {"explain", "group"}, {"explain", "broker", "--timeout", "-1s"}, {"explain", "broker", "--output", "xml"},
		{"health", "well"}, {"health", "--admin", ""}} {
		assert.Equal(t, exitWrong, barnabas(t, nil, args...).code, args)
	}
}

func TestHealthCommand(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin())
	at := strings.TrimPrefix(b.Admin(), "http://")
	for _, which := range [][]string{{"health"}, {"health", "live"}, {"health", "ready"}, {"health", "all"}} {
		got := barnabas(t, nil, append(which, "--admin", at)...)
		assert.Equal(t, exitOK, got.code, got.err)
		assert.Contains(t, got.out, at+"  pass  process")
	}
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"status": "fail", "checks": [{"name": "started", "status": "fail", "reason": "recovering"}]}`))
	}))
	defer sick.Close()
	at = sick.Listener.Addr().String()
	got := barnabas(t, nil, "health", "--admin", at, "--output", "json")
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "the broker at "+at+" is not ready")
	assert.Contains(t, got.out, `"reason": "recovering"`)
	assert.Equal(t, exitFailed, barnabas(t, nil, "health", "--admin", unused(t)).code)
}

// unused gives an address at which nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
