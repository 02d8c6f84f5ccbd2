package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Section is one node of a configuration file and everything below it: a mapping, a list, a scalar, or nothing at
// all. It knows where it stands. Sections are values that share an immutable tree: they may be copied and used from
// any goroutine. The zero Section is empty.
type Section struct {
	file string
	path string
	line int
	node *yaml.Node // nil for a section without a value
	// origins names where values came from that Override put into the tree. It is shared and never changed.
	origins map[*yaml.Node]string
}

// Empty gives a section without content at the given path: decoding it leaves every default in place. It stands for
// a plug-in that is named alone.
func Empty(path string) Section { return Section{path: path} }

// Path gives the dotted path of the section from the document's root; keys that contain dots appear as they are.
func (s Section) Path() string { return s.path }

// File gives the name of the file as it was passed to [Parse], or "".
func (s Section) File() string { return s.file }

// Line gives the line of the section's value, from 1, or 0 when it comes from no file.
func (s Section) Line() int { return s.line }

// IsZero reports whether the section has no value: it is empty, or null in the file.
func (s Section) IsZero() bool { return isNull(s.node) }

// IsMapping reports whether the section holds keys. A section without a value doesn't.
func (s Section) IsMapping() bool { return s.node != nil && s.node.Kind == yaml.MappingNode }

// IsList reports whether the section is a list.
func (s Section) IsList() bool { return s.node != nil && s.node.Kind == yaml.SequenceNode }

// Keys gives the keys of a mapping, exactly as written and in the order of the file; nil for anything else.
func (s Section) Keys() []string {
	if !s.IsMapping() {
		return nil
	}
	keys := make([]string, 0, len(s.node.Content)/2)
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		keys = append(keys, s.node.Content[i].Value)
	}
	return keys
}

// Sub gives what stands under a key of a mapping. ok is false when the key is absent; a key that is there with
// nothing behind it gives a section that [Section.IsZero].
func (s Section) Sub(key string) (sub Section, ok bool) {
	if s.IsMapping() {
		for i := 0; i+1 < len(s.node.Content); i += 2 {
			if s.node.Content[i].Value == key {
				return s.child(key, s.node.Content[i], s.node.Content[i+1]), true
			}
		}
	}
	return Section{file: s.file, path: join(s.path, key), line: s.line, origins: s.origins}, false
}

// child makes the section of one entry. An error about a key's value points at the key: a value may start lines
// below it, and a missing one has no line.
func (s Section) child(key string, keyNode, value *yaml.Node) Section {
	child := Section{file: s.file, path: join(s.path, key), line: keyNode.Line, node: value, origins: s.origins}
	return child.placed()
}

// placed makes a section that Override brought say so.
func (s Section) placed() Section {
	if origin, ok := s.origins[s.node]; ok && s.node != nil {
		s.file, s.line = origin, 0
	}
	return s
}

// Scalar gives the text of a single value as written, without quotes: `1`, `true`, `6s`. ok is false for mappings,
// lists, and where there is no value.
func (s Section) Scalar() (text string, ok bool) {
	if s.node == nil || s.node.Kind != yaml.ScalarNode || isNull(s.node) {
		return "", false
	}
	return s.node.Value, true
}

// List gives the elements of a list, each with its own line and a path such as "compression[1]". ok is false for
// anything that isn't a list.
func (s Section) List() (elements []Section, ok bool) {
	if !s.IsList() {
		return nil, false
	}
	for i, node := range s.node.Content {
		element := Section{file: s.file, path: fmt.Sprintf("%s[%d]", s.path, i), line: node.Line, node: node, origins: s.origins}
		elements = append(elements, element.placed())
	}
	return elements, true
}

// Choice reads a section that chooses one implementation of a role: its name alone, or a mapping with that one name
// as its key and its options below.
//
//	storage: mmap
//	storage: {mmap: {segment_size: 1GiB}}
func (s Section) Choice() (name string, options Section, err error) {
	if name, ok := s.Scalar(); ok {
		return name, Section{file: s.file, path: join(s.path, name), line: s.line}, nil
	}
	keys := s.Keys()
	if len(keys) != 1 {
		return "", Section{}, s.Wrap(errors.New("want one name, alone or with its options below it: NAME or {NAME: {…}}"))
	}
	options, _ = s.Sub(keys[0])
	return keys[0], options, nil
}

// Only reports keys of a mapping that are not among the valid ones, each as an error with the nearest valid key.
// Anything but a mapping or nothing is an error as well.
func (s Section) Only(valid ...string) error {
	if !s.IsZero() && !s.IsMapping() {
		return s.Wrap(fmt.Errorf("want a mapping of keys to values, not %s", kindOf(s.node)))
	}
	var errs Errors
	for _, key := range s.Keys() {
		if !slices.Contains(valid, key) {
			sub, _ := s.Sub(key)
			errs = append(errs, &Error{File: sub.file, Line: sub.line, Path: s.path, Err: unknownKey(key, valid)})
		}
	}
	return Join(errs)
}

// Wrap puts the section's file, line and path in front of err, or in front of each when it is several. A nil err
// stays nil; an error that already has a place keeps it.
func (s Section) Wrap(err error) error {
	var errs Errors
	for _, one := range flatten(err) {
		var placed *Error
		var keyed *keyError
		switch {
		case errors.As(one, &placed):
			errs = append(errs, one)
		case errors.As(one, &keyed):
			sub, ok := s.Sub(keyed.key)
			if !ok {
				sub.line = s.line
			}
			errs = append(errs, sub.at(sub.line, keyed.err))
		default:
			errs = append(errs, s.at(s.line, one))
		}
	}
	return Join(errs)
}

func (s Section) at(line int, err error) error {
	return &Error{File: s.file, Line: line, Path: s.path, Err: err}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// kindOf names what a node is, for error texts.
func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	switch strings.TrimPrefix(n.ShortTag(), "!!") {
	case "bool":
		return "the boolean " + n.Value
	case "int", "float":
		return "the number " + n.Value
	case "str":
		return fmt.Sprintf("the text %q", shorten(n.Value))
	default:
		return fmt.Sprintf("%q", shorten(n.Value))
	}
}

// shorten keeps outside text in an error message readable.
func shorten(s string) string {
	const longest = 60
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return s
}
