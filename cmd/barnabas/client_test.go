package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
)

// typed runs a command line with an input.
func typed(t *testing.T, input string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(newApp(strings.NewReader(input), &out, &err, nil), args)
	return result{code, out.String(), err.String()}
}

// must runs a command line that has to succeed, and gives what it printed.
func must(t *testing.T, input string, args ...string) string {
	t.Helper()
	got := typed(t, input, args...)
	require.Equal(t, exitOK, got.code, "%v: %s", args, got.err)
	return got.out
}

func TestTopicCommands(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	assert.Equal(t, "topic clicks created, with 3 partitions\n", must(t, "", "topic", "create", "clicks", "-p", "3", "-c", "retention.ms=1000", "-b", b))
	assert.Equal(t, "topic one created, with 1 partition\n", must(t, "", "topic", "create", "one", "-b", b))
	assert.Regexp(t, `(?m)^ clicks +3 +1\n one +1 +1$`, must(t, "", "topic", "list", "-b", b))
	described := must(t, "", "topic", "describe", "clicks", "-b", b)
	assert.Regexp(t, `(?m)^ partition +leader +epoch +replicas +in sync +start +end$`, described)
	assert.Regexp(t, `retention\.ms +1000 +dynamic topic config`, described)
	assert.NotContains(t, described, "segment.bytes")
	assert.Contains(t, must(t, "", "topic", "describe", "clicks", "-b", b, "--all-configs"), "segment.bytes")
	assert.Contains(t, must(t, "", "topic", "describe", "one", "-b", b), "--all-configs")

	got := typed(t, "", "topic", "create", "clicks", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "TOPIC_ALREADY_EXISTS")
	got = typed(t, "", "topic", "create", "x", "-c", "retention.mss=1", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "retention.mss")
	assert.Equal(t, exitWrong, typed(t, "", "topic", "create", "x", "-c", "retention.ms", "-b", b).code)
	got = typed(t, "", "topic", "describe", "nope", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "barnabas topic list")

	got = typed(t, "", "topic", "delete", "clicks", "nope", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Equal(t, "topic clicks deleted\n", got.out)
	assert.Contains(t, got.err, "delete topic nope: UNKNOWN_TOPIC_OR_PARTITION")
	assert.NotContains(t, must(t, "", "topic", "list", "-b", b), "clicks")
	assert.Equal(t, exitWrong, typed(t, "", "topic", "delete").code)
}

func TestProduceAndConsume(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	must(t, "", "topic", "create", "t", "-p", "3", "-b", b)
	for i, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		acks := []string{"all", "1", "0", "all", "1"}[i]
		must(t, codec+"\n", "produce", "-t", "t", "-b", b, "-z", codec, "--acks", acks, "-p", "1")
	}
	require.Eventually(t, func() bool {
		return must(t, "", "consume", "-t", "t", "-b", b) == "none\ngzip\nsnappy\nlz4\nzstd\n"
	}, time.Minute, 50*time.Millisecond, "without acknowledgements it may take a moment")

	// Kafka's own Java client puts these keys there: murmur2 of "a" and "b", modulo 3.
	must(t, "a:1\nb:2\r\na:", "produce", "-t", "t", "-b", b, "-K", ":", "-H", "h=v", "-H", "empty=")
	lines := strings.Split(strings.TrimSpace(must(t, "", "consume", "-t", "t", "-b", b, "-o", "json")), "\n")
	values := map[string]bool{}
	where := map[string]int32{}
	for _, line := range lines {
		var r jsonRecord
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		if r.Key == nil {
			continue
		}
		values[*r.Key+"="+*r.Value] = true
		if before, ok := where[*r.Key]; ok {
			assert.Equal(t, before, r.Partition)
		}
		where[*r.Key] = r.Partition
		require.Len(t, r.Headers, 2)
		assert.Equal(t, "v", *r.Headers[0].Value)
	}
	assert.Equal(t, map[string]bool{"a=1": true, "b=2\r": true, "a=": true}, values)

	assert.Equal(t, "4 zstd\n", must(t, "", "consume", "-t", "t", "-b", b, "-p", "1", "--from", "4", "-n", "1", "--template", "{{.Offset}} {{.Value}}"))
	assert.Equal(t, "gzip\nsnappy\n", must(t, "", "consume", "-t", "t", "-b", b, "-p", "1", "--from", "1", "-n", "2"))
	assert.Empty(t, must(t, "", "consume", "-t", "t", "-b", b, "--from", "end"))
	assert.Len(t, strings.Split(must(t, "", "consume", "-t", "t", "-b", b, "--from", "1h"), "\n"), 8+1)
	assert.Empty(t, must(t, "", "consume", "-t", "t", "-b", b, "--from", time.Now().Add(time.Hour).Format(time.RFC3339)))
	last := must(t, "", "consume", "-t", "t", "-b", b, "--from", "-1", "-p", "1")
	assert.Equal(t, 1, strings.Count(last, "\n"), last)

	file := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.WriteFile(file, []byte("x\n\xff\n"), 0o600))
	must(t, "", "topic", "create", "binary", "-b", b)
	must(t, "", "produce", "-t", "binary", "-b", b, "-f", file, "--partitioner", "roundrobin")
	assert.Contains(t, must(t, "", "consume", "-t", "binary", "-b", b, "-o", "json"), `"value":null,"value_base64":"/w=="`)
	must(t, "", "topic", "create", "spread", "-b", b, "-p", "2")
	must(t, "k:1\nk:2\n", "produce", "-t", "spread", "-b", b, "-K", ":", "-c", write(t, "partitioner: roundrobin\n"))
	assert.ElementsMatch(t, []string{"0", "1"}, strings.Fields(must(t, "", "consume", "-t", "spread", "-b", b, "--template", "{{.Partition}}")))
	must(t, "made\n", "produce", "-t", "by-itself", "-b", b, "--create")
	assert.Equal(t, "made\n", must(t, "", "consume", "-t", "by-itself", "-b", b))
}

func TestConsumeInAGroup(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	must(t, "", "topic", "create", "t", "-b", b)
	must(t, "1\n2\n3\n", "produce", "-t", "t", "-b", b)
	assert.Equal(t, "1\n2\n", must(t, "", "consume", "-t", "t", "-b", b, "-g", "g", "-n", "2"))
	assert.Equal(t, "3\n", must(t, "", "consume", "-t", "t", "-b", b, "-g", "g"))
	assert.Empty(t, must(t, "", "consume", "-t", "t", "-b", b, "-g", "g"), "all is committed")
	must(t, "4\n", "produce", "-t", "t", "-b", b)
	assert.Equal(t, "4\n", must(t, "", "consume", "-t", "t", "-b", b, "-g", "g"))
}

func TestClientCommandsRefuse(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	must(t, "", "topic", "create", "t", "-b", b)
	must(t, "", "topic", "create", "empty", "-b", b)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"produce", exitWrong, "--topic"},
		{"consume", exitWrong, "--topic"},
		{"produce -t t --acks 2", exitWrong, "--acks"},
		{"produce -t t -z lzma", exitWrong, "--codec"},
		{"produce -t t --partitioner murmur", exitWrong, `did you mean "murmur2"`},
		{"produce -t t -c /no/such.yaml", exitWrong, "/no/such.yaml"},
		{"produce -t t -p 7", exitWrong, "has 1 partition, counted from 0: there is no 7"},
		{"produce -t t -H x", exitWrong, "--header"},
		{"produce -t t -f /no/such/file", exitWrong, "--file"},
		{"produce -t t -K :", exitFailed, `line 1 has no ":"`},
		{"produce -t t --max-line 3", exitFailed, "--max-line"},
		{"produce -t nope", exitFailed, "barnabas topic create"},
		{"consume -t nope", exitFailed, "barnabas topic list"},
		{"consume -t t --from yesterday", exitWrong, "--from"},
		{"consume -t t -o xml", exitWrong, "--format"},
		{"consume -t t --template {{.Nope}}", exitWrong, "--template"},
		{"consume -t t -p 3", exitWrong, "no partition 3"},
		{"consume -t t --timeout 0s", exitWrong, "--timeout"},
		{"bench produce --acks 0 --in-flight 2", exitWrong, "leave it out"},
		{"bench produce --acks 1 --idempotent", exitWrong, "acks all"},
		{"bench produce --linger 1s", exitWrong, "only a client"},
		{"bench produce --rate -1", exitWrong, "rate"},
		{"bench produce -o xml", exitWrong, "--output"},
		{"bench produce -t t --topic-config a=b", exitWrong, "--topic-config"},
		{"bench end-to-end --codec lz4", exitWrong, "through a client"},
		{"bench end-to-end --record-size 7", exitWrong, "at least 8"},
		{"bench find-rate --max-p99 0s", exitWrong, "--max-p99"},
		{"bench connect -n 0", exitWrong, "at least 1"},
		{"bench catch-up --cold /no/such", exitWrong, "--cold"},
		{"bench produce -t nope", exitFailed, "nope"},
		{"bench consume -t empty -d 100ms --warm-up 0s", exitFailed, "it is empty"},
	} {
		got := typed(t, "some line\n", append(strings.Fields(test.args), "-b", b)...)
		assert.Equal(t, test.code, got.code, "%s: %s", test.args, got.err)
		assert.Contains(t, got.err, test.want, test.args)
	}
}

// TestNobodyThere holds that commands end soon, and say what to do, where no broker answers.
func TestNobodyThere(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := closed.Addr().String()
	require.NoError(t, closed.Close())
	for _, args := range []string{"topic list", "produce -t t", "consume -t t"} {
		begin := time.Now()
		got := typed(t, "", append(strings.Fields(args), "-b", nobody, "--timeout", "1s")...)
		assert.Equal(t, exitFailed, got.code)
		assert.Contains(t, got.err, "barnabas serve", args)
		got = typed(t, "", append(strings.Fields(args), "-b", silent.Addr().String(), "--timeout", "1s")...)
		assert.Equal(t, exitFailed, got.code)
		assert.Contains(t, got.err, "no answer from", args)
		assert.Less(t, time.Since(begin), time.Minute)
	}
}

func TestBench(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	// run runs a load for so long that there is something to measure, which on a machine with other things to do may take a while.
	run := func(enough func(out string) bool, args string) string {
		for d := 100 * time.Millisecond; ; d *= 3 {
			got := typed(t, "", append(append([]string{"bench"}, strings.Fields(args)...), "-d", d.String(), "--warm-up", "0s", "-b", b)...)
			if got.code == exitOK && enough(got.out) {
				return got.out
			}
			require.Less(t, d, 30*time.Second, "%s: %s", args, got.err)
		}
	}
	for _, args := range []string{"produce --partitions 2 -n 2 --codec lz4 --acks 1", "produce --acks 0", "produce --rate 5000 --idempotent --keys 9",
		"produce --client --codec zstd --linger 1ms", "consume --fill 1MiB", "consume --fill 1MiB --client", "latency -n 2 --in-flight 3",
		"end-to-end --rate 1000", "connect"} {
		var results []bench.Result
		run(func(out string) bool {
			results = nil
			require.NoError(t, json.Unmarshal([]byte(out), &results), out)
			return !slices.ContainsFunc(results, func(r bench.Result) bool {
				return r.Requests == 0 || r.Bytes == 0 && args != "connect" || r.Latency.P50 == 0
			})
		}, args+" --output json")
		require.NotEmpty(t, results)
		for _, r := range results {
			assert.Positive(t, r.Requests, args)
			assert.Equal(t, args != "connect", r.Bytes > 0, args)
			assert.Positive(t, r.Latency.P50, args)
			assert.GreaterOrEqual(t, r.Latency.P999, r.Latency.P50, args)
		}
	}
	chart := filepath.Join(t.TempDir(), "chart.svg")
	for _, args := range []string{"find-rate --record-size 100 --batch-size 1B --max-p99 30s", "catch-up --fill 1MiB --partitions 2 --cold " + t.TempDir()} {
		run(func(out string) bool { return strings.Contains(out, "p99.99") }, args+" --svg "+chart)
		text, err := os.ReadFile(chart)
		require.NoError(t, err)
		assert.Contains(t, string(text), "<polyline", args)
		require.NoError(t, os.Remove(chart))
	}
	assert.NotContains(t, must(t, "", "topic", "list", "-b", b), "barnabas-bench", "what was made for the run is deleted")
	run(func(out string) bool { return strings.Contains(out, "records/s") }, "produce")
}
