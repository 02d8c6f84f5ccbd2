package gateway_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/plugins/gateway"
)

func TestTopicsV2(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("test", 2)
	b.get("/topics").is(t, 200, `["test"]`)
	b.get("/topics/").is(t, 200, `["test"]`)
	one := func(n int) string {
		return fmt.Sprintf(`{"partition":%d,"leader":0,"replicas":[{"broker":0,"leader":true,"in_sync":true}]}`, n)
	}
	id := func(text string) string { // the broker's id is made up
		var brokers struct{ Brokers []int32 }
		b.get("/brokers").into(t, &brokers)
		require.Len(t, brokers.Brokers, 1)
		text = strings.ReplaceAll(text, `"leader":0`, fmt.Sprintf(`"leader":%d`, brokers.Brokers[0]))
		return strings.ReplaceAll(text, `"broker":0`, fmt.Sprintf(`"broker":%d`, brokers.Brokers[0]))
	}
	b.get("/topics/test/partitions").is(t, 200, id("["+one(0)+","+one(1)+"]"))
	b.get("/topics/test/partitions/1").is(t, 200, id(one(1)))
	b.get("/topics/test/partitions/1/offsets").is(t, 200, `{"beginning_offset":0,"end_offset":0}`)
	var topic struct {
		Name       string
		Configs    map[string]string
		Partitions []json.RawMessage
	}
	b.get("/topics/test").into(t, &topic)
	assert.Equal(t, "test", topic.Name)
	assert.Equal(t, "delete", topic.Configs["cleanup.policy"])
	assert.Len(t, topic.Partitions, 2)

	b.get("/topics/missing").fails(t, 40401)
	b.get("/topics/missing/partitions").fails(t, 40401)
	b.get("/topics/test/partitions/2").fails(t, 40402)
	b.get("/topics/test/partitions/x").fails(t, 40402)
	b.get("/topics/test/partitions/99999999999/offsets").fails(t, 40402)
	b.get("/topics/..").fails(t, 40401)
	b.get("/topics/a%2Fb").fails(t, 40401)
	b.get("/nothing").fails(t, 404)
	put := b.send("PUT", "/topics", nil, nil)
	put.fails(t, 405)
	assert.Equal(t, "GET", put.header.Get("Allow"))
	assert.Equal(t, "DELETE, GET, POST", b.send("PATCH", "/consumers/a%2Fb/instances/i/subscription", nil, nil).header.Get("Allow"))
	b.send("GET", "/topics", map[string]string{"Accept": "text/html"}, nil).fails(t, 406)
	got := b.send("GET", "/topics", map[string]string{"Accept": "application/vnd.kafka.v2+json; q=0.5, application/json; q=0.9, text/html"}, nil)
	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
}

// TestProduceAsDocumented sends the requests that REST Proxy's documentation shows.
func TestProduceAsDocumented(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("test", 3)
	got := b.send("POST", "/topics/test", map[string]string{
		"Content-Type": v2binary, "Accept": "application/vnd.kafka.v2+json, application/vnd.kafka+json, application/json",
	}, strings.NewReader(`{"records":[{"key":"a2V5","value":"Y29uZmx1ZW50"},{"value":"a2Fma2E=","partition":1},{"value":"bG9ncw=="}]}`))
	got.is(t, 200, `{"key_schema_id":null,"value_schema_id":null,"offsets":[
		{"partition":1,"offset":0,"error_code":null,"error":null},
		{"partition":1,"offset":1,"error_code":null,"error":null},
		{"partition":0,"offset":0,"error_code":null,"error":null}]}`)
	assert.Equal(t, v2, got.header.Get("Content-Type"))
	records := b.records("test", 3)
	values := map[string]string{}
	for _, r := range records {
		values[string(r.Value)] = string(r.Key)
	}
	assert.Equal(t, map[string]string{"confluent": "key", "kafka": "", "logs": ""}, values)

	b.do("POST", "/topics/test/partitions/2", v2json, `{"records":[{"key":"somekey","value":{"foo":"bar"}},{"value":53.5}]}`).is(t, 200,
		`{"key_schema_id":null,"value_schema_id":null,"offsets":[{"partition":2,"offset":0,"error_code":null,"error":null},{"partition":2,"offset":1,"error_code":null,"error":null}]}`)
}

// TestBytesStayAsTheyAre sends what other proxies have altered (kafka-rest issues 87 and 112).
func TestBytesStayAsTheyAre(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	value := `{"a":1.0,"b":12345678901234567890,  "c":"\u00e9<>","d":-0.0e+5}`
	assert.Equal(t, 200, b.do("POST", "/topics/t", v2binary, `{"records":[{"value":"`+base64.StdEncoding.EncodeToString([]byte{0xff, 0, 0xfe})+`"}]}`).status)
	assert.Equal(t, 200, b.do("POST", "/topics/t", v2json+"; charset=utf-8", `{"records":[{"key":1.50,"value":`+value+`},{"key":null,"value":null},{"value":""}]}`).status)
	records := b.records("t", 4)
	assert.Equal(t, []byte{0xff, 0, 0xfe}, records[0].Value)
	assert.Nil(t, records[0].Key)
	assert.Equal(t, value, string(records[1].Value))
	assert.Equal(t, "1.50", string(records[1].Key))
	assert.Nil(t, records[2].Value)
	assert.Nil(t, records[2].Key)
	assert.Equal(t, `""`, string(records[3].Value))
}

func TestProduceBadBodies(t *testing.T) {
	b := start(t, &byKey{}, func(o *gateway.Options) { o.MaxBody, o.MaxRecords = 2000, 5 })
	b.topic("t", 2)
	deep := strings.Repeat("[", 1500) + strings.Repeat("]", 1500)
	for _, tt := range []struct {
		name, media, body string
		code              int
	}{
		{"open brace", v2binary, `{`, 400},
		{"empty", v2binary, ``, 400},
		{"blank", v2binary, ` `, 400},
		{"list", v2binary, `[]`, 422},
		{"number", v2binary, `5`, 422},
		{"null records", v2binary, `{"records":null}`, 422},
		{"no records", v2binary, `{"records":[]}`, 422},
		{"records missing", v2binary, `{}`, 422},
		{"records not a list", v2binary, `{"records":{}}`, 422},
		{"record not an object", v2binary, `{"records":[1]}`, 422},
		{"no value", v2binary, `{"records":[{"key":"YQ=="}]}`, 422},
		{"unknown field", v2binary, `{"records":[{"value":"YQ==","valeu":1}]}`, 422},
		{"unknown field above", v2binary, `{"recs":[],"records":[{"value":"YQ=="}]}`, 422},
		{"key in capitals", v2binary, `{"Records":[{"value":"YQ=="}]}`, 422},
		{"schema", v2binary, `{"value_schema_id":1,"records":[{"value":"YQ=="}]}`, 422},
		{"second is not base64", v2binary, `{"records":[{"value":"YQ=="},{"value":"a?"}]}`, 422},
		{"base64 without padding", v2binary, `{"records":[{"value":"YQ"}]}`, 422},
		{"base64 of a URL", v2binary, `{"records":[{"value":"_-__"}]}`, 422},
		{"binary is a number", v2binary, `{"records":[{"value":5}]}`, 422},
		{"partition is a text", v2binary, `{"records":[{"value":"YQ==","partition":"1"}]}`, 422},
		{"partition is a fraction", v2binary, `{"records":[{"value":"YQ==","partition":1.5}]}`, 422},
		{"partition is huge", v2binary, `{"records":[{"value":"YQ==","partition":12345678901}]}`, 422},
		{"partition is negative", v2binary, `{"records":[{"value":"YQ==","partition":-1}]}`, 422},
		{"partition isn't there", v2binary, `{"records":[{"value":"YQ=="},{"value":"YQ==","partition":2}]}`, 40402},
		{"more behind", v2binary, `{"records":[{"value":"YQ=="}]}{}`, 400},
		{"comma", v2binary, `{"records":[{"value":"YQ=="},]}`, 400},
		{"not UTF-8", v2json, "{\"records\":[{\"value\":\"\xff\"}]}", 400},
		{"control character", v2json, "{\"records\":[{\"value\":\"\x01\"}]}", 400},
		{"bad escape", v2json, `{"records":[{"value":"\x"}]}`, 400},
		{"leading zero", v2json, `{"records":[{"value":01}]}`, 400},
		{"too deep", v2json, `{"records":[{"value":` + deep[:1400] + `}]}`, 400},
		{"too large", v2json, `{"records":[{"value":"` + strings.Repeat("a", 2000) + `"}]}`, 413},
		{"too many", v2json, `{"records":[{"value":1},{"value":1},{"value":1},{"value":1},{"value":1},{"value":1}]}`, 413},
		{"no type", "", `{"records":[{"value":"YQ=="}]}`, 415},
		{"plain JSON", v3, `{"records":[{"value":"YQ=="}]}`, 415},
		{"avro", "application/vnd.kafka.avro.v2+json", `{"records":[{"value":"YQ=="}]}`, 415},
		{"latin", v2binary + "; charset=latin1", `{"records":[{"value":"YQ=="}]}`, 415},
		{"garbage type", ";;;", `{"records":[{"value":"YQ=="}]}`, 415},
	} {
		t.Run(tt.name, func(t *testing.T) { b.do("POST", "/topics/t", tt.media, tt.body).fails(t, tt.code) })
	}
	b.send("POST", "/topics/t", map[string]string{"Content-Type": v2binary, "Content-Encoding": "gzip"}, strings.NewReader("x")).fails(t, 415)
	good := `{"records":[{"value":"YQ=="}]}`
	b.do("POST", "/topics/"+strings.Repeat("a", 250), v2binary, good).fails(t, 40401)
	b.do("POST", "/topics/a%00b", v2binary, good).fails(t, 40401)
	b.do("POST", "/topics/..%2F..%2Fetc", v2binary, good).fails(t, 40401)
	b.do("POST", "/topics/t/partitions/7", v2binary, good).fails(t, 40402)
	b.do("POST", "/topics/t/partitions/1", v2binary, `{"records":[{"value":"YQ==","partition":0}]}`).fails(t, 422)
	b.do("POST", "/topics/t/partitions/x", v2binary, good).fails(t, 40402)
	// A body without a length, beyond the limit.
	b.send("POST", "/topics/t", map[string]string{"Content-Type": v2json}, struct{ io.Reader }{strings.NewReader(strings.Repeat(" ", 5000))}).fails(t, 413)
	assert.Zero(t, b.end("t"), "nothing is appended")
}

// TestTopicCreatedAgain deletes a topic that was produced to and creates it again, with fewer partitions: by the gateway, which
// knows at once, and beside it.
func TestTopicCreatedAgain(t *testing.T) {
	b := start(t, &byKey{})
	const two = `{"records":[{"key":"AA==","value":"YQ=="},{"key":"AQ==","value":"YQ=="}]}`
	good := func(partitions string) string {
		return `{"key_schema_id":null,"value_schema_id":null,"offsets":[{"partition":0,"offset":0,"error_code":null,"error":null},` + partitions + `,"error_code":null,"error":null}]}`
	}
	b.topic("t", 2)
	b.do("POST", "/topics/t", v2binary, two).is(t, 200, good(`{"partition":1,"offset":0`))
	require.Equal(t, 204, b.send("DELETE", b.cluster()+"/topics/t", nil, nil).status)
	b.topic("t", 1)
	b.do("POST", "/topics/t", v2binary, two).is(t, 200, good(`{"partition":0,"offset":1`))

	_, err := b.admin.DeleteTopic(t.Context(), "t")
	require.NoError(t, err)
	b.topic("t", 1)
	var last answer
	require.Eventually(t, func() bool {
		last = b.do("POST", "/topics/t", v2binary, two)
		return !strings.Contains(last.body, "50003")
	}, time.Minute, 10*time.Millisecond)
	last.is(t, 200, good(`{"partition":0,"offset":1`))
}

func TestUnknownTopicIsCreatedAsConfigured(t *testing.T) {
	b := start(t, &byKey{})
	assert.Equal(t, 200, b.do("POST", "/topics/fresh", v2json, `{"records":[{"value":1}]}`).status)
	assert.EqualValues(t, 1, b.end("fresh"))
}

// TestSlowBody trickles: the answer is 408, and nothing is appended.
func TestSlowBody(t *testing.T) {
	b := start(t, &byKey{}, func(o *gateway.Options) { o.BodyTimeout = 100 * time.Millisecond })
	b.topic("t", 1)
	conn, err := net.Dial("tcp", b.gateway.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n{\"records\":[{\"value\":1}", v2json)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	assert.Equal(t, 408, resp.StatusCode)
	// A client that is gone halfway leaves nothing either.
	half, err := net.Dial("tcp", b.gateway.Addr().String())
	require.NoError(t, err)
	_, _ = fmt.Fprintf(half, "POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 26\r\n\r\n{\"records\":[{\"value\":1}]", v2json)
	require.NoError(t, half.Close())
	assert.Equal(t, 200, b.do("POST", "/topics/t", v2json, `{"records":[{"value":2}]}`).status)
	assert.EqualValues(t, 1, b.end("t"))
}

// TestPartitionerIsAskedOnce counts its calls, and sees what becomes of its failures.
func TestPartitionerIsAskedOnce(t *testing.T) {
	p := &byKey{}
	b := start(t, p)
	b.topic("t", 4)
	body := manyRecords(1000)
	assert.Equal(t, 200, b.do("POST", "/topics/t", v2json, body).status)
	assert.Equal(t, 1, p.calls)
	assert.Equal(t, 1000, p.records)
	b.do("POST", "/topics/t", v2json, `{"records":[{"value":1,"partition":3},{"value":2},{"value":3,"partition":0}]}`)
	assert.Equal(t, 1001, p.records, "records with a partition aren't asked for")
	assert.EqualValues(t, 1003, b.end("t"))

	p.answer = func(int) ([]int32, error) { return nil, fmt.Errorf("geo: %w", partitioner.ErrUnavailable) }
	b.do("POST", "/topics/t", v2json, `{"records":[{"value":1}]}`).fails(t, 50003)
	p.answer = func(n int) ([]int32, error) { return make([]int32, n), partitioner.ErrInvalid }
	b.do("POST", "/topics/t", v2json, `{"records":[{"value":1}]}`).fails(t, 50002)
	p.answer = func(n int) ([]int32, error) { a := make([]int32, n); a[n-1] = 4; return a, nil }
	b.do("POST", "/topics/t", v2json, `{"records":[{"value":1},{"value":2}]}`).fails(t, 50002)
	p.answer = func(n int) ([]int32, error) { return make([]int32, n-1), nil }
	b.do("POST", "/topics/t", v2json, `{"records":[{"value":1},{"value":2}]}`).fails(t, 50002)
	assert.EqualValues(t, 1003, b.end("t"), "none is sent when one can't be routed")
}

func TestTooLargeRecordIsRefusedAlone(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	huge := strings.Repeat("a", 2<<20)
	got := b.do("POST", "/topics/t", v2json, `{"records":[{"value":1},{"value":"`+huge+`"},{"value":3}]}`)
	assert.Equal(t, 200, got.status)
	var out struct {
		Offsets []struct {
			Offset *int64
			Code   *int `json:"error_code"`
			Error  *string
		}
	}
	got.into(t, &out)
	require.Len(t, out.Offsets, 3)
	assert.EqualValues(t, 0, *out.Offsets[0].Offset)
	assert.Nil(t, out.Offsets[1].Offset)
	assert.Equal(t, 50002, *out.Offsets[1].Code)
	assert.Contains(t, *out.Offsets[1].Error, "MESSAGE_TOO_LARGE")
	assert.EqualValues(t, 1, *out.Offsets[2].Offset)
}

// cluster is the address of the cluster in version 3.
func (b *bench) cluster() string {
	b.t.Helper()
	var list struct {
		Data []struct {
			ID string `json:"cluster_id"`
		}
	}
	b.get("/v3/clusters").into(b.t, &list)
	require.Len(b.t, list.Data, 1)
	return "/v3/clusters/" + list.Data[0].ID
}

type report struct {
	Code      int    `json:"error_code"`
	Message   string `json:"message"`
	Partition int32  `json:"partition_id"`
	Offset    int64
	Timestamp time.Time
	Key       *struct {
		Type string
		Size int
	}
	Value *struct {
		Type string
		Size int
	}
}

func (a answer) reports(t *testing.T) (all []report) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(a.body)); d.More(); {
		var r report
		require.NoError(t, d.Decode(&r))
		all = append(all, r)
	}
	return all
}

func TestProduceV3(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 3)
	path := b.cluster() + "/topics/t/records"
	got := b.do("POST", path, v3, `{"partition_id":1,"headers":[{"name":"h","value":"dmFsdWU="},{"name":"n","value":null}],"key":{"type":"BINARY","data":"a2V5"},"value":{"type":"JSON","data":{"a":1.0}},"timestamp":"2021-02-05T19:14:42Z"}`)
	assert.Equal(t, 200, got.status, got.body)
	reports := got.reports(t)
	require.Len(t, reports, 1)
	assert.Equal(t, 200, reports[0].Code)
	assert.EqualValues(t, 1, reports[0].Partition)
	assert.Equal(t, "2021-02-05T19:14:42Z", reports[0].Timestamp.Format(time.RFC3339))
	assert.Equal(t, "BINARY", reports[0].Key.Type)
	assert.Equal(t, 3, reports[0].Key.Size)
	assert.Equal(t, 9, reports[0].Value.Size)
	r := b.records("t", 1)[0]
	assert.Equal(t, "key", string(r.Key))
	assert.Equal(t, `{"a":1.0}`, string(r.Value))
	assert.Equal(t, "value", string(r.Headers[0].Value))
	assert.Nil(t, r.Headers[1].Value)

	// Many at once: what is wrong with one spoils no other.
	got = b.do("POST", path, v3, `{"value":{"type":"STRING","data":"a\n"}}{"value":{"type":"BINARY","data":"?"}} {"partition_id":9}
		{"value":{"type":"AVRO","data":1}} {} {"x":1}{"value":{"type":"JSON"}}`)
	assert.Equal(t, 200, got.status)
	var codes []int
	for _, r := range got.reports(t) {
		codes = append(codes, r.Code)
	}
	assert.Equal(t, []int{200, 422, 40402, 422, 200, 422, 200}, codes, got.body)
	assert.EqualValues(t, 4, b.end("t"))

	// What stops being JSON ends the stream.
	got = b.do("POST", path, v3, `{} {"value"`)
	assert.Equal(t, []int{200, 400}, []int{got.reports(t)[0].Code, got.reports(t)[1].Code}, got.body)
	got = b.do("POST", path, v3, `{} , {}`)
	assert.Equal(t, 400, got.reports(t)[1].Code, got.body)
	assert.EqualValues(t, 6, b.end("t"))
}

func TestProduceV3BadBodies(t *testing.T) {
	b := start(t, &byKey{}, func(o *gateway.Options) { o.MaxBody = 2000 })
	b.topic("t", 2)
	cluster := b.cluster()
	for _, tt := range []struct {
		name, body string
		code       int
	}{
		{"empty", ``, 400}, {"blank", "\n ", 400}, {"list", `[{}]`, 400}, {"null", `null`, 400}, {"open", `{`, 400}, {"wrong bracket", `{]`, 400},
		{"text", `{"value":"a"}`, 422}, {"no type", `{"value":{"data":"a"}}`, 422}, {"type unknown", `{"value":{"type":"XML","data":"a"}}`, 422},
		{"avro", `{"value":{"type":"AVRO","data":1}}`, 422}, {"base64", `{"key":{"type":"BINARY","data":"a"}}`, 422}, {"string", `{"key":{"type":"STRING","data":1}}`, 422},
		{"header", `{"headers":[{"value":"YQ=="}]}`, 422}, {"header value", `{"headers":[{"name":"a","value":"="}]}`, 422}, {"headers", `{"headers":{}}`, 422},
		{"time", `{"timestamp":"yesterday"}`, 422}, {"time before 1970", `{"timestamp":"1969-12-31T23:59:59Z"}`, 422}, {"time number", `{"timestamp":5}`, 422},
		{"partition", `{"partition_id":2}`, 40402}, {"partition text", `{"partition_id":"0"}`, 422}, {"partition negative", `{"partition_id":-1}`, 422},
		{"unknown field", `{"vaule":{}}`, 422}, {"utf8", "{\"a\xff\":1}", 400}, {"too large", `{"value":{"type":"STRING","data":"` + strings.Repeat("x", 3000) + `"}}`, 413},
	} {
		t.Run(tt.name, func(t *testing.T) { b.do("POST", cluster+"/topics/t/records", v3, tt.body).fails(t, tt.code) })
	}
	b.do("POST", "/v3/clusters/other/topics/t/records", v3, `{}`).fails(t, 404)
	b.do("POST", cluster+"/topics/a%2Fb/records", v3, `{}`).fails(t, 40403)
	b.do("POST", cluster+"/topics/t/records", v2binary, `{}`).fails(t, 415)
	assert.Zero(t, b.end("t"))
}

// TestStream sends a record, waits for its report, and sends the next over the same request.
func TestStream(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	body, input := io.Pipe()
	req, err := http.NewRequest("POST", b.base+b.cluster()+"/topics/t/records", body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", v3)
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { _, _ = io.WriteString(input, `{"value":{"type":"JSON","data":0}}`) })
	resp, err := b.http.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	reports := json.NewDecoder(resp.Body)
	for n := range 20 {
		var r report
		require.NoError(t, reports.Decode(&r))
		assert.Equal(t, 200, r.Code, r.Message)
		assert.EqualValues(t, n, r.Offset)
		_, err = fmt.Fprintf(input, `{"value":{"type":"JSON","data":%d}}`, n)
		require.NoError(t, err)
	}
	require.NoError(t, input.Close())
	var last report
	require.NoError(t, reports.Decode(&last))
	assert.Equal(t, io.EOF, reports.Decode(&last))
}

// TestStreamOfMany has more records than a chunk, and reports in order.
func TestStreamOfMany(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	const n = 5000
	got := b.do("POST", b.cluster()+"/topics/t/records", v3, strings.Repeat(`{"value":{"type":"JSON","data":{"a":1}}}`+"\n", n))
	reports := got.reports(t)
	require.Len(t, reports, n)
	for i, r := range reports {
		require.EqualValues(t, i, r.Offset)
	}
}

// TestStopEndsWhatWaits stops the gateway while a stream and a long poll are under way.
func TestStopEndsWhatWaits(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	b.topic("s", 1)
	b.consumer("g", `{"name":"i"}`)
	b.do("POST", "/consumers/g/instances/i/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	cluster := b.cluster()
	body, input := io.Pipe()
	var wait sync.WaitGroup
	wait.Go(func() {
		got := b.send("POST", cluster+"/topics/s/records", map[string]string{"Content-Type": v3}, body)
		assert.Equal(t, 200, got.status)
	})
	wait.Go(func() { b.get("/consumers/g/instances/i/records?timeout=60000").is(t, 200, `[]`) })
	_, err := io.WriteString(input, `{}`)
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begin := time.Now()
	assert.NoError(t, b.gateway.Stop(ctx))
	assert.Less(t, time.Since(begin), 30*time.Second)
	_ = input.Close()
	wait.Wait()
}

// TestBrokerAway is retriable, told in time, and over when the broker is back.
func TestBrokerAway(t *testing.T) {
	b := start(t, &byKey{}, func(o *gateway.Options) { o.DeliveryTimeout, o.RequestTimeout = time.Second, time.Second })
	b.topic("t", 1)
	b.produce("t", `1`)
	b.broker.Stop()
	begin := time.Now()
	got := b.do("POST", "/topics/t", v2json, `{"records":[{"value":2}]}`)
	assert.Less(t, time.Since(begin), 10*time.Second)
	assert.Contains(t, got.body, `"error_code":50003`)
	b.get("/topics").fails(t, 50003)
	b.broker.Restart()
	require.Eventually(t, func() bool {
		got := b.do("POST", "/topics/t", v2json, `{"records":[{"value":3}]}`)
		return got.status == 200 && strings.Contains(got.body, `"offset":1,`)
	}, time.Minute, 50*time.Millisecond)
}
