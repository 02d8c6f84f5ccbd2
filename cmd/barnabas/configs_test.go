package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// shipped lists the files in configs/.
func shipped(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestShippedConfigurationsCompose(t *testing.T) {
	readme, err := os.ReadFile("../../configs/README.md")
	require.NoError(t, err)
	for _, file := range shipped(t) {
		got := barnabas(t, nil, "config", "check", file)
		assert.Equal(t, exitOK, got.code, got.err)
		assert.Empty(t, got.err, "a file that is shown to people warns of nothing")
		name := filepath.Base(file)
		assert.Contains(t, string(readme), fmt.Sprintf("[%s](%s)", name, name), "README.md has no row for the file")
	}
}

// TestShippedDefaultsAreTrue takes the "#" from the lines that show a default and holds each against the program's.
func TestShippedDefaultsAreTrue(t *testing.T) {
	for _, file := range shipped(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		faults, shown := falseDefaults(t, file, string(data))
		assert.Empty(t, faults)
		assert.NotZero(t, shown, "%s shows no default", file)
	}
}

// TestStandaloneIsWhatRunsWithoutAFile holds standalone.yaml to its first sentence.
func TestStandaloneIsWhatRunsWithoutAFile(t *testing.T) {
	a := newApp(nil, nil, nil, nil)
	a.parts = testParts(t)
	with, err := a.load(source{file: "../../configs/standalone.yaml"})
	require.NoError(t, err)
	without, err := compose(config.Section{}, a.parts)
	require.NoError(t, err)
	assert.Equal(t, without.broker, with.broker)
	assert.Equal(t, without.rows()[1:], with.rows()[1:])
}

func TestFalseDefaultsAreFound(t *testing.T) {
	faults, _ := falseDefaults(t, "x.yaml", "gateway:\n  #max_records: 5\n")
	assert.Equal(t, []string{"x.yaml: gateway.max_records is 100000, not 5"}, faults)
	faults, shown := falseDefaults(t, "x.yaml", "broker:\n  #num.partitions: 7\n  #log.retention.hours: 168\nstorage:\n  mmap:\n    #max_growth: 1MiB\n")
	assert.Equal(t, 3, shown)
	assert.Equal(t, []string{"x.yaml: num.partitions is 1, not 7", "x.yaml: storage.mmap.max_growth is 8MiB, not 1MiB"}, faults)
}

// falseDefaults compares what the commented-out lines of a file would set with the defaults.
func falseDefaults(t *testing.T, file, text string) (faults []string, shown int) {
	commented := regexp.MustCompile(`(?m)^(\s*)#([^\s#].*)$`)
	shown = len(commented.FindAllString(text, -1))
	root, err := config.Parse(file, []byte(commented.ReplaceAllString(text, "$1$2")))
	require.NoError(t, err)
	live, err := config.Parse(file, []byte(text))
	require.NoError(t, err)
	broker, _ := root.Sub("broker")
	liveBroker, _ := live.Sub("broker")
	for _, name := range broker.Keys() {
		if slices.Contains(liveBroker.Keys(), name) {
			continue
		}
		sub, _ := broker.Sub(name)
		value, _ := sub.Scalar()
		if d, ok := kafka.BrokerDefinition(name); !ok || d.Default != value {
			faults = append(faults, fmt.Sprintf("%s: %s is %s, not %s", file, name, d.Default, value))
		}
	}
	parts := testParts(t)
	faults = append(faults, falseOptions(t, root, live, parts.storage)...)
	faults = append(faults, falseOptions(t, root, live, parts.election)...)
	faults = append(faults, falseOptions(t, root, live, parts.partitioner)...)
	faults = append(faults, falseOptions(t, root, live, parts.offsets)...)
	return append(faults, falseGateway(root, live, parts.gateway)...), shown
}

func falseGateway(root, live config.Section, factory gatewayFactory) (faults []string) {
	section, ok := root.Sub(gatewayKey)
	if !ok {
		return nil
	}
	set, _ := live.Sub(gatewayKey)
	for i, o := range factory.Effective(section) {
		if want := factory.Options()[i].Default; o.Default != want && !slices.Contains(set.Keys(), o.Name) {
			faults = append(faults, fmt.Sprintf("%s: %s.%s is %s, not %s", root.File(), gatewayKey, o.Name, want, o.Default))
		}
	}
	return faults
}

func falseOptions[S, T any](t *testing.T, root, live config.Section, registry plugin.Registry[S, T]) (faults []string) {
	section, ok := root.Sub(registry.Role())
	if !ok {
		return nil
	}
	chosen, err := registry.Choose(section)
	require.NoError(t, err)
	usual, err := registry.Default(chosen.Name())
	require.NoError(t, err)
	set, _ := live.Sub(registry.Role())
	_, set, err = set.Choice()
	require.NoError(t, err)
	for i, o := range chosen.Options() {
		if want := usual.Options()[i].Default; o.Default != want && !slices.Contains(set.Keys(), o.Name) {
			faults = append(faults, fmt.Sprintf("%s: %s.%s.%s is %s, not %s", root.File(), registry.Role(), chosen.Name(), o.Name, want, o.Default))
		}
	}
	return faults
}
