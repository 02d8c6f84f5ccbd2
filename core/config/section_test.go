package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/viper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

func TestParseFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"syntax", "a: b\n c: d", "x.yaml:2: YAML: "},
		{"tab", "a:\n\tb: c", "x.yaml:2: YAML: "},
		{"a list", "- a", "x.yaml:1: want a mapping of keys to values, not a list"},
		{"a word", "hello", `x.yaml:1: want a mapping of keys to values, not the text "hello"`},
		{"double key", "a: 1\nb: 2\na: 3", "x.yaml:3: a: given twice, first on line 1"},
		{"double key below", "r:\n  a: 1\n  a: 3", "x.yaml:3: r.a: given twice, first on line 2"},
		{"double key in a list", "r: [{a: 1, a: 2}]", "x.yaml:1: r[0].a: given twice"},
		{"two documents", "a: 1\n---\nb: 2", "x.yaml:1: the file holds more than one YAML document"},
		{"anchor", "a: &x 1", "x.yaml:1: a: YAML anchors and aliases are not supported"},
		{"alias", "b: 1\na: &x {}\nc: *x", "x.yaml:2: a: YAML anchors and aliases are not supported"},
		{"merge", "a: {<<: {b: c}}", "x.yaml:1: a: YAML merge keys are not supported"},
		{"key is a list", "? [a]\n: b", "x.yaml:1: a key must be plain text"},
		{"key is null", "~: b", "x.yaml:1: a key must be plain text"},
		{"deep", "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "nested more than 64 levels deep"},
		{"invalid UTF-8", "a: \xff\xfe", "x.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("x.yaml", []byte(tt.text))
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
	_, err := config.Parse("x.yaml", make([]byte, config.MaxDocument+1))
	assert.ErrorContains(t, err, "the limit is")
}

// TestDoubleKeysLeaveTheRestReadable holds that a key given twice hides nothing: the first stands, and the rest can be looked at.
func TestDoubleKeysLeaveTheRestReadable(t *testing.T) {
	root, err := config.Parse("x.yaml", []byte("a: 1\nb: {c: 2, c: 3, d: 4}\na: 5\ne: 6"))
	require.ErrorContains(t, err, "b.c: given twice")
	require.ErrorContains(t, err, "a: given twice")
	assert.Equal(t, []string{"a", "b", "e"}, root.Keys())
	a, _ := root.Sub("a")
	text, _ := a.Scalar()
	assert.Equal(t, "1", text)
	b, _ := root.Sub("b")
	assert.Equal(t, []string{"c", "d"}, b.Keys())

	root, err = config.Parse("x.yaml", []byte("a: 1\na: 2\nb: &x 3"))
	require.ErrorContains(t, err, "given twice")
	require.ErrorContains(t, err, "anchors")
	assert.True(t, root.IsZero())
	root, err = config.Parse("x.yaml", []byte("- {a: 1, a: 2}"))
	require.ErrorContains(t, err, "given twice")
	require.ErrorContains(t, err, "want a mapping")
	assert.True(t, root.IsZero())
}

func TestSectionShapes(t *testing.T) {
	root := parse(t, "b.c: 1\na: [x, {y: z}]\nn:\nt: 'q'\n")
	assert.Equal(t, []string{"b.c", "a", "n", "t"}, root.Keys())
	assert.Equal(t, "x.yaml", root.File())

	sub, ok := root.Sub("b.c")
	require.True(t, ok)
	text, ok := sub.Scalar()
	assert.True(t, ok)
	assert.Equal(t, "1", text)

	list, _ := root.Sub("a")
	elements, ok := list.List()
	require.True(t, ok)
	require.Len(t, elements, 2)
	y, _ := elements[1].Sub("y")
	assert.Equal(t, "a[1].y", y.Path())
	assert.Equal(t, 2, y.Line())

	null, ok := root.Sub("n")
	assert.True(t, ok, "a key without a value is there")
	assert.True(t, null.IsZero())
	_, ok = null.Scalar()
	assert.False(t, ok)

	_, ok = root.Sub("absent")
	assert.False(t, ok)
	quoted, _ := root.Sub("t")
	text, _ = quoted.Scalar()
	assert.Equal(t, "q", text)
}

func TestOtherEditors(t *testing.T) {
	root := parse(t, "\ufeffa: 1\r\nb:\r\n  c: x\r\n")
	assert.Equal(t, []string{"a", "b"}, root.Keys())
	b, _ := root.Sub("b")
	c, ok := b.Sub("c")
	require.True(t, ok)
	text, _ := c.Scalar()
	assert.Equal(t, "x", text)
	assert.Equal(t, 3, c.Line())
}

func TestChoice(t *testing.T) {
	root := parse(t, "a: mmap\nb: {mmap: {x: 1}}\nc: {mmap: }\nd: {p: {}, q: {}}\ne:\nf: [x]\n")
	choice := func(key string) (string, config.Section, error) {
		s, ok := root.Sub(key)
		require.True(t, ok)
		return s.Choice()
	}
	name, options, err := choice("a")
	require.NoError(t, err)
	assert.Equal(t, "mmap", name)
	assert.Equal(t, "a.mmap", options.Path())
	assert.True(t, options.IsZero())
	assert.Equal(t, 1, options.Line())

	name, options, err = choice("b")
	require.NoError(t, err)
	assert.Equal(t, "mmap", name)
	assert.Equal(t, []string{"x"}, options.Keys())

	name, options, err = choice("c")
	require.NoError(t, err)
	assert.Equal(t, "mmap", name)
	assert.True(t, options.IsZero())

	for _, key := range []string{"d", "e", "f"} {
		_, _, err = choice(key)
		assert.ErrorContains(t, err, key+": want one name")
	}
}

func TestOnly(t *testing.T) {
	root := parse(t, "broker: {}\nstorge: mmap\n")
	assert.NoError(t, root.Only("broker", "storge"))
	assert.EqualError(t, root.Only("broker", "storage"), `x.yaml:2: unknown key "storge" (did you mean "storage"?)`)
	assert.EqualError(t, root.Only(), "x.yaml:1: unknown key \"broker\" (no key is valid here)\nx.yaml:2: unknown key \"storge\" (no key is valid here)")
}

func TestWrapKeepsWhatIsWrapped(t *testing.T) {
	sentinel := errors.New("boom")
	root := parse(t, "a:\n  b: 1\n")
	a, _ := root.Sub("a")
	err := a.Wrap(fmt.Errorf("open: %w", sentinel))
	assert.EqualError(t, err, "x.yaml:1: a: open: boom")
	assert.ErrorIs(t, err, sentinel)
	assert.Equal(t, err, root.Wrap(err), "a placed error keeps its place")
	assert.NoError(t, a.Wrap(nil))
	assert.EqualError(t, a.Wrap(config.At("b", sentinel)), "x.yaml:2: a.b: boom")
	assert.EqualError(t, a.Wrap(fmt.Errorf("both: %w and %w", sentinel, sentinel)), "x.yaml:1: a: both: boom and boom",
		"a collection with a text of its own stays whole")
	assert.NoError(t, config.At("b", nil))
}

func TestNearest(t *testing.T) {
	words := []string{"log.retention.ms", "log.retention.bytes", "log.dirs", "log.dir", "broker.id"}
	for word, want := range map[string]string{
		"log.retention_ms": "log.retention.ms", "LOG.DIRS": "log.dirs", "borker.id": "broker.id", "brokerid": "broker.id",
		"log.rentention.byte": "log.retention.bytes", "x": "", "": "", "something.else": "",
	} {
		assert.Equal(t, want, config.Nearest(word, words), word)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, "64MiB": 64 << 20, "1 GiB": 1 << 30, "2KB": 2000, "2kB": 2000, "7B": 7, "9223372036854775807": 1<<63 - 1} {
		var b config.ByteSize
		require.NoError(t, b.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, int64(b), text)
		var again config.ByteSize
		require.NoError(t, again.UnmarshalText([]byte(b.String())))
		assert.Equal(t, b, again)
	}
	for _, text := range []string{"", "MiB", "1.5MiB", "-1", "+1", "1XB", "1e3", "9223372036854775808"} {
		var b config.ByteSize
		assert.Error(t, b.UnmarshalText([]byte(text)), text)
	}
}

// TestWhyNotViper pins the reasons for which plug-in subtrees are read from the YAML nodes. When one of them no longer
// holds, the paragraph in the package comment that gives it should go too.
func TestWhyNotViper(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("topics: {Orders.EU: 1, orders.eu: 2}\nstorage: {mmap: {}}\nnothing:\n"), 0o600))
	v := viper.New()
	v.SetConfigFile(file)
	require.NoError(t, v.ReadInConfig())
	assert.Len(t, v.GetStringMap("topics"), 1, "two keys that differ in case fall together")
	assert.NotContains(t, v.AllSettings(), "storage", "an empty mapping disappears")
	assert.NotContains(t, v.AllSettings(), "nothing", "a key without a value disappears")
}
