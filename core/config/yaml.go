package config

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// YAML writes the section as a document of its own, for a reader in another process. An empty section gives nothing.
func (s Section) YAML() ([]byte, error) {
	if s.IsZero() {
		return nil, nil
	}
	data, err := yaml.Marshal(s.node)
	return data, s.Wrap(err)
}

// JSON writes the section as JSON. An empty section gives an empty object.
func (s Section) JSON() ([]byte, error) {
	if s.IsZero() {
		return []byte("{}"), nil
	}
	var value any
	if err := s.node.Decode(&value); err != nil {
		return nil, s.Wrap(err)
	}
	data, err := json.Marshal(plainValue(value))
	return data, s.Wrap(err)
}

// plainValue makes the keys of all mappings texts, as JSON has them.
func plainValue(value any) any {
	switch v := value.(type) {
	case map[any]any:
		m := make(map[string]any, len(v))
		for key, inner := range v {
			m[fmt.Sprint(key)] = plainValue(inner)
		}
		return m
	case map[string]any:
		for key, inner := range v {
			v[key] = plainValue(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plainValue(inner)
		}
	}
	return value
}
