package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/checks"
	"github.com/barnabas-mq/barnabas/cmd/dev/generate"
	"github.com/barnabas-mq/barnabas/cmd/dev/interop"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

func (d *dev) testCommand() *cobra.Command {
	var f brokerFlags
	var fuzzTime time.Duration
	c := &cobra.Command{
		Use:   "test [STAGE...]",
		Short: "Run the tests: all stages, or those that are named",
		RunE: func(c *cobra.Command, names []string) error {
			stages, err := task.Pick(d.stages(f, fuzzTime), names)
			if err != nil {
				return err
			}
			return d.env.RunStages(c.Context(), stages)
		},
	}
	f.add(c)
	c.Flags().DurationVar(&fuzzTime, "fuzztime", 3*time.Second, "how long each fuzz function runs")
	c.Long = "Run the tests: all stages, or those that are named.\n\nStages, in their order:"
	for _, s := range d.stages(f, fuzzTime) {
		c.Long += "\n  " + s.Name + ": " + s.About
		c.ValidArgs = append(c.ValidArgs, s.Name)
	}
	return c
}

func (d *dev) lintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lint",
		Short: "Check format, vet and golangci-lint",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return d.lint(c.Context()) },
	}
}

func (d *dev) lint(ctx context.Context) error {
	c := checks.Checks{Env: d.env, Tools: d.tools}
	var installing sync.WaitGroup
	installing.Go(func() { _, _ = c.Linter(ctx) }) // Lint says what is wrong with it
	err := errors.Join(c.Format(ctx), c.Vet(ctx))
	installing.Wait()
	return errors.Join(err, c.Lint(ctx))
}

// waits are stages that keep no core busy: they wait for brokers to die, for ZooKeeper, for the network. They run at the same time.
const waits = "waits"

// stages are everything that a change has to pass, the quick and telling ones first.
func (d *dev) stages(f brokerFlags, fuzzTime time.Duration) []task.Stage {
	c := checks.Checks{Env: d.env, Tools: d.tools}
	return []task.Stage{
		{Name: "lint", About: "gofmt, go vet, golangci-lint", Run: d.lint},
		{Name: "generated", About: "the plug-in protocol's Go code is that of its .proto file, and configs/all-options.yaml has every key", Run: func(ctx context.Context) error {
			return generate.Run(ctx, d.tools, d.env.Root, true)
		}},
		{Name: "cross", About: "builds for macOS and arm64", Run: c.Cross},
		{Name: "unit", About: "go test ./...", Run: c.Test},
		{Name: "race", About: "tests of concurrent packages under the race detector", Run: c.Race},
		{Name: "fuzz", About: "every fuzz function for a moment", Run: func(ctx context.Context) error { return c.Fuzz(ctx, fuzzTime) }},
		{Name: "kill", Beside: waits, About: "kill -9 under load, 20 times a storage", Run: func(ctx context.Context) error { return d.kill(ctx, f.storage, killRounds) }},
		{Name: "kgo", Beside: waits, Again: true, About: "franz-go's own client tests against a broker", Run: func(ctx context.Context) error { return d.kgo(ctx, f, "") }},
		{Name: "tools", Beside: waits, Again: true, About: "what the stages below need is installed: jars, and packages of Python, Node.js and Debian", Run: func(ctx context.Context) error {
			return interop.Runner{Env: d.env, Tools: d.tools}.Install(ctx)
		}},
		{Name: "znodes", Beside: waits, Again: true, About: "a cluster's nodes in ZooKeeper are those that Apache Kafka writes", Run: d.znodes},
		{Name: "inplace", Beside: waits, Again: true, About: "Apache Kafka and a broker take turns on one log directory", Run: d.inplace},
		{Name: "faults", About: "clusters of three brokers are broken under load, and keep what they promise", Run: func(ctx context.Context) error {
			on := func(coordination string) error {
				return d.faults(ctx, faultFlags{storage: f.storage, target: target.Barnabas, coordination: coordination, again: true}, nil)
			}
			return errors.Join(on(target.ZooKeeper), on(target.Memberlist))
		}},
		{Name: "interop", Again: true, About: "real clients and Kafka's tools against a broker", Run: func(ctx context.Context) error { return d.interop(ctx, f, nil) }},
		{Name: "cluster", Beside: "clusters", Again: true, About: "franz-go's tests, clients and Kafka's tools on a cluster on ZooKeeper, while its brokers are killed", Run: func(ctx context.Context) error {
			return d.cluster(ctx, f, target.ZooKeeper)
		}},
		{Name: "memberlist", Beside: "clusters", Again: true, About: "the same on three brokers that agree through memberlist, and all vote", Run: func(ctx context.Context) error {
			return d.cluster(ctx, f, target.Memberlist)
		}},
	}
}

// cluster runs what others have written for clusters on one of Barnabas.
func (d *dev) cluster(ctx context.Context, f brokerFlags, coordination string) error {
	f = brokerFlags{target: target.Barnabas, storage: f.storage}
	return errors.Join(d.kgoCluster(ctx, f, coordination, 3, ""), d.interopCluster(ctx, f, target.ClusterOptions{Coordination: coordination}, nil))
}
