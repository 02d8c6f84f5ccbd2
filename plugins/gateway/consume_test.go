package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/plugins/gateway"
)

type consumed struct {
	Topic     string
	Key       any
	Value     any
	Partition int32
	Offset    int64
}

// consumer creates an instance and gives its address.
func (b *bench) consumer(group, config string) string {
	b.t.Helper()
	got := b.do("POST", "/consumers/"+group, v2, config)
	require.Equal(b.t, 200, got.status, got.body)
	var out struct {
		ID  string `json:"instance_id"`
		URI string `json:"base_uri"`
	}
	got.into(b.t, &out)
	assert.Equal(b.t, b.base+"/consumers/"+group+"/instances/"+out.ID, out.URI)
	return out.URI
}

// poll asks until it has n records.
func (b *bench) poll(instance string, n int) (all []consumed) {
	b.t.Helper()
	for end := time.Now().Add(10 * time.Second); len(all) < n && time.Now().Before(end); {
		var some []consumed
		got := b.get(instance + "/records?timeout=2000")
		require.Equal(b.t, 200, got.status, got.body)
		got.into(b.t, &some)
		all = append(all, some...)
	}
	require.Len(b.t, all, n)
	return all
}

func (b *bench) produce(topic string, values ...string) {
	b.t.Helper()
	for i, v := range values {
		values[i] = `{"value":` + v + `}`
	}
	got := b.do("POST", "/topics/"+topic, v2json, `{"records":[`+strings.Join(values, ",")+`]}`)
	require.Equal(b.t, 200, got.status, got.body)
}

// TestConsumeAsDocumented goes through the quick start of REST Proxy's documentation.
func TestConsumeAsDocumented(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("test", 1)
	b.produce("test", `{"foo":"bar"}`, `{"n":1.0}`)
	require.Equal(t, 200, b.do("POST", "/consumers/numbers", v2, `{"fetch.min.bytes":1.0,"consumer.request.timeout.ms":1e3}`).status)
	at := b.consumer("testgroup", `{"name":"my_consumer","format":"json","auto.offset.reset":"earliest","auto.commit.enable":"false"}`)
	b.do("POST", "/consumers/testgroup", v2, `{"name":"my_consumer"}`).fails(t, 40902)
	b.do("POST", at+"/subscription", v2, `{"topics":["test"]}`).is(t, 204, "")
	b.do("POST", at+"/subscription", v2, `{"topics":["test"]}`).is(t, 204, "")
	b.get(at+"/subscription").is(t, 200, `{"topics":["test"]}`)
	b.send("GET", at+"/records", map[string]string{"Accept": v2binary}, nil).fails(t, 40601)
	got := b.send("GET", at+"/records?timeout=5000&max_bytes=300000", map[string]string{"Accept": v2json}, nil)
	got.is(t, 200, `[{"topic":"test","key":null,"value":{"foo":"bar"},"partition":0,"offset":0},{"topic":"test","key":null,"value":{"n":1.0},"partition":0,"offset":1}]`)
	assert.Contains(t, got.body, "1.0", "numbers keep their text")
	assert.Equal(t, v2json, got.header.Get("Content-Type"))
	b.get(at+"/assignments").is(t, 200, `{"partitions":[{"topic":"test","partition":0}]}`)
	offsets := func(want string) {
		t.Helper()
		b.send("GET", at+"/offsets", map[string]string{"Content-Type": v2}, strings.NewReader(`{"partitions":[{"topic":"test","partition":0}]}`)).is(t, 200, `{"offsets":[`+want+`]}`)
	}
	offsets("")
	b.do("POST", at+"/offsets", v2, "").is(t, 200, `[]`)
	offsets(`{"topic":"test","partition":0,"offset":2,"metadata":""}`)
	b.do("POST", at+"/offsets", v2, `{"offsets":[{"topic":"test","partition":0,"offset":1}]}`).is(t, 200, `[{"topic":"test","partition":0,"offset":1,"metadata":""}]`)
	offsets(`{"topic":"test","partition":0,"offset":1,"metadata":""}`)

	b.do("POST", at+"/positions/beginning", v2, `{"partitions":[{"topic":"test","partition":0}]}`).is(t, 204, "")
	assert.EqualValues(t, 0, b.poll(at, 2)[0].Offset)
	b.do("POST", at+"/positions", v2, `{"offsets":[{"topic":"test","partition":0,"offset":1}]}`).is(t, 204, "")
	assert.EqualValues(t, 1, b.poll(at, 1)[0].Offset)
	b.do("POST", at+"/positions/end", v2, `{"partitions":[{"topic":"test","partition":0}]}`).is(t, 204, "")
	b.produce("test", `3`)
	assert.EqualValues(t, 2, b.poll(at, 1)[0].Offset)
	b.do("POST", at+"/positions", v2, `{"offsets":[{"topic":"test","partition":7,"offset":1}]}`).fails(t, 40903)
	b.do("POST", at+"/positions/end", v2, `{"partitions":[{"topic":"other","partition":0}]}`).fails(t, 40903)
	b.do("POST", at+"/assignments", v2, `{"partitions":[{"topic":"test","partition":0}]}`).fails(t, 40903)

	b.send("DELETE", at+"/subscription", nil, nil).is(t, 204, "")
	b.get(at+"/subscription").is(t, 200, `{"topics":[]}`)
	b.get(at+"/records").fails(t, 40903)
	b.send("DELETE", at, map[string]string{"Content-Type": v2}, nil).is(t, 204, "")
	b.send("DELETE", at, nil, nil).fails(t, 40403)
	b.get(at+"/records").fails(t, 40403)
}

// TestLostInstance loses one to its timeout, creates it again, and goes on from what was committed.
func TestLostInstance(t *testing.T) {
	b := start(t, &byKey{}, func(o *gateway.Options) { o.ConsumerTimeout = 300 * time.Millisecond })
	b.topic("t", 1)
	b.produce("t", `1`, `2`, `3`)
	const config = `{"name":"i","format":"json","auto.offset.reset":"earliest","auto.commit.enable":false}`
	at := b.consumer("g", config)
	b.do("POST", at+"/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	first := b.poll(at, 3)
	b.do("POST", at+"/offsets", v2, `{"offsets":[{"topic":"t","partition":0,"offset":1}]}`)
	time.Sleep(600 * time.Millisecond)
	b.get(at+"/records").fails(t, 40403)
	at = b.consumer("g", config)
	b.do("POST", at+"/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	assert.Equal(t, first[1:], b.poll(at, 2))
}

// TestAutoCommit commits what was in an answer, when the instance is deleted.
func TestAutoCommit(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	b.produce("t", `"aaaaaaaaaa"`, `"bbbbbbbbbb"`, `"cccccccccc"`)
	at := b.consumer("g", `{"name":"i","format":"json","auto.offset.reset":"earliest"}`)
	b.do("POST", at+"/subscription", v2, `{"topic_pattern":"t.*"}`).is(t, 204, "")
	var some []consumed
	for len(some) == 0 { // one record only fits, the others have been fetched and count for nothing
		b.get(at+"/records?timeout=3000&max_bytes=5").into(t, &some)
	}
	require.Len(t, some, 1)
	b.send("DELETE", at, nil, nil).is(t, 204, "")
	at = b.consumer("g", `{"name":"i","format":"json"}`)
	b.do("POST", at+"/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	assert.Equal(t, "bbbbbbbbbb", b.poll(at, 2)[0].Value)
}

// TestTwoMembers share a topic's partitions, and the one that remains takes over.
func TestTwoMembers(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 4)
	const config = `{"name":"%s","format":"json","auto.offset.reset":"earliest"}`
	one, two := b.consumer("g", fmt.Sprintf(config, "one")), b.consumer("g", fmt.Sprintf(config, "two"))
	b.do("POST", one+"/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	b.do("POST", two+"/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	count := func(at string) int {
		var out struct{ Partitions []any }
		b.get(at+"/assignments").into(t, &out)
		return len(out.Partitions)
	}
	require.Eventually(t, func() bool { return count(one) == 2 && count(two) == 2 }, time.Minute, 50*time.Millisecond)
	b.send("DELETE", one, nil, nil).is(t, 204, "")
	require.Eventually(t, func() bool { return count(two) == 4 }, time.Minute, 50*time.Millisecond)
}

func TestAssign(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 2)
	b.produce("t", `1`, `2`)
	at := b.consumer("g", `{"format":"binary","auto.offset.reset":"earliest","auto.commit.enable":"false","fetch.min.bytes":"1","consumer.request.timeout.ms":"1000"}`)
	b.do("POST", at+"/assignments", v2, `{"partitions":[{"topic":"t","partition":2}]}`).fails(t, 40402)
	b.do("POST", at+"/assignments", v2, `{"partitions":[{"topic":"missing","partition":0}]}`).fails(t, 40401)
	b.do("POST", at+"/assignments", v2, `{"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1}]}`).is(t, 204, "")
	b.get(at+"/assignments").is(t, 200, `{"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1}]}`)
	records := b.poll(at, 2)
	assert.Equal(t, "MQ==", records[0].Value, "base64")
	b.do("POST", at+"/subscription", v2, `{"topics":["t"]}`).fails(t, 40903)
	b.do("POST", at+"/offsets", v2, ``).is(t, 200, `[]`)
	b.send("DELETE", at, nil, nil).is(t, 204, "")
	at = b.consumer("g", `{"auto.offset.reset":"earliest"}`)
	b.do("POST", at+"/assignments", v2, `{"partitions":[{"topic":"t","partition":0}]}`).is(t, 204, "")
	b.produce("t", `3`)
	assert.EqualValues(t, 2, b.poll(at, 1)[0].Offset, "it goes on from what was committed")
}

// TestNotJSON meets a record that an instance of the format JSON can't embed.
func TestNotJSON(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	b.produce("t", `1`)
	assert.Equal(t, 200, b.do("POST", "/topics/t", v2binary, `{"records":[{"value":"/wD+"}]}`).status)
	b.produce("t", `3`)
	at := b.consumer("g", `{"format":"json","auto.offset.reset":"earliest"}`)
	b.do("POST", at+"/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	assert.EqualValues(t, 0, b.poll(at, 1)[0].Offset)
	b.get(at+"/records").fails(t, 40601)
	b.get(at+"/records").fails(t, 40601)
	b.do("POST", at+"/positions", v2, `{"offsets":[{"topic":"t","partition":0,"offset":2}]}`).is(t, 204, "")
	assert.EqualValues(t, 2, b.poll(at, 1)[0].Offset)
}

func TestConsumerBadRequests(t *testing.T) {
	b := start(t, &byKey{}, func(o *gateway.Options) { o.MaxConsumers = 2 })
	b.topic("t", 1)
	for body, code := range map[string]int{
		`{"format":"avro"}`:                           422,
		`{"format":5}`:                                422,
		`{"auto.offset.reset":"sometimes"}`:           42204,
		`{"auto.commit.enable":"maybe"}`:              42204,
		`{"auto.commit.enable":[]}`:                   42204,
		`{"fetch.min.bytes":"x"}`:                     42204,
		`{"fetch.min.bytes":1e9}`:                     42204,
		`{"consumer.request.timeout.ms":-5}`:          42204,
		`{"nome":"x"}`:                                422,
		`{"Name":"x"}`:                                422,
		`{"name":"` + strings.Repeat("a", 250) + `"}`: 422,
		`{`:    400,
		`[]`:   422,
		`null`: 422,
	} {
		b.do("POST", "/consumers/g", v2, body).fails(t, code)
	}
	b.do("POST", "/consumers/g", "text/plain", `{}`).fails(t, 415)
	at := b.consumer("g", `{"name":"i"}`)
	odd := b.do("POST", "/consumers/%2F%F0%9F%A6%86", v2, `{"name":"a/b?c"}`)
	require.Equal(t, 200, odd.status, odd.body)
	var created struct {
		URI string `json:"base_uri"`
	}
	odd.into(t, &created)
	b.get(created.URI+"/subscription").is(t, 200, `{"topics":[]}`)
	b.do("POST", "/consumers/g", v2, `{}`).fails(t, 429)
	b.send("DELETE", created.URI, nil, nil).is(t, 204, "")
	for _, tt := range []struct {
		path, body string
		code       int
	}{
		{"/subscription", `{"topics":[]}`, 422},
		{"/subscription", `{}`, 422},
		{"/subscription", ``, 400},
		{"/subscription", `{"topics":"t"}`, 422},
		{"/subscription", `{"topics":["a/b"]}`, 422},
		{"/subscription", `{"topics":["t"],"topic_pattern":"t"}`, 40903},
		{"/subscription", `{"topic_pattern":"("}`, 422},
		{"/offsets", `{"offsets":[{"topic":"t","partition":0}]}`, 422},
		{"/offsets", `{"offsets":[{"topic":"t","partition":0,"offset":-5}]}`, 422},
		{"/offsets", `{"offsets":[{"topic":"t","partition":0,"offset":1.5}]}`, 422},
		{"/offsets", `{"offsets":[{"topic":"t","partition":5,"offset":1}]}`, 40402},
		{"/offsets", `{"offsets":[{"topic":"zzz","partition":0,"offset":1}]}`, 40401},
		{"/offsets", `{"offsets":{}}`, 422},
		{"/positions", `{"offsets":[{"topic":"t","partition":0,"offset":1}]}`, 40903},
		{"/assignments", `{"partitions":null}`, 422},
		{"/assignments", `{"partitions":[{"topic":"t","partition":-1}]}`, 422},
	} {
		b.do("POST", at+tt.path, v2, tt.body).fails(t, tt.code)
	}
	b.get(at+"/records").fails(t, 40903)
	b.get(at+"/records?timeout=soon").fails(t, 400)
	b.get(at+"/records?max_bytes=-7").fails(t, 400)
	b.get("/consumers/g/instances/nobody/records").fails(t, 40403)
	b.do("POST", "/consumers/g/instances/nobody/subscription", v2, `{"topics":["t"]}`).fails(t, 40403)
}
