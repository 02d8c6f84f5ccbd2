package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/gateway"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Media types of the API.
const (
	v2       = "application/vnd.kafka.v2+json"
	v2json   = "application/vnd.kafka.json.v2+json"
	v2binary = "application/vnd.kafka.binary.v2+json"
	v3       = "application/json"
)

// bench is a broker, a gateway before it, and a client of each.
type bench struct {
	t       testing.TB
	broker  *brokertest.Broker
	gateway *gateway.Gateway
	base    string
	http    *http.Client
	admin   *kadm.Client
	check   *checker // holds what goes over the wire against the document
}

// byKey is a partitioner for tests: the first byte of the key is the partition, 0 without one.
type byKey struct {
	calls   int
	records int
	answer  func(records int) ([]int32, error) // in place of the usual one
}

func (*byKey) Start(context.Context) error { return nil }
func (*byKey) Stop(context.Context) error  { return nil }
func (*byKey) Keyed() bool                 { return true }
func (p *byKey) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	p.calls++
	p.records += len(b.Records)
	if p.answer != nil {
		got, err := p.answer(len(b.Records))
		return append(dst, got...), err
	}
	for _, r := range b.Records {
		n := int32(0)
		if len(r.Key) > 0 {
			n = int32(r.Key[len(r.Key)-1]) % b.Partitions
		}
		dst = append(dst, n)
	}
	return dst, nil
}

func start(t testing.TB, p partitioner.Partitioner, change ...func(*gateway.Options)) *bench {
	t.Helper()
	b := &bench{t: t, broker: testbroker.Start(t, brokertest.Property("group.initial.rebalance.delay.ms", "0")), http: &http.Client{Transport: &http.Transport{}}}
	options := gateway.DefaultOptions()
	options.Listen = "127.0.0.1:0"
	for _, f := range change {
		f(&options)
	}
	var err error
	b.gateway, err = gateway.New(options, gateway.Settings{
		Settings: plugin.Settings{Logger: slog.New(slog.DiscardHandler)}, Brokers: []string{b.broker.Addr()}, Partitioner: p,
	})
	require.NoError(t, err)
	require.NoError(t, b.gateway.Start(context.Background()))
	t.Cleanup(func() {
		b.http.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.NoError(t, b.gateway.Stop(ctx))
		assert.NoError(t, b.gateway.Stop(ctx), "stopping twice")
	})
	b.base = "http://" + b.gateway.Addr().String()
	b.check = newChecker(t, b.gateway)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.broker.Addr()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	b.admin = kadm.NewClient(client)
	return b
}

func (b *bench) topic(name string, partitions int32) {
	b.t.Helper()
	_, err := b.admin.CreateTopic(context.Background(), partitions, 1, nil, name)
	require.NoError(b.t, err)
}

// end is the sum of a topic's next offsets: how many records it was given.
func (b *bench) end(topic string) (n int64) {
	b.t.Helper()
	ends, err := b.admin.ListEndOffsets(context.Background(), topic)
	require.NoError(b.t, err)
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// records reads n records of a topic with a Kafka client.
func (b *bench) records(topic string, n int) []*kgo.Record {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.broker.Addr()), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(b.t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []*kgo.Record
	for len(all) < n {
		fetches := client.PollFetches(ctx)
		require.NoError(b.t, fetches.Err0())
		all = append(all, fetches.Records()...)
	}
	return all
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// is holds the answer's status and JSON against what is wanted.
func (a answer) is(t testing.TB, status int, want string) {
	t.Helper()
	assert.Equal(t, status, a.status, a.body)
	if want == "" {
		assert.Empty(t, a.body)
		return
	}
	assert.JSONEq(t, want, a.body)
}

// fails wants an error with a code.
func (a answer) fails(t testing.TB, code int) {
	t.Helper()
	var e gateway.Error
	require.NoError(t, json.Unmarshal([]byte(a.body), &e), "%d %q", a.status, a.body)
	assert.Equal(t, code, e.Code, a.body)
	assert.NotEmpty(t, e.Message)
	for code >= 1000 {
		code /= 10
	}
	assert.Equal(t, code, a.status)
}

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), v), a.body)
}

// do sends a request. media is the body's type, and, when the body is empty, the Accept header.
func (b *bench) do(method, path, media, body string) answer {
	b.t.Helper()
	return b.send(method, path, map[string]string{"Content-Type": media}, strings.NewReader(body))
}

func (b *bench) get(path string) answer {
	b.t.Helper()
	return b.send("GET", path, nil, nil)
}

func (b *bench) send(method, path string, header map[string]string, body io.Reader) answer {
	b.t.Helper()
	url := path
	if !strings.HasPrefix(path, "http://") {
		url = b.base + path
	}
	var sent bytes.Buffer
	if body != nil {
		body = io.TeeReader(body, &sent)
	}
	req, err := http.NewRequest(method, url, body)
	require.NoError(b.t, err)
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := b.http.Do(req)
	require.NoError(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	b.check.exchange(b.t, req, sent.Bytes(), resp, data)
	return answer{resp.StatusCode, resp.Header, string(data)}
}

func TestOptions(t *testing.T) {
	parse := func(text string) (gateway.Options, error) {
		section, err := config.Parse("x.yaml", []byte(text))
		require.NoError(t, err)
		o := gateway.DefaultOptions()
		return o, section.Decode(&o)
	}
	_, err := parse("{}")
	require.NoError(t, err)
	o, err := parse("{listen: '0.0.0.0:1', max_body: 1MiB, consumer_timeout: 10s}")
	require.NoError(t, err)
	assert.Equal(t, config.ByteSize(1<<20), o.MaxBody)
	for text, want := range map[string]string{
		"listen: here":            `x.yaml:1: listen: want HOST:PORT, not "here"`,
		"max_body: 3":             "max_body: must be between",
		"max_records: 0":          "max_records: must be between",
		"consumer_timeout: 1ns":   "consumer_timeout: must be between",
		"delivery_timeout: 500ms": "delivery_timeout: must be at least 1s",
		"port: 5":                 `unknown key "port"`,
	} {
		_, err := parse(text)
		assert.ErrorContains(t, err, want)
	}
	_, err = gateway.New(gateway.DefaultOptions(), gateway.Settings{})
	assert.Error(t, err)
}

func TestStopUnstarted(t *testing.T) {
	g, err := gateway.New(gateway.DefaultOptions(), gateway.Settings{Brokers: []string{"127.0.0.1:1"}, Partitioner: &byKey{}})
	require.NoError(t, err)
	assert.NoError(t, g.Stop(context.Background()))
	assert.Nil(t, g.Addr())
}

func TestPortTaken(t *testing.T) {
	b := start(t, &byKey{})
	o := gateway.DefaultOptions()
	o.Listen = b.gateway.Addr().String()
	g, err := gateway.New(o, gateway.Settings{Brokers: []string{b.broker.Addr()}, Partitioner: &byKey{}})
	require.NoError(t, err)
	assert.ErrorContains(t, g.Start(context.Background()), "address already in use")
	assert.NoError(t, g.Stop(context.Background()))
}

// lines gives a body of many records under the binary type.
func manyRecords(n int) string {
	var body strings.Builder
	body.WriteString(`{"records":[`)
	for i := range n {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"key":{"id":%d},"value":{"name":"record %d","padding":"%s"}}`, i, i, strings.Repeat("x", 60))
	}
	body.WriteString(`]}`)
	return body.String()
}
