package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/compare"
)

func (d *dev) coordinationsCommand() *cobra.Command {
	m := compare.Coordinations{Env: d.env, Tools: d.tools}
	c := &cobra.Command{
		Use:   "coordinations",
		Short: "Measure what clusters on memberlist and on ZooKeeper cost, and how soon they go on (Linux)",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return m.Run(c.Context()) },
	}
	c.Flags().IntVar(&m.Rounds, "rounds", 3, "how often each is measured; the median counts")
	c.Flags().DurationVar(&m.Idle, "idle", 30*time.Second, "how long idle brokers are watched")
	c.Flags().IntVar(&m.Servers, "zookeeper-servers", 1, "how many servers ZooKeeper has, 1, or 3 and more; each forces to the disk what it acknowledges")
	c.Flags().DurationVar(&m.Starve, "starve", 0, "how long other processes keep all cores busy, to see that no broker is taken for dead: the target is meant for 10m")
	return c
}
