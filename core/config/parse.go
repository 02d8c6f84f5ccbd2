package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// MaxDocument is the largest document that [Parse] takes, in bytes.
const MaxDocument = 4 << 20

// maxDepth bounds the nesting of a document; nothing that is configured here needs a tenth of it.
const maxDepth = 64

// Parse reads one YAML document into its root section. file is used in messages only. An empty document is an empty
// mapping. The root must be a mapping; a key must be a plain scalar and may stand only once in its mapping. Anchors,
// aliases and merge keys are refused: with them a value would stand at two lines, and a few lines could unfold to
// gigabytes. All faults are returned together as [Errors].
func Parse(file string, data []byte) (Section, error) {
	root := Section{file: file, line: 1}
	if len(data) > MaxDocument {
		return Section{}, root.Wrap(fmt.Errorf("the file has %d bytes, the limit is %d", len(data), MaxDocument))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return root, nil
	case err != nil:
		return Section{}, syntaxError(root, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		if err != nil {
			return Section{}, syntaxError(root, err)
		}
		return Section{}, root.Wrap(errors.New("the file holds more than one YAML document"))
	}
	if len(document.Content) != 1 || isNull(document.Content[0]) {
		return root, nil
	}
	root.node = document.Content[0]
	root.line = root.node.Line
	if errs := checkTree(root, nil, 0); len(errs) > 0 {
		return Section{}, errs
	}
	if !root.IsMapping() {
		return Section{}, root.Wrap(fmt.Errorf("want a mapping of keys to values, not %s", kindOf(root.node)))
	}
	return root, nil
}

// syntaxError moves the line that the YAML parser put into its text to where our errors have it.
func syntaxError(root Section, err error) error {
	text := err.Error()
	if m := regexp.MustCompile(`^yaml: line (\d+): (.*)$`).FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		return Join(root.at(line, errors.New("YAML: "+m[2])))
	}
	return Join(root.at(0, errors.New(text)))
}

// checkTree appends the faults that make a tree unfit for sections: aliases, keys that aren't scalars, double keys.
func checkTree(s Section, errs Errors, depth int) Errors {
	if depth > maxDepth {
		return append(errs, s.at(s.line, fmt.Errorf("nested more than %d levels deep", maxDepth)))
	}
	node := s.node
	if node.Anchor != "" || node.Kind == yaml.AliasNode {
		return append(errs, s.at(node.Line, errors.New("YAML anchors and aliases are not supported: write the value out")))
	}
	if elements, ok := s.List(); ok {
		for _, element := range elements {
			errs = checkTree(element, errs, depth+1)
		}
		return errs
	}
	if !s.IsMapping() {
		return errs
	}
	firstLine := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || isNull(key):
			errs = append(errs, s.at(key.Line, errors.New("a key must be plain text")))
			continue
		case key.ShortTag() == "!!merge":
			errs = append(errs, s.at(key.Line, errors.New("YAML merge keys are not supported: write the values out")))
			continue
		case key.Anchor != "":
			errs = append(errs, s.at(key.Line, errors.New("YAML anchors and aliases are not supported: write the value out")))
			continue
		}
		child := s.child(key.Value, key, value)
		if first, double := firstLine[key.Value]; double {
			errs = append(errs, child.at(key.Line, fmt.Errorf("given twice, first on line %d", first)))
			continue
		}
		firstLine[key.Value] = key.Line
		errs = checkTree(child, errs, depth+1)
	}
	return errs
}
