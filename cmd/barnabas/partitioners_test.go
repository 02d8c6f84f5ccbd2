package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

func TestComposePartitioners(t *testing.T) {
	parts := testParts(t)
	for _, tt := range []struct{ text, want, fault string }{
		{"", "murmur2, roundrobin, sticky (batch_bytes: 16KiB), crc32, fnv1a", ""},
		{"partitioner: crc32", "crc32, murmur2, roundrobin, sticky (batch_bytes: 16KiB), fnv1a", ""},
		{"partitioner: {sticky: {batch_bytes: 1MiB}}", "sticky (batch_bytes: 1MiB), murmur2, roundrobin, crc32, fnv1a", ""},
		{"partitioners: {large: {sticky: {batch_bytes: 1MiB}}, small: {sticky: {batch_bytes: 1KiB}}, java: murmur2}",
			"murmur2, large: sticky (batch_bytes: 1MiB), small: sticky (batch_bytes: 1KiB), java: murmur2, roundrobin, sticky (batch_bytes: 16KiB), crc32, fnv1a", ""},
		{"partitioner: small\npartitioners: {large: {sticky: {batch_bytes: 1MiB}}, small: {sticky: {batch_bytes: 1KiB}}}",
			"small: sticky (batch_bytes: 1KiB), large: sticky (batch_bytes: 1MiB), murmur2, roundrobin, sticky (batch_bytes: 16KiB), crc32, fnv1a", ""},
		{"partitioners: {sticky: {sticky: {batch_bytes: 1MiB}}}", "murmur2, sticky (batch_bytes: 1MiB), roundrobin, crc32, fnv1a", ""},

		{"partitioner: smal", "", `b.yaml:1: partitioner: unknown partitioner "smal"`},
		{"partitioners: sticky", "", "b.yaml:1: partitioners"},
		{"partitioners:\n  a: dice\n  b: {sticky: {batch_bytes: 0}}", "", "b.yaml:3: partitioners.b.sticky.batch_bytes"},
		{"partitioners:\n  a: dice", "", `b.yaml:2: partitioners.a: unknown partitioner "dice"`},
		{"partitioners:\n  a b: sticky", "", "b.yaml:2"},
		{"partitioners:\n  crc32: sticky", "", "crc32 is the name of an implementation"},
		{"partitioner: {sticky: {}}\npartitioners: {sticky: {sticky: {batch_bytes: 1MiB}}}", "", "name it alone"},
	} {
		root, err := config.Parse("b.yaml", []byte(tt.text))
		require.NoError(t, err)
		all, err := choosePartitioners(root, parts.partitioner)
		if tt.fault != "" {
			require.ErrorContains(t, err, tt.fault, tt.text)
			_, err = compose(root, parts)
			require.ErrorContains(t, err, tt.fault, tt.text)
			continue
		}
		require.NoError(t, err, tt.text)
		var got []string
		for _, n := range all {
			got = append(got, n.describe())
		}
		assert.Equal(t, tt.want, strings.Join(got, ", "), tt.text)
	}
}

// keyed are records with keys that the hashes put to different partitions of six.
const keyed = "a:1\nb:2\nc:3\nd:4\ne:5\nf:6\ng:7\nh:8\n"

// places produces the same records with some flags, and says where they went.
func places(t *testing.T, b, topic string, flags ...string) string {
	t.Helper()
	must(t, keyed, append([]string{"produce", "-t", topic, "-b", b, "-K", ":"}, flags...)...)
	lines := strings.Fields(must(t, "", "consume", "-t", topic, "-b", b, "--template", "{{.Key}}@{{.Partition}}"))
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// TestTopicsDeclareTheirPartitioner: produce puts keys where the topic says, or --partitioner; records elsewhere are refused.
func TestTopicsDeclareTheirPartitioner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	require.NoError(t, os.WriteFile(file, []byte("partitioners: {mine: crc32}\n"), 0o600))
	b := start(t, elsewhere(t, file))
	create := func(topic string, configs ...string) {
		args := []string{"topic", "create", topic, "-b", b, "-p", "6"}
		for _, c := range configs {
			args = append(args, "--config", c)
		}
		must(t, "", args...)
	}
	create("plain")
	create("crc", "barnabas.partitioner=crc32", "barnabas.partitioner.check=reject")
	create("mine", "barnabas.partitioner=mine")
	create("again")
	java, crc := places(t, b, "plain"), places(t, b, "crc")
	require.NotEqual(t, java, crc)
	require.Equal(t, crc, places(t, b, "again", "--partitioner", "crc32"))
	got := typed(t, keyed, "produce", "-t", "mine", "-b", b, "-K", ":")
	require.Equal(t, exitWrong, got.code, got.err)
	require.Contains(t, got.err, `topic mine declares its partitioner: unknown partitioner "mine"`)
	require.Equal(t, crc, places(t, b, "mine", "--config", file))
	got = typed(t, keyed, "produce", "-t", "crc", "-b", b, "-K", ":", "--partitioner", "murmur2")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "INVALID_RECORD")

	got = barnabas(t, nil, "topic", "create", "wrong", "-b", b, "--config", "barnabas.partitioner=crc")
	require.NotEqual(t, exitOK, got.code)
	require.Contains(t, got.err, "this broker has no partitioner crc; it has: murmur2, mine, roundrobin, sticky, crc32, fnv1a")
}

// TestTheGatewayGoesByTheTopic: topics that declare their partitioner take records through the gateway though they refuse those
// that are elsewhere; others are served by the configuration's.
func TestTheGatewayGoesByTheTopic(t *testing.T) {
	from := elsewhere(t, write(t, "partitioner: fnv1a\ngateway: {listen: \"127.0.0.1:0\"}\n"))
	a := newApp(nil, io.Discard, io.Discard, nil)
	a.parts = testParts(t)
	c, err := a.load(from)
	require.NoError(t, err)
	made, err := assemble(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, made.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, made.Stop(context.Background())) })
	b := addresses(made.Advertised())[0]
	must(t, "", "topic", "create", "crc", "-b", b, "-p", "6", "--config", "barnabas.partitioner=crc32", "--config", "barnabas.partitioner.check=reject")
	must(t, "", "topic", "create", "fnv", "-b", b, "-p", "6", "--config", "barnabas.partitioner=fnv1a", "--config", "barnabas.partitioner.check=reject")
	must(t, "", "topic", "create", "plain", "-b", b, "-p", "6")
	for _, topic := range []string{"crc", "fnv", "plain"} {
		var records []string
		for _, line := range strings.Fields(keyed) {
			key, _, _ := strings.Cut(line, ":")
			records = append(records, `{"key":"`+key+`","value":1}`)
		}
		body := `{"records":[` + strings.Join(records, ",") + `]}`
		resp, err := http.Post(made.(*fronted).front()+"/topics/"+topic, "application/vnd.kafka.json.v2+json", strings.NewReader(body))
		require.NoError(t, err)
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s", answer)
		require.NotContains(t, string(answer), `"error_code":5`, "%s", answer)
	}
	at := func(topic string) string {
		lines := strings.Fields(must(t, "", "consume", "-t", topic, "-b", b, "--template", "{{.Key}}@{{.Partition}}"))
		slices.Sort(lines)
		require.Len(t, lines, 8)
		return strings.Join(lines, " ")
	}
	require.NotEqual(t, at("crc"), at("fnv"))
	require.Equal(t, at("fnv"), at("plain"))
	http.DefaultClient.CloseIdleConnections()
}

// TestA26NamesAreKept: names in the file are what they are: neither case nor dots nor what YAML takes for a number or a boolean changes them.
func TestA26NamesAreKept(t *testing.T) {
	const text = "partitioners: {Orders.EU: {sticky: {batch_bytes: 1KiB}}, orders.eu: {sticky: {batch_bytes: 2KiB}}, _x: sticky, 1: sticky, true: sticky, a-b: sticky}\n"
	want := []string{"Orders.EU", "orders.eu", "_x", "1", "true", "a-b"}
	sizes := func(file string, args ...string) map[string]string {
		return shownConfig(t, nil, append([]string{"-c", file}, args...)...)
	}
	rows := sizes(write(t, text))
	for _, name := range want {
		assert.Contains(t, rows, "partitioners."+name)
	}
	assert.Contains(t, rows["partitioners.Orders.EU.sticky.batch_bytes"], "1KiB")
	assert.Contains(t, rows["partitioners.orders.eu.sticky.batch_bytes"], "2KiB")
	assert.NoError(t, fits(t, printedSchema(t), text))
	rows = sizes(write(t, text+"partitioner: Orders.EU\n"), "--set", "broker.num.partitions=3")
	assert.Contains(t, rows["partitioner"], "Orders.EU | ")
	root, err := config.Parse("b.yaml", []byte(text))
	require.NoError(t, err)
	c, err := compose(root, testParts(t))
	require.NoError(t, err)
	var names []string
	for _, p := range c.partitioners {
		names = append(names, p.name)
	}
	assert.Subset(t, names, want)
}
