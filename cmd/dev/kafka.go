package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

func (d *dev) kafkaCommand() *cobra.Command {
	var o peers.KafkaOptions
	c := &cobra.Command{
		Use:   "kafka",
		Short: "Run Apache Kafka " + peers.KafkaVersion + " (one node, KRaft) until interrupted, to compare with",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return d.runKafka(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Dir, "dir", "", "folder of its data, kept (default: one that is removed again)")
	c.Flags().IntVar(&o.Port, "port", 9092, "port on 127.0.0.1; 0 is any free one")
	c.Flags().StringVar(&o.Heap, "heap", "1G", "the JVM's heap")
	c.Flags().StringToStringVar(&o.Properties, "set", nil, "broker properties, name=value")
	return c
}

func (d *dev) runKafka(ctx context.Context, o peers.KafkaOptions) error {
	if o.Dir == "" {
		dir, cleanup, err := d.env.TempDir("kafka-")
		if err != nil {
			return err
		}
		defer cleanup()
		o.Dir = dir
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	java, err := peers.KafkaJars(ctx, d.tools)
	if err != nil {
		return err
	}
	p, err := peers.StartKafka(ctx, d.env, java, o)
	if err != nil {
		return err
	}
	d.env.Say("Kafka %s (process %d) serves %s, data in %s; Ctrl-C ends it", peers.KafkaVersion, p.Pid(), p.Addr, p.Data)
	<-ctx.Done()
	return p.Stop()
}
