package kafkatools

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// read reads all messages with the settings of the reader.
func read(t *testing.T, input string, settings ...string) ([]*kgo.Record, error) {
	t.Helper()
	args := []string{"--topic", "t"}
	for _, s := range settings {
		args = append(args, "--reader-property", s)
	}
	g, err := parse(producerTool().options, args)
	require.NoError(t, err)
	c := &call{World: World{In: strings.NewReader(input), Err: &bytes.Buffer{}}, given: g}
	r, err := c.lineReader()
	if err != nil {
		return nil, err
	}
	var all []*kgo.Record
	for {
		one, err := r.next()
		if err != nil || one == nil {
			return all, err
		}
		all = append(all, one)
	}
}

func TestLinesBecomeMessages(t *testing.T) {
	got, err := read(t, "one\n\ntwo\r\nthree\rfour")
	require.NoError(t, err)
	require.Len(t, got, 5)
	for i, want := range []string{"one", "", "two", "three", "four"} {
		assert.Equal(t, want, string(got[i].Value))
		assert.Nil(t, got[i].Key)
	}

	got, err = read(t, "h1:v1,h2:NIL\tkey\tvalue\nNIL\tNIL\tNIL\n", "parse.key=true", "parse.headers=TRUE", "null.marker=NIL")
	require.NoError(t, err)
	assert.Equal(t, []kgo.RecordHeader{{Key: "h1", Value: []byte("v1")}, {Key: "h2"}}, got[0].Headers)
	assert.Equal(t, "key", string(got[0].Key))
	assert.Equal(t, "value", string(got[0].Value))
	assert.Equal(t, &kgo.Record{}, got[1], "all of it null")

	got, err = read(t, "a::b::c", "parse.key=true", "key.separator=::")
	require.NoError(t, err)
	assert.Equal(t, "a", string(got[0].Key))
	assert.Equal(t, "b::c", string(got[0].Value))

	got, err = read(t, "h\tno key", "parse.key=true", "parse.headers=true", "key.separator=:", "ignore.error=true")
	require.NoError(t, err)
	assert.Equal(t, []kgo.RecordHeader{{Key: "h"}}, got[0].Headers)
	assert.Nil(t, got[0].Key)
	assert.Equal(t, "no key", string(got[0].Value))

	for want, settings := range map[string][]string{
		"No key separator found on line number 2: 'line'":       {"parse.key=true", "key.separator= "},
		"No headers delimiter found on line number 1: 'a line'": {"parse.headers=true"},
		"No header key separator found in pair 'a'":             {"parse.headers=true", "headers.delimiter= "},
		"headers.delimiter and headers.separator may not":       {"headers.delimiter=,"},
		"null.marker and key.separator may not be equal":        {"null.marker=x", "key.separator=x"},
		"key.separator may not be empty":                        {"key.separator="},
	} {
		_, err := read(t, "a line\nline\n", settings...)
		assert.ErrorContains(t, err, want)
	}
}
