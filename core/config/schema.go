package config

import "strings"

// Schema is a JSON schema (draft 7), ready to be written as JSON.
type Schema map[string]any

// SchemaOf describes a section that holds options: an object with these and no others. It accepts whatever [Section.Decode] accepts;
// what only a Validate method knows, and what is inside of lists and maps of structs, it doesn't know.
func SchemaOf(options []Field) Schema {
	root := Schema{"type": []string{"object", "null"}, "additionalProperties": false}
	for _, o := range options {
		at := root
		path := strings.Split(o.Name, ".")
		for _, key := range path[:len(path)-1] {
			at = at.property(key, Schema{"type": []string{"object", "null"}, "additionalProperties": false})
		}
		at.property(path[len(path)-1], schemaOf(o))
	}
	return root
}

// property gives the schema of a key, which becomes s unless it is there.
func (s Schema) property(key string, fresh Schema) Schema {
	properties, _ := s["properties"].(Schema)
	if properties == nil {
		properties = Schema{}
		s["properties"] = properties
	}
	if there, ok := properties[key].(Schema); ok {
		return there
	}
	properties[key] = fresh
	return fresh
}

// schemaOf describes an option with its meaning and its default.
func schemaOf(o Field) Schema {
	s := typeSchema(o.Type)
	if o.Doc != "" {
		s["description"] = o.Doc
	}
	if o.Default != Hidden && o.Default != "" {
		if parsed, err := Parse("default", []byte("value: "+o.Default)); err == nil {
			value, _ := parsed.Sub("value")
			var plain any
			if value.node != nil && value.node.Decode(&plain) == nil {
				s["default"] = plainValue(plain)
			}
		}
	}
	return s
}

// Patterns of texts, in the part of the regular expressions that all validators share.
const (
	durationPattern = `^[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)$`
	sizePattern     = `^[0-9]+ *([KMGT]iB|[KMGT]B|kB|B)?$`
)

// typeSchema describes a type by the name that [Field] has for it.
func typeSchema(name string) Schema {
	if of, ok := strings.CutPrefix(name, "list of "); ok {
		return Schema{"type": "array", "items": typeSchema(of)}
	}
	if of, ok := strings.CutPrefix(name, "map of "); ok {
		return Schema{"type": []string{"object", "null"}, "additionalProperties": typeSchema(of)}
	}
	switch name {
	case "bool":
		return Schema{"type": "boolean"}
	case "int":
		return Schema{"type": "integer"}
	case "float":
		return Schema{"type": "number"}
	case "duration":
		return Schema{"type": []string{"string", "integer"}, "pattern": durationPattern, "minimum": 0, "maximum": 0}
	case "size":
		return Schema{"type": []string{"string", "integer"}, "pattern": sizePattern, "minimum": 0}
	case "text":
		return Schema{"type": "string"}
	}
	return Schema{} // a section is for somebody else to read
}
