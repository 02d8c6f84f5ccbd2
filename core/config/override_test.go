package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

func override(t *testing.T, s config.Section, value string, path ...string) config.Section {
	t.Helper()
	changed, err := s.Override("--set", path, value)
	require.NoError(t, err)
	return changed
}

func scalarAt(t *testing.T, s config.Section, path ...string) string {
	t.Helper()
	for _, key := range path {
		var ok bool
		s, ok = s.Sub(key)
		require.True(t, ok, key)
	}
	text, ok := s.Scalar()
	require.True(t, ok)
	return text
}

func TestOverrideInAListOfChoices(t *testing.T) {
	root := parse(t, "compression: [gzip, {zstd: {level: 3}}]\n")
	changed := override(t, override(t, override(t, root, "1", "compression", "gzip", "level"), "2", "compression", "zstd", "level"), "4", "compression", "lz4", "level")
	list, _ := changed.Sub("compression")
	elements, ok := list.List()
	require.True(t, ok)
	require.Len(t, elements, 3)
	assert.Equal(t, "1", scalarAt(t, elements[0], "gzip", "level"))
	assert.Equal(t, "2", scalarAt(t, elements[1], "zstd", "level"))
	assert.Equal(t, "4", scalarAt(t, elements[2], "lz4", "level"))
	list, _ = root.Sub("compression")
	elements, _ = list.List()
	assert.Len(t, elements, 2, "the original stays")
}

func TestOverride(t *testing.T) {
	root := parse(t, "broker:\n  log.dirs: /a\n  num.partitions: 3\nstorage: mmap\n")

	changed := override(t, root, "/b", "broker", "log.dirs")
	assert.Equal(t, "/b", scalarAt(t, changed, "broker", "log.dirs"))
	assert.Equal(t, "3", scalarAt(t, changed, "broker", "num.partitions"))
	assert.Equal(t, "/a", scalarAt(t, root, "broker", "log.dirs"), "the original stays")

	again := override(t, changed, "/c", "broker", "log.dirs")
	assert.Equal(t, "/c", scalarAt(t, again, "broker", "log.dirs"), "the last one wins")

	options := override(t, root, "1MiB", "storage", "mmap", "size")
	assert.Equal(t, "1MiB", scalarAt(t, options, "storage", "mmap", "size"), "options of a name alone")

	fresh := override(t, parse(t, ""), "sendfile", "storage")
	assert.Equal(t, "sendfile", scalarAt(t, fresh, "storage"))
	assert.Equal(t, "x", scalarAt(t, override(t, config.Section{}, "x", "a", "b", "c"), "a", "b", "c"))

	list := override(t, root, "[gzip, zstd]", "compression")
	sub, _ := list.Sub("compression")
	elements, ok := sub.List()
	require.True(t, ok)
	assert.Len(t, elements, 2)

	null := override(t, root, "", "broker", "log.dirs")
	sub, _ = null.Sub("broker")
	sub, ok = sub.Sub("log.dirs")
	assert.True(t, ok)
	assert.True(t, sub.IsZero())
}

func TestOverrideErrorsNameTheOrigin(t *testing.T) {
	root := parse(t, "name: x\ncount: 1\n")
	o := defaults()
	changed := override(t, root, "many", "count")
	assert.EqualError(t, changed.Decode(&o), `--set: count: want a whole number, not the text "many"`)
	changed = override(t, root, "1", "conut")
	assert.EqualError(t, changed.Decode(&o), `--set: unknown key "conut" (did you mean "count"?)`)
	changed = override(t, root, "[1]", "words")
	assert.EqualError(t, changed.Decode(&o), `--set: words[0]: want a text, not the number 1 (put it in quotes)`)
	changed = override(t, override(t, root, "1", "inner", "prot"), "5", "name")
	assert.EqualError(t, changed.Decode(&o), "--set: name: want a text, not the number 5 (put it in quotes)\n--set: inner: unknown key \"prot\" (did you mean \"port\"?)")
	assert.EqualError(t, changed.Only("name", "count"), `--set: unknown key "inner"`+" (valid: name, count)")

	for _, value := range []string{"[", "a\nb: c", "*x", "{a: 1, a: 2}"} {
		_, err := root.Override("--set", []string{"name"}, value)
		assert.ErrorContains(t, err, "--set: name: the value", value)
	}
	_, err := root.Override("--set", nil, "x")
	assert.ErrorContains(t, err, "no key given")
}
