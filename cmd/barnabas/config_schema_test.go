package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// printedSchema compiles what `config schema` prints.
func printedSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	got := barnabas(t, nil, "config", "schema")
	require.Equal(t, exitOK, got.code, got.err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(got.out))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("barnabas.json", doc))
	compiled, err := c.Compile("barnabas.json")
	require.NoError(t, err)
	return compiled
}

// fits asks a schema about a YAML file.
func fits(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	root, err := config.Parse("b.yaml", []byte(text))
	require.NoError(t, err, text)
	data, err := root.JSON()
	require.NoError(t, err, text)
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return schema.Validate(instance)
}

// TestSchemaAcceptsWhatIsShown asks the schema about all files in configs/, with their defaults commented out and live, and about every
// snippet of the documentation.
func TestSchemaAcceptsWhatIsShown(t *testing.T) {
	schema := printedSchema(t)
	commented := regexp.MustCompile(`(?m)^(\s*)#([^\s#].*)$`)
	for _, file := range shipped(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NoError(t, fits(t, schema, string(data)), file)
		assert.NoError(t, fits(t, schema, commented.ReplaceAllString(string(data), "$1$2")), file)
	}
	for _, s := range snippets(t) {
		assert.NoError(t, fits(t, schema, s.text), "%s shows\n%s", s.file, s.text)
	}
	for _, d := range kafka.BrokerDefinitions() {
		if !d.Null {
			assert.NoError(t, fits(t, schema, "broker:\n  "+d.Name+": "+scalar(d.Default)), d.Name)
		}
	}
}

// TestSchemaRefusesMistakes asks the schema about the files that `config check` refuses, but for those mistakes that no schema can
// see: they are in what values mean, or it takes them for another's to read.
func TestSchemaRefusesMistakes(t *testing.T) {
	schema := printedSchema(t)
	for _, file := range mistakes(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		root, err := config.Parse(file, data)
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if err != nil || strings.HasPrefix(name, "meaning-") {
			continue
		}
		_, err = compose(root, testParts(t))
		require.Error(t, err, file)
		assert.Error(t, fits(t, schema, string(data)), file)
	}
}

func TestSchemaDescribesEveryKey(t *testing.T) {
	got := barnabas(t, nil, "config", "schema")
	for _, k := range reference(testParts(t)) {
		if k.Scope == inFile && k.Type != sectionType {
			short := k.Name[strings.LastIndexByte(k.Name, '.')+1:]
			if property, ok := strings.CutPrefix(k.Name, "broker."); ok {
				short = property
			}
			assert.Contains(t, got.out, `"`+short+`": {`, k.Name)
		}
	}
}
