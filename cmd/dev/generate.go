package main

import (
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/generate"
)

func (d *dev) generateCommand() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "generate",
		Short: "Make the Go code of the plug-in protocol, and the configuration with every key",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return generate.Run(c.Context(), d.tools, d.env.Root, check)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "change nothing, and fail when the code there isn't what would be made")
	return c
}
