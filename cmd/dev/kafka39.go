package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

func (d *dev) kafka39Command() *cobra.Command {
	o := target.ClusterOptions{What: target.Kafka39}
	c := &cobra.Command{
		Use:   "kafka39",
		Short: "Run a cluster of Apache Kafka " + peers.Kafka39Version + " on ZooKeeper until interrupted, to compare with",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Brokers < 1 {
				return errors.New("--brokers: want at least 1")
			}
			return d.runKafka39(c.Context(), o)
		},
	}
	c.Flags().IntVar(&o.Brokers, "brokers", 3, "how many brokers")
	c.Flags().StringToStringVar(&o.Properties, "set", nil, "broker properties, name=value")
	return c
}

func (d *dev) runKafka39(ctx context.Context, o target.ClusterOptions) error {
	return d.withCluster(ctx, o, func(ctx context.Context, c *target.Cluster) error {
		for _, m := range c.Members {
			d.env.Say("broker %d (process %d) serves %s", m.ID, m.Pid(), m.Addr)
		}
		d.env.Say("ZooKeeper is at %s; Ctrl-C ends it all", c.ZooKeeper)
		<-ctx.Done()
		return nil
	})
}
