package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Override gives a section in which the value at a path of keys below s is another one: read as YAML, so that "true",
// "6s" and "[a, b]" mean what they mean in a file. origin stands for the file in errors about the value, such as
// "--set". Keys on the way that are missing, or lead to nothing or to a name alone, become mappings: below
// `storage: mmap`, the path storage, mmap, segment_size sets an option of mmap. In a list of choices, such as
// `[gzip, {zstd: {level: 3}}]`, the next key is the name of one; a name that isn't there yet is added to the list.
//
// s itself stays as it is. An empty path, and YAML that isn't one plain value, are errors.
func (s Section) Override(origin string, path []string, value string) (Section, error) {
	at := Section{file: origin, path: s.path}
	for _, key := range path {
		at.path = join(at.path, key)
	}
	if len(path) == 0 {
		return Section{}, at.Wrap(errors.New("no key given"))
	}
	// Under a key, so that the same checks apply as to a file.
	wrapped, err := Parse(origin, []byte("value: "+value))
	if err != nil {
		return Section{}, at.Wrap(fmt.Errorf("the value %q is not valid YAML", shorten(value)))
	}
	parsed, ok := wrapped.Sub("value")
	if !ok || len(wrapped.Keys()) != 1 {
		return Section{}, at.Wrap(fmt.Errorf("the value %q is not one YAML value", shorten(value)))
	}
	origins := make(map[*yaml.Node]string, len(s.origins)+1)
	for node, from := range s.origins {
		origins[node] = from
	}
	mark(origins, parsed.node, origin)
	replaced := s
	replaced.origins = origins
	replaced.node = replace(s.node, path, parsed.node, origins, origin)
	return replaced, nil
}

// mark notes where a value and everything below it came from.
func mark(origins map[*yaml.Node]string, node *yaml.Node, origin string) {
	origins[node] = origin
	for _, child := range node.Content {
		mark(origins, child, origin)
	}
}

// replace copies the mappings along the path and puts value at its end.
func replace(node *yaml.Node, path []string, value *yaml.Node, origins map[*yaml.Node]string, origin string) *yaml.Node {
	if len(path) == 0 {
		return value
	}
	if node != nil && node.Kind == yaml.SequenceNode {
		return replaceChoice(node, path, value, origins, origin)
	}
	mapping := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	switch {
	case node != nil && node.Kind == yaml.MappingNode:
		mapping.Line = node.Line
		mapping.Content = append(mapping.Content, node.Content...)
		if from, ok := origins[node]; ok {
			origins[mapping] = from
		}
	case node != nil && node.Kind == yaml.ScalarNode && !isNull(node) && node.Value == path[0]:
		// A name alone gets its options here.
		mapping.Line = node.Line
	default:
		origins[mapping] = origin
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == path[0] {
			mapping.Content[i+1] = replace(mapping.Content[i+1], path[1:], value, origins, origin)
			return mapping
		}
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: path[0], Line: mapping.Line}
	mapping.Content = append(mapping.Content, key, replace(nil, path[1:], value, origins, origin))
	return mapping
}

// replaceChoice is replace in a list of choices.
func replaceChoice(node *yaml.Node, path []string, value *yaml.Node, origins map[*yaml.Node]string, origin string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: node.Line}
	list.Content = append(list.Content, node.Content...)
	if from, ok := origins[node]; ok {
		origins[list] = from
	}
	for i, element := range list.Content {
		alone := element.Kind == yaml.ScalarNode && element.Value == path[0]
		if alone || element.Kind == yaml.MappingNode && len(element.Content) == 2 && element.Content[0].Value == path[0] {
			list.Content[i] = replace(element, path, value, origins, origin)
			return list
		}
	}
	list.Content = append(list.Content, replace(nil, path, value, origins, origin))
	return list
}
