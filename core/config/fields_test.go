package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/barnabas-mq/barnabas/core/config"
)

func TestFields(t *testing.T) {
	got := config.Fields(defaults())
	byName := map[string]config.Field{}
	for _, f := range got {
		byName[f.Name] = f
	}
	assert.Equal(t, config.Field{Name: "segment_size", Type: "size", Default: "1MiB", Doc: "a size"}, byName["segment_size"])
	assert.Equal(t, config.Field{Name: "wait", Type: "duration", Default: "1s", Doc: "a time"}, byName["wait"])
	assert.Equal(t, config.Field{Name: "words", Type: "list of text", Default: "[a]", Doc: "words"}, byName["words"])
	assert.Equal(t, config.Field{Name: "inner.port", Type: "int", Default: "9", Doc: "where to listen"}, byName["inner.port"])
	assert.Equal(t, "", byName["maybe"].Default)
	assert.Equal(t, "name", got[0].Name, "in the order of declaration")
	assert.NotContains(t, byName, "hidden")
	assert.Equal(t, got[0].Type, config.Fields(new(options))[0].Type)
	assert.Empty(t, config.Fields(struct{}{}))
	type secrets struct {
		Set   string `yaml:"set" secret:"true"`
		Unset string `yaml:"unset" secret:"true"`
	}
	assert.Equal(t, []config.Field{{Name: "set", Type: "text", Default: "[hidden]"}, {Name: "unset", Type: "text"}}, config.Fields(secrets{Set: "word"}))

	type secretLists struct {
		Set   []string `yaml:"set" secret:"true"`
		Empty []string `yaml:"empty" secret:"true"`
		Unset []string `yaml:"unset" secret:"true"`
	}
	assert.Equal(t, []config.Field{{Name: "set", Type: "list of text", Default: "[hidden]"}, {Name: "empty", Type: "list of text", Default: "[]"}, {Name: "unset", Type: "list of text", Default: "[]"}},
		config.Fields(secretLists{Set: []string{"word"}, Empty: []string{}}), "that there is nothing isn't a secret")
	assert.Empty(t, config.Fields(5))
}
