package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// shownConfig runs `config show` and gives value and origin by key, parted by a bar.
func shownConfig(t *testing.T, environ []string, args ...string) map[string]string {
	t.Helper()
	got := barnabas(t, environ, append([]string{"config", "show"}, args...)...)
	require.Equal(t, exitOK, got.code, got.err)
	rows := map[string]string{}
	column := regexp.MustCompile(`\s{2,}`)
	for _, line := range strings.Split(strings.TrimSpace(got.out), "\n")[1:] {
		cells := column.Split(strings.TrimSpace(line), -1)
		require.Len(t, cells, 3, line)
		require.NotContains(t, rows, cells[0], "a key is shown twice")
		rows[cells[0]] = cells[1] + " | " + cells[2]
	}
	return rows
}

func TestConfigShow(t *testing.T) {
	file := write(t, `broker:
  broker.id: 7
  log.retention.hours: 24
  num.io.threads: 9
  ssl.key.password: letmein
  listener.name.internal.ssl.key.password: letmein
storage: {mmap: {max_growth: 4MiB}}
election:
  zookeeper:
    connect: localhost
    user: me
    password: letmein
partitioner: large
partitioners:
  large:
    sticky: {batch_bytes: 1MiB}
compression:
  - lz4
  - gzip: {level: 3}
offsets:
  remote:
    command: /bin/store
    env: [TOKEN=letmein]
    config: {token: letmein}
gateway: {max_records: 5}
`)
	environ := []string{"BARNABAS_BROKER_LOG_DIRS=/env"}
	args := []string{"-c", file, "--set", "broker.num.partitions=3", "--set", "storage.mmap.min_growth=128KiB"}
	rows := shownConfig(t, environ, args...)
	for key, want := range map[string]string{
		"broker.broker.id":                               "7 | FILE:2",
		"broker.node.id":                                 "7 | FILE:2",
		"broker.log.dirs":                                "/env | environment BARNABAS_BROKER_LOG_DIRS",
		"broker.log.retention.hours":                     "24 | FILE:3",
		"broker.log.retention.ms":                        "none | default",
		"broker.num.partitions":                          "3 | --set",
		"broker.num.io.threads":                          "9 | FILE:4, no effect",
		"broker.ssl.key.password":                        "[hidden] | FILE:5, no effect",
		"broker.listener.name.internal.ssl.key.password": "[hidden] | FILE:6, no effect",
		"broker.log.segment.bytes":                       "1073741824 | default",
		"storage":                                        "mmap | FILE:7",
		"storage.mmap.max_growth":                        "4MiB | FILE:7",
		"storage.mmap.min_growth":                        "128KiB | --set",
		"storage.mmap.copy_below":                        "4KiB | default",
		"election":                                       "zookeeper | FILE:8",
		"election.zookeeper.user":                        "me | FILE:11",
		"election.zookeeper.password":                    "[hidden] | FILE:12",
		"partitioner":                                    "large | FILE:13",
		"partitioners.large":                             "sticky | FILE:15",
		"partitioners.large.sticky.batch_bytes":          "1MiB | FILE:16",
		"compression[0]":                                 "lz4 | FILE:18",
		"compression[1]":                                 "gzip | FILE:19",
		"compression[1].gzip.level":                      "3 | FILE:19",
		"offsets":                                        "remote | FILE:20",
		"offsets.remote.command":                         "/bin/store | FILE:22",
		"offsets.remote.args":                            "[] | default",
		"offsets.remote.env":                             "[hidden] | FILE:23",
		"offsets.remote.config":                          "[hidden] | FILE:24",
		"gateway.max_records":                            "5 | FILE:25",
		"gateway.max_body":                               "16MiB | default",
	} {
		assert.Equal(t, strings.ReplaceAll(want, "FILE", file), rows[key], key)
	}
	assert.NotContains(t, rows, "broker.num.network.threads", "it has no effect, and nobody set it")

	given := shownConfig(t, environ, append(args, "--given")...)
	for key, row := range rows {
		_, there := given[key]
		assert.Equal(t, !strings.HasSuffix(row, "| default"), there, key)
	}
	got := barnabas(t, environ, append([]string{"config", "show", "-o", "json"}, args...)...)
	var all []setting
	require.NoError(t, json.Unmarshal([]byte(got.out), &all))
	assert.Len(t, all, len(rows))
	assert.Contains(t, all, setting{Key: "broker.num.io.threads", Value: "9", From: file + ":4", NoEffect: true})
	assert.Contains(t, all, setting{Key: "broker.log.retention.ms", From: "default"})
	assert.NotContains(t, got.out+got.err, "letmein")
	assert.Contains(t, got.err, "warning: "+file+":4: broker.num.io.threads: has no effect")
}

// TestConfigShowIsComplete looks for each property that acts among those of a broker that nobody configured.
func TestConfigShowIsComplete(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := shownConfig(t, nil)
	for _, d := range kafka.BrokerDefinitions() {
		if d.NoEffect == "" && !d.Internal {
			assert.Contains(t, rows, "broker."+d.Name)
		}
	}
	for _, key := range []string{"storage", "election", "partitioner", "compression[0]", "offsets", "gateway", "admin"} {
		assert.Contains(t, rows, key)
	}
	for key, row := range rows {
		assert.True(t, strings.HasSuffix(row, "| default"), "%s: %s", key, row)
	}
	assert.Equal(t, "none | --set", shownConfig(t, nil, "--set", "compression=[]")["compression"])
}

func TestConfigShowFaults(t *testing.T) {
	file := write(t, "broker:\n  log.dris: /a\n")
	got := barnabas(t, nil, "config", "show", "-c", file)
	assert.Equal(t, exitWrong, got.code)
	assert.Empty(t, got.out)
	assert.Contains(t, got.err, file+`:2: broker.log.dris: unknown property (did you mean "log.dirs"?)`)
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "show", "-o", "xml").code)
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "show", file).code, "the file comes after -c")
}
