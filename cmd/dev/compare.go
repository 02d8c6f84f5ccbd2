package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/compare"
)

func (d *dev) compareCommand() *cobra.Command {
	o := compare.Defaults()
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure Barnabas beside Apache Kafka, and hold the figures against the targets (Linux)",
		Long: `Measures Barnabas beside Apache Kafka on this machine, in turn, and prints each figure with its target. It fails when one misses.
With --cluster these are clusters of three brokers on ZooKeeper, and the figures those that begin with cluster.

Figures: ` + strings.Join(compare.Names(), ", ") + ".",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return d.compare(c.Context(), o) },
	}
	c.Flags().StringSliceVar(&o.Storages, "storage", o.Storages, "Barnabas' storages")
	c.Flags().StringSliceVar(&o.Only, "figure", nil, "only these figures (more than one: comma separated)")
	c.Flags().BoolVar(&o.Clusters, "cluster", false, "clusters of three brokers on ZooKeeper, instead of one broker")
	c.Flags().IntVar(&o.Rounds, "rounds", o.Rounds, "how often each load is measured; the median counts")
	c.Flags().DurationVar(&o.Duration, "duration", o.Duration, "how long one load is measured")
	c.Flags().DurationVar(&o.WarmUp, "warm-up", o.WarmUp, "load on each broker before anything is measured: Kafka's JIT needs 20 s")
	c.Flags().DurationVar(&o.Idle, "idle", o.Idle, "how long idle brokers are watched")
	return c
}

func (d *dev) compare(ctx context.Context, o compare.Options) error {
	dir, cleanup, err := d.env.TempDir("compare-")
	if err != nil {
		return err
	}
	defer cleanup()
	report, err := (&compare.Comparison{Options: o, Env: d.env, Tools: d.tools, Dir: dir}).Run(ctx)
	if err != nil {
		return err
	}
	d.env.Print("\n" + report.String() + "\n")
	if n := report.Missed(); n > 0 {
		return fmt.Errorf("%d figures miss their targets", n)
	}
	return nil
}
