package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTopicAlterAndOutput(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	assert.Equal(t, "[]\n", must(t, "", "topic", "list", "-b", b, "-o", "json"))
	must(t, "", "topic", "create", "t", "-p", "2", "-b", b)
	must(t, "", "topic", "create", "u", "-b", b)
	assert.Equal(t, "topic t would be changed\n", must(t, "", "topic", "alter", "t", "-b", b, "--set", "retention.ms=1000", "--validate"))
	described := func() (d describedTopic) {
		require.NoError(t, json.Unmarshal([]byte(must(t, "", "topic", "describe", "t", "-b", b, "-o", "json")), &d))
		return d
	}
	assert.Empty(t, described().Configs)
	assert.Equal(t, "topic t changed\ntopic u changed\n", must(t, "", "topic", "alter", "t", "u", "-b", b, "--set", "retention.ms=1000", "--append", "cleanup.policy=compact"))
	d := described()
	require.Len(t, d.Configs, 2)
	assert.Equal(t, "retention.ms", d.Configs[1].Name)
	assert.Equal(t, "1000", *d.Configs[1].Value)
	require.Len(t, d.Partitions, 2)
	assert.EqualValues(t, 1001, *d.Partitions[0].Leader)
	assert.EqualValues(t, 0, *d.Partitions[1].End)
	must(t, "", "topic", "alter", "t", "-b", b, "--unset", "retention.ms", "--subtract", "cleanup.policy=delete")
	d = described()
	require.Len(t, d.Configs, 1)
	assert.Equal(t, "compact", *d.Configs[0].Value)

	assert.Equal(t, "- topic: t\n  partitions: 2\n  replicas: 1\n  internal: false\n- topic: u\n  partitions: 1\n  replicas: 1\n  internal: false\n", must(t, "", "topic", "list", "-b", b, "-o", "yaml"))
	var cluster clusterView
	require.NoError(t, json.Unmarshal([]byte(must(t, "", "cluster", "describe", "-b", b, "-o", "json")), &cluster))
	assert.EqualValues(t, 1001, *cluster.Controller)
	assert.Equal(t, 3, cluster.Partitions)
	assert.Equal(t, 3, cluster.Brokers[0].Leads)

	for args, want := range map[string]string{
		"topic alter t":                     "nothing to change",
		"topic alter":                       "names of topics",
		"topic alter t --set retention.ms":  "--set: want NAME=VALUE",
		"topic alter t --unset a=b":         "--unset: want a NAME",
		"topic alter t --set a=1 --unset a": "each configuration once",
		"topic list -o xml":                 "--output",
		"broker config x":                   "want a broker's id",
		"broker config 1 2":                 "wants one broker",
		"broker config --all-configs":       "name the broker",
	} {
		got := typed(t, "", append(strings.Fields(args), "-b", b)...)
		assert.Equal(t, exitWrong, got.code, args)
		assert.Contains(t, got.err, want, args)
	}
	got := typed(t, "", "topic", "alter", "t", "nope", "-b", b, "--set", "retention.ms=5")
	assert.Equal(t, exitFailed, got.code)
	assert.Equal(t, "topic t changed\n", got.out)
	assert.Contains(t, got.err, "change topic nope: ")
}

func TestBrokerConfig(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	assert.Equal(t, "nothing was set for all brokers\n", must(t, "", "broker", "config", "-b", b))
	must(t, "", "broker", "config", "-b", b, "--set", "message.max.bytes=2000000")
	must(t, "", "broker", "config", "1001", "-b", b, "--set", "message.max.bytes=3000000")
	assert.Regexp(t, `message\.max\.bytes +2000000 +dynamic default broker config`, must(t, "", "broker", "config", "-b", b))
	assert.Regexp(t, `message\.max\.bytes +3000000 +dynamic broker config`, must(t, "", "broker", "config", "1001", "-b", b))
	must(t, "", "broker", "config", "1001", "-b", b, "--unset", "message.max.bytes")
	var view brokerConfigView
	require.NoError(t, json.Unmarshal([]byte(must(t, "", "broker", "config", "1001", "-b", b, "--all-configs", "-o", "json")), &view))
	assert.EqualValues(t, 1001, *view.Broker)
	assert.Greater(t, len(view.Configs), 100)
	got := typed(t, "", "broker", "config", "-b", b, "--set", "broker.id=7")
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "broker.id")
}

// TestCompletions holds that shells can be told about the command line.
func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		assert.Contains(t, must(t, "", "completion", shell), "barnabas", shell)
	}
}

// TestKafkasNames holds that Kafka's tools are there by their names: as commands, and as names of the program.
func TestKafkasNames(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	assert.Equal(t, "Created topic t.\n", must(t, "", "kafka-topics", "--create", "--topic", "t", "--bootstrap-server", b))
	var out, complaints strings.Builder
	code := runAs("/usr/local/bin/kafka-topics.sh", newApp(strings.NewReader(""), &out, &complaints, nil), []string{"--list", "--bootstrap-server", b})
	assert.Equal(t, exitOK, code, complaints.String())
	assert.Equal(t, "t\n", out.String())
	got := typed(t, "", "kafka-topics.sh", "--list")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "--bootstrap-server must be specified")
	assert.Contains(t, must(t, "", "--help"), "kafka-consumer-groups")
}
