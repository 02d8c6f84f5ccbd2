package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

func TestPluginsListsAll(t *testing.T) {
	got := barnabas(t, nil, "plugins")
	assert.Equal(t, exitOK, got.code)
	for _, word := range []string{"storage\n", "mmap", "sendfile", "max_growth", "size, default 8MiB", "election\n", "standalone", "murmur2", "roundrobin", "zstd", "topic", "memory"} {
		assert.Contains(t, got.out, word)
	}
}

func TestPluginsForPrograms(t *testing.T) {
	got := barnabas(t, nil, "plugins", "-o", "json")
	require.Equal(t, exitOK, got.code, got.err)
	var v pluginsView
	require.NoError(t, json.Unmarshal([]byte(got.out), &v))
	var roles []string
	for _, role := range v.Roles {
		roles = append(roles, role.Role)
		for _, one := range role.Implementations {
			assert.NotEmpty(t, one.Summary, one.Name)
			if one.Name == "mmap" {
				assert.Contains(t, one.Options, optionView{Name: "max_growth", Type: "size", Default: "8MiB", Doc: one.Options[2].Doc})
			}
		}
	}
	assert.Equal(t, []string{"storage", "election", "partitioner", "compression", "offsets", "gateway"}, roles)
	assert.Nil(t, v.Processes)
	assert.Equal(t, exitWrong, barnabas(t, nil, "plugins", "-o", "xml").code)
}

// TestEveryPluginCanBeConfigured looks at each implementation in the binary as who configures it does.
func TestEveryPluginCanBeConfigured(t *testing.T) {
	parts := testParts(t)
	checkRole(t, parts.storage)
	checkRole(t, parts.election)
	checkRole(t, parts.partitioner)
	checkRole(t, parts.compression)
	checkRole(t, parts.offsets)
}

// checkRole wants a summary of each implementation, a sentence about each of its options, and defaults that mean the
// same when they are written into a file. What has no default is left out, unless it must be there.
func checkRole[S, T any](t *testing.T, registry plugin.Registry[S, T]) {
	t.Helper()
	required := map[string]string{
		"partitioner.remote.command": "./plug-in", "offsets.remote.command": "./plug-in", "compression.remote.command": "./plug-in", "compression.remote.codec": "zstd",
	}
	for _, name := range registry.Names() {
		factory, err := registry.Get(name)
		require.NoError(t, err)
		where := registry.Role() + "." + name
		assert.NotEmpty(t, factory.Summary(), where)
		var written strings.Builder
		fmt.Fprintf(&written, "%s:\n  %s:\n", registry.Role(), name)
		options := factory.Options()
		for i := range options {
			o := &options[i]
			assert.NotEmpty(t, o.Doc, "%s.%s", where, o.Name)
			assert.Regexp(t, `^[a-z][a-z0-9_]*$`, o.Name, where)
			if value, must := required[where+"."+o.Name]; must {
				o.Default = value
			}
			if o.Default != "" {
				fmt.Fprintf(&written, "    %s: %s\n", o.Name, o.Default)
			}
		}
		root, err := config.Parse("defaults.yaml", []byte(written.String()))
		require.NoError(t, err, where)
		section, _ := root.Sub(registry.Role())
		choice, err := registry.Choose(section)
		require.NoError(t, err, where)
		assert.Equal(t, options, choice.Options(), where)
	}
}
