package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAdminSectionIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"admin:":                          "b.yaml:1: admin: want the admin server's options, {} for the defaults",
		"admin: on":                       "b.yaml:1: admin: want a mapping",
		"admin: {port: 5}":                `b.yaml:1: admin: unknown key "port"`,
		"admin: {listen: x}":              `b.yaml:1: admin.listen: want HOST:PORT, not "x"`,
		"admin: {listen: '0.0.0.0:9644'}": "b.yaml:1: admin.listen: other machines reach \"0.0.0.0:9644\": set `remote: true` beside it",
		"admin: {timeout: 1ms}":           "b.yaml:1: admin.timeout: must be between",
		"metrics:":                        "b.yaml:1: metrics: want options of metrics, {} for the defaults",
		"metrics: {aliases: [jxm]}":       `b.yaml:1: metrics.aliases: no alias is called "jxm" (did you mean "jmx"?)`,
		"metrics: {aliases: [jmx, jmx]}":  "b.yaml:1: metrics.aliases: jmx is there twice",
		"metrics: {per_topic: true}":      `b.yaml:1: metrics: unknown key "per_topic"`,
		"admn: {}":                        `unknown key "admn" (did you mean "admin"?)`,
	} {
		got := barnabas(t, nil, "config", "check", write(t, text))
		assert.Equal(t, exitWrong, got.code, text)
		assert.Contains(t, got.err, want, text)
	}
	got := barnabas(t, nil, "config", "check", write(t, "admin: {listen: '0.0.0.0:99', remote: true}"))
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Regexp(t, `admin +listen: 0.0.0.0:99, remote: true, max_connections: 64`, got.out)
	assert.NotContains(t, barnabas(t, nil, "config", "check", write(t, "{}")).out, "admin")

	got = barnabas(t, nil, "config", "check", write(t, "admin: {}\nmetrics: {per_partition: true, aliases: [kafka_exporter]}"))
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Empty(t, got.err)
	assert.Regexp(t, `metrics +per_partition: true, aliases: \[?kafka_exporter`, got.out)
	got = barnabas(t, nil, "config", "check", write(t, "metrics: {}"))
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.err, "b.yaml:1: metrics: has no effect without `admin: {}`")
}

// TestAdminAddressTaken: a broker that can't be watched as it was told doesn't start.
func TestAdminAddressTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	got := barnabas(t, nil, "serve", "--set", "broker.listeners=PLAINTEXT://127.0.0.1:0", "--set", "broker.log.dirs="+t.TempDir(), "--set", "admin.listen="+taken.Addr().String())
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "admin: listen tcp "+taken.Addr().String())
}
