package config_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

type schemed struct {
	Text   string          `yaml:"text" doc:"a word"`
	On     bool            `yaml:"on"`
	Count  int32           `yaml:"count"`
	Share  float64         `yaml:"share"`
	Wait   time.Duration   `yaml:"wait"`
	Size   config.ByteSize `yaml:"size"`
	Words  []string        `yaml:"words"`
	Named  map[string]int  `yaml:"named"`
	Rest   config.Section  `yaml:"rest"`
	Secret string          `yaml:"secret" secret:"true"`
	Inner  struct {
		Wait *time.Duration `yaml:"wait"`
	} `yaml:"inner"`
}

// TestSchemaAcceptsWhatDecodeAccepts asks both about the same values.
func TestSchemaAcceptsWhatDecodeAccepts(t *testing.T) {
	defaults := schemed{Text: "a: b", Count: 3, Wait: 90 * time.Second, Size: 64 << 20, Words: []string{"x"}, Secret: "letmein"}
	schema := compileSchema(t, config.SchemaOf(config.Fields(defaults)))
	for _, text := range []string{
		"", "text: word", "text: ''", "text: 5", "text: true", "text: [a]", "text:", "texts: a",
		"on: true", "on: yes", "on: 'true'", "on: 1", "count: 5", "count: -5", "count: 5.5", "count: '5'", "count: five", "count: 0x10",
		"share: 1", "share: 0.5", "share: 1e3", "share: '1'", "share: .inf",
		"wait: 6s", "wait: 1h30m", "wait: 1.5ms", "wait: .5s", "wait: -3s", "wait: 0", "wait: 6", "wait: 6 s", "wait: 6x", "wait: ''", "wait: 5us",
		"size: 64MiB", "size: 64 MiB", "size: 64", "size: 1kB", "size: 7B", "size: -1", "size: 1.5MiB", "size: 64mib", "size: '12'",
		"words: []", "words: [a, b]", "words: [a, 5]", "words: a", "named: {a: 1, b: 2}", "named: {a: x}", "named: [1]", "named: {}",
		"rest: {a: [1, {b: c}]}", "rest: 5", "inner: {wait: 3s}", "inner: {wait: 3}", "inner: {wiat: 3s}", "inner:", "inner: 5",
	} {
		root, err := config.Parse("x.yaml", []byte(text))
		require.NoError(t, err, text)
		into := defaults
		decoded := root.Decode(&into)
		doc, err := root.JSON()
		if err != nil { // .inf isn't JSON, nor anything that Decode takes
			assert.Error(t, decoded, text)
			continue
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		require.NoError(t, err)
		err = schema.Validate(instance)
		assert.Equal(t, decoded == nil, err == nil, "%q: %v, %v", text, decoded, err)
	}
}

func TestSchemaShowsMeaningsAndDefaults(t *testing.T) {
	text, err := json.Marshal(config.SchemaOf(config.Fields(schemed{Text: "a", Wait: time.Minute, Words: []string{"x"}, Secret: "letmein"})))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"text":{"default":"a","description":"a word","type":"string"}`)
	assert.Contains(t, string(text), `"default":["x"]`)
	assert.Contains(t, string(text), `"default":"1m0s"`)
	assert.NotContains(t, string(text), "letmein")
	assert.NotContains(t, string(text), "hidden")
}

func compileSchema(t *testing.T, s config.Schema) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	require.NoError(t, c.AddResource("schema.json", doc))
	compiled, err := c.Compile("schema.json")
	require.NoError(t, err)
	return compiled
}
