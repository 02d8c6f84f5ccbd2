package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNegotiate(t *testing.T) {
	offered := mediaOf(2)
	for accept, want := range map[string]string{
		"":                                       mediaV2,
		"*/*":                                    mediaV2,
		"application/*":                          mediaV2,
		"application/json":                       mediaJSON,
		"text/html":                              "",
		"text/html, */*;q=0.1":                   mediaV2,
		"application/json;q=0":                   "",
		"application/json;q=2":                   "",
		"*/*, application/vnd.kafka.v2+json;q=0": mediaKafka,
		"application/vnd.kafka.v2+json;q=0.3, application/json;q=0.4": mediaJSON,
		";;, application/json": mediaJSON,
		"APPLICATION/JSON":     mediaJSON,
	} {
		assert.Equal(t, want, negotiate([]string{accept}, offered), accept)
	}
	assert.Equal(t, mediaJSON, negotiate([]string{"text/html", "application/json"}, offered))
}

func TestTextUnescapes(t *testing.T) {
	l := lexer{b: []byte(` "a\u00e9\n\ud83d\udc4d" `)}
	got, err := l.text()
	require.NoError(t, err)
	assert.Equal(t, "aé\n👍", string(got))
	require.NoError(t, l.end())
}

// FuzzLexer wants just what Go's decoder takes for JSON, and never a panic.
func FuzzLexer(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+7,"x\u12aF",true,false,null,{}]}`, `[`, `"\`, `01`, `-`, `1.`, `1e`, `{"a"}`, `[1,]`, ` `, `nul`, "\"\x00\"", `{"a":1,}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) || bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxDepth {
			return // checked apart, and a bound of our own
		}
		if got, want := validJSON(data), json.Valid(data); got != want {
			t.Fatalf("%q: %v, want %v", data, got, want)
		}
	})
}

// FuzzRecords feeds both readers of records.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"records":[{"key":"YQ==","value":"YQ==","partition":1},{"value":null}]}`), true)
	f.Add([]byte(`{"records":[{"key":1.0,"value":{"a":"\n"}}],"key_schema":null}`), false)
	f.Add([]byte(`{"partition_id":1,"headers":[{"name":"a","value":"YQ=="}],"key":{"type":"BINARY","data":"YQ=="},"value":{"type":"JSON","data":{}},"timestamp":"2021-02-05T19:14:42Z"}`), false)
	f.Fuzz(func(t *testing.T, data []byte, binary bool) {
		reader := recordReader{lexer: lexer{b: data}, json: !binary, partition: unassigned, most: 100}
		if records, err := reader.request(); err == nil {
			if len(records) == 0 || len(records) > 100 || !json.Valid(data) && utf8.Valid(data) {
				t.Fatalf("%q gave %d records", data, len(records))
			}
			for _, r := range records {
				if len(r.Key)+len(r.Value) > len(data) || r.Partition < unassigned {
					t.Fatalf("%q gave %v", data, r)
				}
			}
		}
		e := readRecordV3(data)
		if e.err == nil && (len(e.record.Value) > len(data) || e.record.Partition < unassigned) {
			t.Fatalf("%q gave %v", data, e.record)
		}
	})
}

// FuzzSplitter wants the same objects, however the bytes come in.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte(`{"a":"}\"{"}{}`), uint8(3))
	f.Add([]byte(`{[}]`), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		data = append([]byte("{"), data...)
		var whole, parts splitter
		want, complete := whole.feed(data)
		got := 0
		for rest := data; len(rest) > 0; {
			n, done := parts.feed(rest[:min(len(rest), int(step)+1)])
			got += n
			rest = rest[n:]
			if done {
				if !complete || got != want {
					t.Fatalf("%q: ends at %d, not %d", data, got, want)
				}
				return
			}
		}
		if complete {
			t.Fatalf("%q: doesn't end", data)
		}
	})
}

func TestDepthIsBounded(t *testing.T) {
	assert.True(t, validJSON([]byte(strings.Repeat("[", maxDepth)+strings.Repeat("]", maxDepth))))
	assert.False(t, validJSON([]byte(strings.Repeat("[", maxDepth+1)+strings.Repeat("]", maxDepth+1))))
}

// TestWhole knows a whole number in every form that JSON has for it.
func TestWhole(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-0.0": 0, "5.0": 5, "5e0": 5, "50E-1": 5, "-1.50e2": -150, "9223372036854775807": 1<<63 - 1, "9007199254740992.0": 1 << 53} {
		got, ok := whole(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"1.5", "1e-1", "9007199254740994.0", "1e300", "9223372036854775808", "1e999999999", "", "x", "NaN", "Inf"} {
		_, ok := whole(text)
		assert.False(t, ok, text)
	}
}
