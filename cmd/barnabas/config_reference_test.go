package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestConfigReference(t *testing.T) {
	got := barnabas(t, nil, "config", "reference", "log.segment.bytes", "storage.mmap.max_growth")
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, `broker.log.segment.bytes
  Largest size of a segment, in bytes.
  type: INT
  default: 1073741824
  valid: at least 14
  changes: while brokers run, for one or for all
`)
	assert.Contains(t, got.out, "\nstorage.mmap.max_growth\n")
	assert.Contains(t, got.out, "\n  type: size\n  default: 8MiB\n  changes: with a restart of the broker\n")
	assert.NotContains(t, got.out, "broker.log.dirs\n")

	got = barnabas(t, nil, "config", "reference", "segment.bytes")
	assert.Contains(t, got.out, "\nsegment.bytes (of a topic)\n")
	assert.Contains(t, got.out, "\n  default: what broker.log.segment.bytes comes to (1073741824)\n")

	got = barnabas(t, nil, "config", "reference", "authorizer.class.name")
	assert.Contains(t, got.out, "\n  has no effect: Java classes cannot be loaded; any other value than the default is refused\n")

	got = barnabas(t, nil, "config", "reference", "index.interval.bytes", "--output", "yaml")
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Equal(t, `- name: broker.log.index.interval.bytes
  scope: file
  type: INT
  default: "4096"
  valid: at least 0
  changes: cluster
  meaning: Bytes of a log between two entries of its offset index.
- name: index.interval.bytes
  scope: topic
  type: INT
  default: "4096"
  default_from: broker.log.index.interval.bytes
  valid: at least 0
  changes: topic
  meaning: Bytes of a log between two entries of its offset index.
`, got.out)
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "reference", "-o", "xml").code)

	got = barnabas(t, nil, "config", "reference", "log.dris")
	assert.Equal(t, exitWrong, got.code)
	assert.Equal(t, "no key has in it log.dris (did you mean \"broker.log.dirs\"?)\n", got.err)
	got = barnabas(t, nil, "config", "reference", "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq")
	assert.Equal(t, exitWrong, got.code)
}

// TestConfigReferenceIsComplete looks for every property, every key that can be shown, and something about each.
func TestConfigReferenceIsComplete(t *testing.T) {
	all := reference(testParts(t))
	explained := map[string]bool{}
	ofTopics := map[string]bool{} // some are called as an option of a codec is
	for _, k := range all {
		scope := explained
		if k.Scope == ofTopic {
			scope = ofTopics
		}
		assert.NotContains(t, scope, k.Name, "explained twice")
		scope[k.Name] = true
		assert.NotEmpty(t, k.Type, k.Name)
		assert.NotEmpty(t, k.Changes.words(), k.Name)
		assert.NotEmpty(t, k.Meaning, k.Name)
	}
	for _, d := range kafka.BrokerDefinitions() {
		assert.Contains(t, explained, "broker."+d.Name)
	}
	for _, d := range kafka.TopicDefinitions() {
		assert.Contains(t, ofTopics, d.Name)
	}
	t.Chdir(t.TempDir())
	for key := range shownConfig(t, nil, "--set", "gateway={}", "--set", "admin={}") {
		if before, after, indexed := strings.Cut(key, "["); indexed { // compression[0].gzip.level
			_, after, _ = strings.Cut(after, "]")
			key = before + after
		}
		assert.Contains(t, explained, key)
	}
}
