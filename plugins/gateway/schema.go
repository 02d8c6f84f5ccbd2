package gateway

import (
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// This file has what the document says and no Go type can: forms that handlers read themselves, and refuse with the API's own codes.

// noSchema is a field that means something only with a schema registry.
type noSchema struct{}

// Schema implements huma.SchemaProvider.
func (noSchema) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: typeNull} }

const typeNull = "null"

// base64Text is bytes.
type base64Text struct{}

// Schema implements huma.SchemaProvider.
func (base64Text) Schema(huma.Registry) *huma.Schema { return base64Schema() }

func base64Schema() *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "byte", ContentEncoding: "base64", Nullable: true}
}

// Schema implements huma.SchemaProvider: what data may be depends on the type.
func (dataV3) Schema(huma.Registry) *huma.Schema {
	typed := func(name string, data *huma.Schema) *huma.Schema {
		return &huma.Schema{
			Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"type"},
			Properties: map[string]*huma.Schema{"type": {Type: huma.TypeString, Enum: []any{name}}, "data": data},
		}
	}
	return &huma.Schema{AnyOf: []*huma.Schema{
		typed("BINARY", base64Schema()),
		typed("JSON", &huma.Schema{Description: "any JSON, whose text is taken as it stands"}),
		typed("STRING", &huma.Schema{Type: huma.TypeString, Nullable: true}),
		{Type: typeNull},
	}}
}

// topicName narrows a schema to the names that topics may have.
func topicName(s *huma.Schema) {
	s.MinLength, s.MaxLength, s.Pattern = new(1), new(249), `^[a-zA-Z0-9._-]+$`
	s.Not = &huma.Schema{Enum: []any{".", ".."}}
}

// oneOfWords narrows a schema to some words, in any case.
func oneOfWords(s *huma.Schema, words ...string) { s.Pattern = anyCase(words...) }

func anyCase(words ...string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte('|')
		}
		for _, c := range word {
			b.WriteString("[" + strings.ToUpper(string(c)) + string(c) + "]")
		}
	}
	return "^(" + b.String() + ")$"
}

// orText narrows a schema to what fits, or a text of that form, or null.
func orText(s *huma.Schema, fits *huma.Schema, pattern string) {
	s.AnyOf = []*huma.Schema{fits, {Type: huma.TypeString, Pattern: pattern}, {Type: typeNull}}
}

// between is a whole number.
func between(low, high float64) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &low, Maximum: &high}
}

// oneGiven narrows a schema to objects that have at least one of two properties, in the form that is given of each.
func oneGiven(s *huma.Schema, properties map[string]*huma.Schema) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		s.AnyOf = append(s.AnyOf, &huma.Schema{Required: []string{name}, Properties: map[string]*huma.Schema{name: properties[name]}})
	}
}

// narrow applies an operation's narrowing to the schema that the document shows of its body.
func narrow(registry huma.Registry, schema *huma.Schema, how func(*huma.Schema)) {
	if how == nil {
		return
	}
	if schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	how(schema)
	schema.PrecomputeMessages()
}
