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
//
// Where the only faults are keys given twice, the root is returned beside them, with the first of each, so that a caller may look for what
// else is wrong before it tells; with any other fault the section is empty.
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
	var c treeCheck
	c.check(root, 0)
	switch {
	case c.unfit:
		return Section{}, c.faults
	case !root.IsMapping():
		return Section{}, Join(c.faults, root.Wrap(fmt.Errorf("want a mapping of keys to values, not %s", kindOf(root.node))))
	case len(c.faults) > 0:
		return root, c.faults
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

// treeCheck collects the faults that make a tree unfit for sections: aliases, keys that aren't scalars, double keys.
type treeCheck struct {
	faults Errors
	unfit  bool // there is more than double keys, which are taken out of the tree
}

// refuse notes a fault with which the tree can't be read at all.
func (c *treeCheck) refuse(s Section, line int, text string) {
	c.faults = append(c.faults, s.at(line, errors.New(text)))
	c.unfit = true
}

func (c *treeCheck) check(s Section, depth int) {
	node := s.node
	switch elements, isList := s.List(); {
	case depth > maxDepth:
		c.refuse(s, s.line, fmt.Sprintf("nested more than %d levels deep", maxDepth))
	case node.Anchor != "" || node.Kind == yaml.AliasNode:
		c.refuse(s, node.Line, noAnchors)
	case isList:
		for _, element := range elements {
			c.check(element, depth+1)
		}
	case s.IsMapping():
		c.checkKeys(s, depth)
	}
}

const noAnchors = "YAML anchors and aliases are not supported: write the value out"

// checkKeys looks at a mapping and what is below it, and takes out of it what stands there a second time.
func (c *treeCheck) checkKeys(s Section, depth int) {
	firstLine := map[string]int{}
	var once []*yaml.Node
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		key, value := s.node.Content[i], s.node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || isNull(key):
			c.refuse(s, key.Line, "a key must be plain text")
			continue
		case key.ShortTag() == "!!merge":
			c.refuse(s, key.Line, "YAML merge keys are not supported: write the values out")
			continue
		case key.Anchor != "":
			c.refuse(s, key.Line, noAnchors)
			continue
		}
		child := s.child(key.Value, key, value)
		if first, double := firstLine[key.Value]; double {
			c.faults = append(c.faults, child.at(key.Line, fmt.Errorf("given twice, first on line %d", first)))
			continue
		}
		firstLine[key.Value] = key.Line
		once = append(once, key, value)
		c.check(child, depth+1)
	}
	s.node.Content = once
}
