package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/scale"
)

func (d *dev) scaleCommand() *cobra.Command {
	o := scale.Defaults()
	var about strings.Builder
	for _, s := range scale.Scenarios() {
		fmt.Fprintf(&about, "  %-12s %s\n", s.Name, s.About)
	}
	c := &cobra.Command{
		Use:   "scale [SCENARIO…]",
		Short: "Put much of everything on a broker, for long, and hold what it costs against bounds (Linux)",
		Long: `Puts much of one thing on a broker or a cluster, and prints each figure with its bound. It fails when one is missed. Without
names it is all scenarios:

` + about.String(),
		RunE: func(c *cobra.Command, args []string) error { return d.scale(c.Context(), o, args) },
	}
	c.Flags().StringSliceVar(&o.Storages, "storage", o.Storages, "Barnabas' storages")
	c.Flags().StringSliceVar(&o.Coordinations, "coordination", o.Coordinations, "what clusters agree through")
	c.Flags().IntVar(&o.Partitions, "partitions", o.Partitions, "how many partitions there are; the bounds are in proportion")
	c.Flags().IntVar(&o.Connections, "connections", o.Connections, "how many connections there are")
	c.Flags().IntVar(&o.Groups, "groups", o.Groups, "how many consumer groups there are")
	c.Flags().IntVar(&o.Segments, "segments", o.Segments, "how many segments the long log has")
	c.Flags().DurationVar(&o.Lasts, "duration", o.Lasts, "how long the endurance run lasts")
	return c
}

func (d *dev) scale(ctx context.Context, o scale.Options, names []string) error {
	scenarios, err := scale.Pick(names)
	if err != nil {
		return err
	}
	report, err := (&scale.Run{Options: o, Env: d.env, Tools: d.tools}).Play(ctx, scenarios)
	if report != nil {
		d.env.Print("\n" + report.String() + "\n")
		if n := report.Missed(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%d figures miss their bounds", n))
		}
	}
	return err
}
