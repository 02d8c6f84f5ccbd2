package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check, show, explain, import and export configurations"}
	cmd.AddCommand(newConfigCheck(a), newConfigDefaults(a), newConfigExport(a), newConfigImport(a), newConfigReference(a), newConfigSchema(a), newConfigShow(a))
	return cmd
}

func newConfigCheck(a *app) *cobra.Command {
	var from source
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Compose a broker from a file without starting it",
		Long: "Reads a file as serve would, with the environment and --set over it, and prints what a broker would be\n" +
			"composed of. Anything wrong is told with its file, line and path, all at once, and the exit code is 2.",
		Args: exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			from.file = args[0]
			c, err := a.load(from)
			if err != nil {
				return err
			}
			a.warn(c)
			return printRows(a.out, c.rows())
		},
	}
	from.flagSet(cmd)
	return cmd
}

// warn prints what a configuration says that doesn't act.
func (a *app) warn(c *composition) {
	for _, warning := range c.warnings {
		fmt.Fprintln(a.err, "warning:", warning)
	}
}
