package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
)

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check, show, explain, import and export configurations"}
	cmd.AddCommand(newConfigCheck(a), newConfigDefaults(a), newConfigExport(a), newConfigImport(a), newConfigReference(a), newConfigSchema(a), newConfigShow(a))
	return cmd
}

func newConfigCheck(a *app) *cobra.Command {
	var from source
	var out output
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Compose a broker from a file without starting it",
		Long: "Reads a file as serve would, with the environment and --set over it, and prints what a broker would be\n" +
			"composed of. Anything wrong is told with its file, line and path, all at once, and the exit code is 2.",
		Example: `  barnabas config check barnabas.yaml
  barnabas config check barnabas.yaml --set broker.log.dirs=/data
  barnabas config check barnabas.yaml --output json | jq '.faults[]'`,
		Args: exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			from.file = args[0]
			c, err := a.load(from)
			if err == nil {
				a.warn(c)
			}
			if out.format != "table" {
				return errors.Join(err, out.print(a, viewCheck(from.file, c, err), nil))
			}
			if err != nil {
				return err
			}
			return printRows(a.out, c.rows())
		},
	}
	from.flagSet(cmd)
	out.flags(cmd)
	return cmd
}

// checkView is what there is to say of a configuration, as it is printed for programs.
type checkView struct {
	File     string            `json:"file"`
	Sound    bool              `json:"sound"`
	Faults   []faultView       `json:"faults"`
	Warnings []string          `json:"warnings"`
	Composed map[string]string `json:"composed,omitempty"` // of a sound one: what a broker would be made of
}

type faultView struct {
	File string `json:"file,omitempty"` // or --set, or the name of a variable
	Line int    `json:"line,omitempty"`
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}

// viewCheck tells of a composition, or of the error that kept it from being made.
func viewCheck(file string, c *composition, err error) checkView {
	v := checkView{File: file, Sound: err == nil, Faults: []faultView{}, Warnings: []string{}}
	all := config.Errors{err}
	if err == nil {
		v.Warnings = append(v.Warnings, c.warnings...)
		v.Composed = map[string]string{}
		for _, row := range c.rows() {
			v.Composed[row[0]] = row[1]
		}
		return v
	}
	errors.As(err, &all)
	for _, one := range all {
		fault := faultView{Text: one.Error()}
		var placed *config.Error
		if errors.As(one, &placed) {
			fault = faultView{File: placed.File, Line: placed.Line, Path: placed.Path, Text: placed.Err.Error()}
		}
		v.Faults = append(v.Faults, fault)
	}
	return v
}

// warn prints what a configuration says that doesn't act.
func (a *app) warn(c *composition) {
	for _, warning := range c.warnings {
		fmt.Fprintln(a.err, "warning:", warning)
	}
}
