package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// configChange is what is to change of the dynamic configuration of a topic or broker (KIP-339).
type configChange struct {
	set, add, subtract, unset []string
	validate                  bool
}

func (c *configChange) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&c.set, "set", "s", nil, "set a configuration, NAME=VALUE (may be repeated)")
	cmd.Flags().StringArrayVar(&c.add, "append", nil, "add to a configuration that is a list, NAME=VALUE (may be repeated)")
	cmd.Flags().StringArrayVar(&c.subtract, "subtract", nil, "take out of a configuration that is a list, NAME=VALUE (may be repeated)")
	cmd.Flags().StringArrayVarP(&c.unset, "unset", "u", nil, "go back to what holds otherwise, NAME (may be repeated)")
	cmd.Flags().BoolVar(&c.validate, "validate", false, "only ask whether it would do")
}

// changes are the operations; each name may be in one of them only.
func (c *configChange) changes() ([]kadm.AlterConfig, error) {
	var all []kadm.AlterConfig
	put := func(op kadm.IncrementalOp, name string, value *string) error {
		if name == "" || slices.ContainsFunc(all, func(other kadm.AlterConfig) bool { return other.Name == name }) {
			return wrong(fmt.Errorf("want each configuration once, by its name, not %q", name))
		}
		all = append(all, kadm.AlterConfig{Op: op, Name: name, Value: value})
		return nil
	}
	for _, kind := range []struct {
		flag  string
		op    kadm.IncrementalOp
		pairs []string
	}{{"--set", kadm.SetConfig, c.set}, {"--append", kadm.AppendConfig, c.add}, {"--subtract", kadm.SubtractConfig, c.subtract}} {
		for _, pair := range kind.pairs {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return nil, wrong(fmt.Errorf("%s: want NAME=VALUE, not %q", kind.flag, pair))
			}
			if err := put(kind.op, name, &value); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range c.unset {
		if strings.Contains(name, "=") {
			return nil, wrong(fmt.Errorf("--unset: want a NAME, not %q", name))
		}
		if err := put(kadm.DeleteConfig, name, nil); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// changed tells what became of each of several resources, and what went wrong.
func (a *app) changed(what string, answers kadm.AlterConfigsResponses, err error, validate bool) error {
	errs := []error{err}
	for _, one := range answers {
		name := strings.TrimSpace(what + " " + one.Name)
		switch {
		case one.Err != nil:
			errs = append(errs, fmt.Errorf("change %s: %w", name, detailed(one.Err, one.ErrMessage)))
		case validate:
			fmt.Fprintf(a.out, "%s would be changed\n", name)
		default:
			fmt.Fprintf(a.out, "%s changed\n", name)
		}
	}
	return errors.Join(errs...)
}

// configView is one configuration as it is printed. A secret has no value.
type configView struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	From   string  `json:"from"`
	Secret bool    `json:"secret,omitempty"`
}

// viewConfigs makes the views, by name: of all configurations, or of those that come from one of the places.
func viewConfigs(configs []kadm.Config, places ...string) []configView {
	views := []configView{}
	for _, c := range configs {
		if source := c.Source.String(); len(places) == 0 || slices.Contains(places, source) {
			views = append(views, configView{c.Key, c.Value, strings.ToLower(strings.ReplaceAll(source, "_", " ")), c.Sensitive})
		}
	}
	slices.SortFunc(views, func(x, y configView) int { return strings.Compare(x.Name, y.Name) })
	return views
}

func configTable(views []configView) table.Writer {
	t := newTable()
	t.AppendHeader(table.Row{"configuration", "value", "from"})
	for _, v := range views {
		value := ""
		switch {
		case v.Secret:
			value = "(secret)"
		case v.Value != nil:
			value = *v.Value
		}
		t.AppendRow(table.Row{v.Name, value, v.From})
	}
	return t
}
