package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// output is how a command prints what it found: as tables for people, or as JSON or YAML for programs.
type output struct{ format string }

func (o *output) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "table", "how to print: table, json or yaml")
}

// check finds what is wrong with the flag.
func (o *output) check() error {
	switch o.format {
	case "table", "json", "yaml":
		return nil
	}
	return wrong(fmt.Errorf("--output: want table, json or yaml, not %q", o.format))
}

// print prints a value: by its json tags, which give JSON and YAML the same names in the same order, or by what table writes.
func (o *output) print(a *app, value any, table func()) error {
	if o.format == "table" {
		table()
		return nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return err
	}
	if o.format == "json" {
		_, err := a.out.Write(text.Bytes())
		return err
	}
	var doc yaml.Node // JSON is YAML: only its style has to change
	if err := yaml.Unmarshal(text.Bytes(), &doc); err != nil {
		return err
	}
	plain(&doc)
	y := yaml.NewEncoder(a.out)
	y.SetIndent(2)
	if err := y.Encode(&doc); err != nil {
		return err
	}
	return y.Close()
}

// plain gives a document YAML's usual style: indented, without braces, quotes only where they are needed.
func plain(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, child := range n.Content {
		plain(child)
	}
}
