package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

func (d *dev) partitionsCommand() *cobra.Command {
	f := brokerFlags{storage: "sendfile"} // any will do
	c := &cobra.Command{
		Use:   "partitions",
		Short: "Record anew where librdkafka and the Java client put keys, for the tests of the partitioners",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return d.with(c.Context(), f.target, f.storage, func(ctx context.Context, t *target.Target) error {
				return interop.RecordPartitions(ctx, d.env, d.tools, t.Addr)
			})
		},
	}
	c.Flags().StringVar(&f.target, "target", target.Barnabas, "broker to produce to: barnabas (built from this tree), kafka (Apache Kafka) or HOST:PORT")
	return c
}
