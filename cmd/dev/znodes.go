package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/znodes"
)

// znodesGolden is the file with what Apache Kafka wrote.
func (d *dev) znodesGolden() string {
	return d.env.Path("cmd", "dev", "znodes", "testdata", "kafka-3.9.json")
}

func (d *dev) znodesCommand() *cobra.Command {
	var record bool
	c := &cobra.Command{
		Use:   "znodes",
		Short: "Hold what a cluster writes into ZooKeeper against what Apache Kafka " + peers.Kafka39Version + " writes",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if record {
				return d.recordZnodes(c.Context())
			}
			return d.znodes(c.Context())
		},
	}
	c.Flags().BoolVar(&record, "record", false, "play the script on Apache Kafka, and keep what it writes")
	return c
}

// playZnodes plays the script on a fresh cluster. What was played before an error is returned, too.
func (d *dev) playZnodes(ctx context.Context, what, of string) (r znodes.Recording, err error) {
	o := target.ClusterOptions{What: what, Brokers: 3, Properties: map[string]string{"auto.leader.rebalance.enable": "false"}}
	err = d.withCluster(ctx, o, func(ctx context.Context, c *target.Cluster) error {
		r, err = znodes.Play(ctx, c, of, d.env.Say)
		return err
	})
	return r, err
}

func (d *dev) recordZnodes(ctx context.Context) error {
	r, err := d.playZnodes(ctx, target.Kafka39, "kafka "+peers.Kafka39Version)
	if err != nil {
		return err
	}
	return r.Save(d.znodesGolden())
}

func (d *dev) znodes(ctx context.Context) error {
	want, err := znodes.Load(d.znodesGolden())
	if err != nil {
		return err
	}
	got, played := d.playZnodes(ctx, target.Barnabas, "barnabas")
	if diffs := znodes.Compare(want, got); len(diffs) > 0 { // also of what was played before an error
		return errors.Join(played, fmt.Errorf("%d differences from %s:\n%s", len(diffs), want.Of, strings.Join(diffs, "\n")))
	}
	if played != nil {
		return played
	}
	d.env.Say("the nodes are those of %s, after each of %d steps", want.Of, len(want.Steps))
	return nil
}
