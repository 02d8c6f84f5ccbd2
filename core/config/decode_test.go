package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

type inner struct {
	Port int16 `yaml:"port" doc:"where to listen"`
}

func (i inner) Validate() error {
	if i.Port < 0 {
		return config.At("port", errors.New("is negative"))
	}
	return nil
}

type options struct {
	Name   string          `yaml:"name" doc:"a name"`
	Size   config.ByteSize `yaml:"segment_size" doc:"a size"`
	Wait   time.Duration   `yaml:"wait" doc:"a time"`
	Sync   bool            `yaml:"sync" doc:"a switch"`
	Ratio  float64         `yaml:"ratio" doc:"a ratio"`
	Count  uint8           `yaml:"count" doc:"a count"`
	Words  []string        `yaml:"words" doc:"words"`
	Labels map[string]int  `yaml:"labels" doc:"labels"`
	Maybe  *int            `yaml:"maybe" doc:"perhaps"`
	Inner  inner           `yaml:"inner" doc:"inside"`
	Others []inner         `yaml:"others" doc:"more"`
	Raw    config.Section  `yaml:"raw" doc:"as it is"`
	Topics map[string]struct {
		Retention int64 `yaml:"retention.ms" doc:"kept"`
	} `yaml:"topics" doc:"per topic"`
	hidden int //nolint:unused // decoding must leave it alone
}

func defaults() options {
	return options{Name: "n", Size: 1 << 20, Wait: time.Second, Ratio: 0.5, Words: []string{"a"}, Inner: inner{Port: 9}}
}

func (o options) Validate() error {
	var errs []error
	if o.Count > 100 {
		errs = append(errs, config.At("count", errors.New("is above 100")))
	}
	if o.Sync && o.Ratio > 1 {
		errs = append(errs, errors.New("sync and ratio don't go together"))
	}
	return errors.Join(errs...)
}

func parse(t *testing.T, text string) config.Section {
	t.Helper()
	root, err := config.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	return root
}

func TestDecodeFillsOverDefaults(t *testing.T) {
	root := parse(t, `
name: "5"
segment_size: 64MiB
wait: 1m30s
sync: true
ratio: 1
count: 0x10
words: []
labels: {a.B: 1, "true": 2}
maybe: 3
inner:
others: [{port: 1}, {}]
raw: {Deep: [1, {x: y}]}
topics: {"Orders.EU": {retention.ms: 1000}, "orders.eu": {retention.ms: 2000}, _x: {}, 1: {}, true: {}, a-b: {retention.ms: 3}}
`)
	o := defaults()
	require.NoError(t, root.Decode(&o))
	assert.Equal(t, "5", o.Name)
	assert.Zero(t, o.hidden)
	assert.Equal(t, config.ByteSize(64<<20), o.Size)
	assert.Equal(t, 90*time.Second, o.Wait)
	assert.True(t, o.Sync)
	assert.Equal(t, 1.0, o.Ratio)
	assert.Equal(t, uint8(16), o.Count)
	assert.Empty(t, o.Words)
	assert.Equal(t, map[string]int{"a.B": 1, "true": 2}, o.Labels)
	assert.Equal(t, 3, *o.Maybe)
	assert.Equal(t, int16(9), o.Inner.Port, "an empty section keeps its defaults")
	assert.Equal(t, []inner{{Port: 1}, {}}, o.Others)
	assert.Equal(t, []string{"Deep"}, o.Raw.Keys())
	assert.Equal(t, "raw", o.Raw.Path())
	assert.Len(t, o.Topics, 6, "keys keep their case and their dots")
	assert.Equal(t, int64(1000), o.Topics["Orders.EU"].Retention)
	assert.Equal(t, int64(2000), o.Topics["orders.eu"].Retention)
	assert.Contains(t, o.Topics, "true")
	assert.Contains(t, o.Topics, "1")
}

func TestDecodeNothingKeepsDefaults(t *testing.T) {
	for _, s := range []config.Section{{}, config.Empty("storage.mmap"), parse(t, ""), parse(t, "# only a comment"), parse(t, "---\n...\n")} {
		o := defaults()
		require.NoError(t, s.Decode(&o))
		assert.Equal(t, defaults(), o)
	}
}

func TestDecodeFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown key", "segment_byte: 1", `x.yaml:1: unknown key "segment_byte" (did you mean "segment_size"?)`},
		{"far from every key", "zzzzzz: 1", `x.yaml:1: unknown key "zzzzzz"`},
		{"unknown and null", "foo:", `x.yaml:1: unknown key "foo"`},
		{"unknown and empty", "foo: {}", `x.yaml:1: unknown key "foo"`},
		{"other case", "Name: x", `x.yaml:1: unknown key "Name" (did you mean "name"?)`},
		{"unexported field", "hidden: 1", `x.yaml:1: unknown key "hidden"`},
		{"number for text", "name: 5", `x.yaml:1: name: want a text, not the number 5 (put it in quotes)`},
		{"null for text", "name:", `x.yaml:1: name: no value given: want a text (remove the key to keep the default)`},
		{"list for text", "name: [a]", `x.yaml:1: name: want a text, not a list`},
		{"text for number", `count: "5"`, `x.yaml:1: count: want a whole number, not the text "5"`},
		{"float for int", "count: 1.5", `x.yaml:1: count: want a whole number, not the number 1.5`},
		{"negative for unsigned", "count: -1", `x.yaml:1: count: want a whole number`},
		{"too large", "count: 256", `x.yaml:1: count: 256 is out of range for a 8-bit number`},
		{"text for bool", `sync: "true"`, `x.yaml:1: sync: want true or false, not the text "true"`},
		{"number for bool", "sync: 1", `x.yaml:1: sync: want true or false, not the number 1`},
		{"no duration", "wait: 5", `x.yaml:1: wait: want a duration such as "250ms", "6s" or "1h30m", not the number 5`},
		{"no size", "segment_size: many", `x.yaml:1: segment_size: want a size such as "64MiB" or a number of bytes, not "many"`},
		{"negative size", "segment_size: -1", `x.yaml:1: segment_size: want a size`},
		{"enormous size", "segment_size: 9999999999GiB", `x.yaml:1: segment_size: the size "9999999999GiB" does not fit into 63 bits`},
		{"not a number", "ratio: .nan", `x.yaml:1: ratio: want a number, not the number .nan`},
		{"scalar for list", "words: a", `x.yaml:1: words: want a list, not the text "a"`},
		{"wrong element", "words: [a, 1]", `x.yaml:1: words[1]: want a text, not the number 1`},
		{"scalar for struct", "inner: 5", `x.yaml:1: inner: want a mapping of keys to values, not the number 5`},
		{"list for map", "labels: [1]", `x.yaml:1: labels: want a mapping of keys to values, not a list`},
		{"inside", "inner:\n  prot: 5", `x.yaml:2: inner: unknown key "prot" (did you mean "port"?)`},
		{"inside a map", "topics:\n  a.b:\n    retention: 5", `x.yaml:3: topics.a.b: unknown key "retention"`},
		{"validate names the key's line", "name: x\ncount: 101", `x.yaml:2: count: is above 100`},
		{"validate of an inner struct", "inner:\n  port: -1", `x.yaml:2: inner.port: is negative`},
		{"validate of an element", "others:\n- port: 1\n- port: -1", `x.yaml:3: others[1].port: is negative`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := defaults()
			err := parse(t, tt.text).Decode(&o)
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
			assert.Len(t, err, 1)
		})
	}
}

func TestDecodeCollectsAllFaults(t *testing.T) {
	o := defaults()
	err := parse(t, "name: 1\nwait: x\nnope: 2\ninner: {port: 70000}\n").Decode(&o)
	var errs config.Errors
	require.ErrorAs(t, err, &errs)
	assert.Len(t, errs, 4)
	assert.Len(t, strings.Split(err.Error(), "\n"), 4)

	o = defaults()
	err = parse(t, "count: 101\nsync: true\nratio: 2").Decode(&o)
	require.ErrorAs(t, err, &errs)
	assert.Equal(t, "x.yaml:1: count: is above 100\nx.yaml:1: sync and ratio don't go together", err.Error())
}

func TestDecodeIntoTheWrongThing(t *testing.T) {
	var nilOptions *options
	for _, into := range []any{nil, 5, options{}, nilOptions, new(int)} {
		assert.ErrorContains(t, parse(t, "name: x").Decode(into), "want a pointer to a struct")
	}
	var odd struct {
		C chan int    `yaml:"c"`
		M map[int]int `yaml:"m"`
	}
	assert.Len(t, parse(t, "c: 1\nm: {1: 1}").Decode(&odd), 2)
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "name: x\nsegment_size: 1GiB", "a: &a [*a]", "inner: {port: 1}\nothers: [{port: 2}]", "topics: {a.b: {retention.ms: 1}}",
		"? [a]\n: b", "<<: {a: b}", "name: !!binary aGk=", "count: 0o17", "a: b\n---\nc: d", "labels: {1: 1, true: 2, null: 3}",
		strings.Repeat("[", 100), strings.Repeat("a:\n ", 70), "\xff\xfe", "name: !!int x", "wait: !!null 5",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := config.Parse("x.yaml", data)
		if err != nil {
			var errs config.Errors
			if !errors.As(err, &errs) || len(errs) == 0 || err.Error() == "" {
				t.Fatalf("Parse failed with %#v", err)
			}
			return
		}
		o := defaults()
		if err := root.Decode(&o); err != nil {
			var errs config.Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("Decode failed with %#v", err)
			}
			return
		}
		for _, key := range root.Keys() {
			if _, ok := root.Sub(key); !ok {
				t.Fatalf("key %q is listed and not found", key)
			}
		}
	})
}
