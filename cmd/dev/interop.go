package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

func (d *dev) interopCommand() *cobra.Command {
	var f brokerFlags
	var clients []string
	var brokers int
	var offsets, coordination string
	c := &cobra.Command{
		Use:   "interop",
		Short: "Check a broker with real Kafka clients and Kafka's own tools",
		Long: "Check a broker with real Kafka clients and Kafka's own tools.\n\nClients: " + strings.Join(interop.Names(d.env, d.tools), ", ") +
			".\nOf what only Barnabas has: " + strings.Join(interop.OwnNames(), ", ") + ".\nKafka's tools beside those of the same names: " + interop.TwinsName + ".",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if brokers > 1 {
				return d.interopCluster(c.Context(), f, target.ClusterOptions{Coordination: coordination, Offsets: offsets}, clients)
			}
			return d.interop(c.Context(), f, clients)
		},
	}
	f.add(c)
	c.Flags().StringSliceVar(&clients, "client", nil, "only this client (more than one: comma separated)")
	c.Flags().IntVar(&brokers, "brokers", 1, "more than one: what clients and tools do to a cluster of three; --target kafka39 is Apache Kafka's")
	c.Flags().StringVar(&coordination, "coordination", target.ZooKeeper, "of a cluster: zookeeper or memberlist")
	c.Flags().StringVar(&offsets, "offsets", "", "of a cluster: Barnabas' offsets store, topic or zookeeper (default: its own)")
	return c
}

// interopCluster runs the checks of a cluster.
func (d *dev) interopCluster(ctx context.Context, f brokerFlags, o target.ClusterOptions, clients []string) error {
	runner := interop.Runner{Env: d.env, Tools: d.tools, Only: clients}
	o.What, o.Storage, o.Brokers = f.target, f.storage, 3
	return d.withCluster(ctx, o, func(ctx context.Context, c *target.Cluster) error {
		report, err := runner.RunCluster(ctx, c)
		if err != nil {
			return err
		}
		d.env.Print(report.String())
		if passed, failed := report.Counts(); failed > 0 || passed == 0 {
			return fmt.Errorf("%d of %d checks failed", failed, passed+failed)
		}
		return nil
	})
}

// interop runs the suite once a broker, then the checks of what only Barnabas has, and ends with one line of counts over all of
// them.
func (d *dev) interop(ctx context.Context, f brokerFlags, clients []string) error {
	runner := interop.Runner{Env: d.env, Tools: d.tools, Only: clients}
	passed, failed := 0, 0
	tell := func(report interop.Report, err error) error {
		if err != nil {
			return err
		}
		d.env.Print(report.String())
		p, n := report.Counts()
		passed, failed = passed+p, failed+n
		if n > 0 {
			return fmt.Errorf("%d of %d checks failed", n, p+n)
		}
		return nil
	}
	own := slices.ContainsFunc(clients, func(name string) bool { return slices.Contains(interop.OwnNames(), name) })
	var errs []error
	if len(clients) == 0 || slices.Contains(clients, interop.TwinsName) { // of what is stored nothing depends on the storage
		errs = append(errs, d.with(ctx, f.target, f.storage, func(ctx context.Context, t *target.Target) error { return tell(runner.RunTwins(ctx, t)) }))
	}
	apart := append(interop.OwnNames(), interop.TwinsName)
	if len(clients) == 0 || slices.ContainsFunc(clients, func(name string) bool { return !slices.Contains(apart, name) }) {
		errs = append(errs, d.each(ctx, f, func(ctx context.Context, t *target.Target) error { return tell(runner.Run(ctx, t)) }))
	}
	if own || len(clients) == 0 && f.target == target.Barnabas {
		errs = append(errs, tell(runner.RunOwn(ctx)))
	}
	d.env.Print(fmt.Sprintf("\n%d passed, %d failed\n", passed, failed))
	return errors.Join(errs...)
}
