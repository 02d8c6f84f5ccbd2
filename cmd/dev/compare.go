package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/compare"
	"github.com/barnabas-mq/barnabas/core/config"
)

func (d *dev) compareCommand() *cobra.Command {
	o := compare.Defaults()
	var markdown string
	touch := config.ByteSize(o.Touch)
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure Barnabas beside Apache Kafka, and hold the figures against the targets (Linux)",
		Long: `Measures Barnabas beside Apache Kafka on this machine, in turn, and prints each figure with its target, and what the machine
alone costs for the same. It fails when one misses. Leave the machine alone meanwhile.
With --cluster these are clusters of three brokers on ZooKeeper, and the rows those that begin with cluster.

Rows: ` + strings.Join(compare.Names(), ", ") + ".",
		Example: `  go run ./cmd/dev compare
  go run ./cmd/dev compare --only produce-64k-1k,consume-10m --rounds 5
  go run ./cmd/dev compare --markdown cmd/barnabas/BENCHMARKS.md`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Touch = int64(touch)
			return d.compare(c.Context(), o, markdown)
		},
	}
	c.Flags().StringSliceVar(&o.Storages, "storage", o.Storages, "Barnabas' storages")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "only these rows (more than one: comma separated)")
	c.Flags().BoolVar(&o.Clusters, "cluster", false, "clusters of three brokers on ZooKeeper, instead of one broker")
	c.Flags().IntVar(&o.Rounds, "rounds", o.Rounds, "how often each load is measured; the median counts")
	c.Flags().DurationVar(&o.Duration, "duration", o.Duration, "how long one load is measured")
	c.Flags().DurationVar(&o.WarmUp, "warm-up", o.WarmUp, "load on each broker before anything is measured: Kafka's JIT needs 20 s")
	c.Flags().DurationVar(&o.Idle, "idle", o.Idle, "how long idle brokers are watched")
	c.Flags().TextVar(&touch, "touch", touch, "bytes of memory to use once before each load, so that a virtual machine has it")
	c.Flags().StringVar(&markdown, "markdown", "", "a document to write the tables into, with date and machine, such as cmd/barnabas/BENCHMARKS.md")
	return c
}

func (d *dev) compare(ctx context.Context, o compare.Options, markdown string) error {
	dir, cleanup, err := d.env.TempDir("compare-")
	if err != nil {
		return err
	}
	defer cleanup()
	comparison := &compare.Comparison{Options: o, Env: d.env, Tools: d.tools, Dir: dir}
	report, err := comparison.Run(ctx)
	if err != nil {
		return err
	}
	d.env.Print("\n" + report.String() + "\n")
	if markdown != "" {
		part := compare.PartTable
		if o.Clusters {
			part = compare.PartClusters
		}
		if err := part.Write(markdown, comparison.Conditions()+"\n"+report.Markdown()); err != nil {
			return err
		}
	}
	if n := len(report.Failed); n > 0 {
		return fmt.Errorf("%d measurements failed", n)
	}
	if n := report.Missed(); n > 0 {
		return fmt.Errorf("%d figures miss their targets", n)
	}
	return nil
}
