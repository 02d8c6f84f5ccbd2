package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/cluster"
)

func TestClusterCommandsWrongly(t *testing.T) {
	for args, want := range map[string]string{
		"cluster health --wait -1s":                             "no negative value",
		"cluster health -o xml":                                 "want table, json or yaml",
		"cluster describe more":                                 "wants 0 arguments",
		"topic add-partitions t":                                "either --add or --total",
		"topic add-partitions t --add 1 --total 2":              "either --add or --total",
		"topic add-partitions t --add -1":                       "either --add or --total",
		"topic add-partitions --add 1":                          "wants 1 arguments",
		"topic elect-leaders --unclean":                         "name the topics",
		"topic elect-leaders t:x":                               `want TOPIC:PARTITION with a number, not "t:x"`,
		"topic elect-leaders :1":                                "want TOPIC or TOPIC:PARTITION",
		"topic reassign":                                        "nothing to do",
		"topic reassign --list --watch":                         "go with nothing else",
		"topic reassign --cancel --throttle 1MiB":               "go with nothing else",
		"topic reassign --list t":                               "about all topics",
		"topic reassign --replicas 0=1":                         "goes with one topic",
		"topic reassign t --replicas 0=1 --brokers 1":           "goes with one topic",
		"topic reassign t --replicas 0:1":                       "want PARTITION=ID,ID",
		"topic reassign t --replicas 0=1,1":                     "want PARTITION=ID,ID",
		"topic reassign t --replicas -1=1":                      "want PARTITION=ID,ID",
		"topic reassign t --throttle fast":                      "want a size such as 50MiB",
		"topic reassign t -r -1":                                "want a positive number",
		"broker drain":                                          "wants 1 arguments",
		"broker drain two":                                      `want a broker's id, not "two"`,
		"broker drain 1 --pid 1 --no-wait":                      "no --no-wait",
		"broker drain 1 --pid 2147483647":                       "process 2147483647",
		"topic reassign t --timeout 0s --replicas 0=1":          "want a positive duration",
		"topic reassign --brokers x":                            "invalid argument",
		"topic elect-leaders t --bootstrap 127.0.0.1:9092:9092": "want HOST:PORT",
	} {
		got := barnabas(t, nil, strings.Fields(args)...)
		assert.Equal(t, exitWrong, got.code, args)
		assert.Contains(t, got.err, want, args)
	}
}

// TestClusterCommandsOnOneBroker has what one broker can show.
func TestClusterCommandsOnOneBroker(t *testing.T) {
	at := start(t, elsewhere(t, ""))
	on := func(args ...string) result { return barnabas(t, nil, append(args, "-b", at)...) }
	require.Equal(t, exitOK, on("topic", "create", "t", "-p", "2").code)

	got := on("cluster", "describe")
	require.Equal(t, exitOK, got.code, got.err)
	require.Regexp(t, `controller: broker \d+; 1 broker, 1 topic, 2 partitions`, got.out)
	require.Regexp(t, `\d+ +`+at+` +2 +2 +2 +0`, got.out)

	got = on("cluster", "health")
	require.Equal(t, exitOK, got.code, got.err)
	require.Contains(t, got.out, "healthy: 1 broker, 2 partitions")
	got = on("cluster", "health", "--brokers", "2", "--wait", "200ms")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "the cluster isn't healthy: broker missing (1)")
	require.Contains(t, got.out, "there are 1, and there should be 2")

	got = on("cluster", "health", "--brokers", "2", "-o", "json")
	require.Equal(t, exitFailed, got.code)
	require.JSONEq(t, `{"healthy": false, "brokers": 1, "partitions": 2, "findings": [
		{"finding": "broker missing", "detail": "there are 1, and there should be 2", "serious": true}]}`, got.out)
	require.Equal(t, "healthy: true\nbrokers: 1\npartitions: 2\nfindings: []\n", on("cluster", "health", "-o", "yaml").out)

	got = on("topic", "add-partitions", "t", "--add", "1")
	require.Equal(t, exitOK, got.code, got.err)
	got = on("topic", "add-partitions", "t", "--total", "5")
	require.Equal(t, exitOK, got.code, got.err)
	require.Equal(t, "topic t has 5 partitions\n", got.out)
	got = on("topic", "add-partitions", "t", "--total", "2")
	require.Equal(t, exitFailed, got.code)
	got = on("topic", "add-partitions", "none", "--add", "2")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "no such topic")

	got = on("topic", "elect-leaders", "t:0", "t")
	require.Equal(t, exitOK, got.code, got.err)
	require.Equal(t, "no election needed: 5 partitions\n", got.out)
	require.Equal(t, exitOK, on("topic", "elect-leaders").code)
	got = on("topic", "elect-leaders", "none")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "no such topic")

	got = on("topic", "reassign", "t")
	require.Equal(t, exitOK, got.code, got.err)
	require.Contains(t, got.out, "nothing to do")
	for args, want := range map[string]string{
		"none":                "no topic none",
		"t --brokers 77":      "no broker 77 is alive",
		"t -r 2":              "2 replicas want as many brokers, and there are 1",
		"t --replicas 9=1":    "topic t has no partition 9",
		"t --replicas 0=1,77": "reassign t-0",
	} {
		got = on(append([]string{"topic", "reassign"}, strings.Fields(args)...)...)
		require.Equal(t, exitFailed, got.code, args)
		require.Contains(t, got.err, want, args)
	}
	got = on("topic", "reassign", "--list")
	require.Equal(t, "no reassignment is going on\n", got.out, got.err)
	got = on("topic", "reassign", "--cancel")
	require.Equal(t, "0 reassignments cancelled\n", got.out, got.err)
	got = on("topic", "reassign", "--watch")
	require.Equal(t, "done: no reassignment is going on\n", got.out, got.err)

	got = on("broker", "drain", "77")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "no broker 77 is alive")
	id := strings.Fields(strings.Split(on("cluster", "describe").out, "\n")[3])[0]
	got = on("broker", "drain", id)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "nobody else can lead t-0")
	require.Contains(t, got.err, "5 partitions would have no leader without broker "+id)
}

func TestThrottled(t *testing.T) {
	leaders, followers := throttled([]cluster.Change{
		{Topic: "t", Number: 0, From: []int32{1, 2}, Replicas: []int32{3, 2}},
		{Topic: "t", Number: 4, From: []int32{1}, Replicas: []int32{1, 5, 6}},
		{Topic: "u", Number: 0, From: []int32{1, 2}, Replicas: []int32{2}},
	})
	require.Equal(t, map[string][]string{"t": {"0:1", "0:2", "4:1"}}, leaders)
	require.Equal(t, map[string][]string{"t": {"0:3", "4:5", "4:6"}}, followers)
}

func TestParsePartitions(t *testing.T) {
	got, err := parsePartitions([]string{"a:1", "a:2", "b", "b:1", "c:3", "c"})
	require.NoError(t, err)
	require.Equal(t, kadm.TopicsSet{"a": {1: {}, 2: {}}, "b": nil, "c": nil}, got)
}
