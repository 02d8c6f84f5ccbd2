package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// kgoPackage is franz-go's client; its tests come with the module that go.mod names.
const kgoPackage = "github.com/twmb/franz-go/pkg/kgo"

// kgoRecords is how many records each chain of franz-go's ETL tests carries: a tenth of what its own CI does with hours.
const kgoRecords = 50_000

// kgoLeftOut are the tests of franz-go that need what this broker does not have yet.
func kgoLeftOut() []string {
	return []string{
		"TestShare.*", "TestConsumeRegexShare.*", // share groups (KIP-932)
		"Test848.*",                  // the new group protocol (KIP-848)
		"TestSCRAM.*", "TestOAuth.*", // SASL
	}
}

func (d *dev) kgoCommand() *cobra.Command {
	var f brokerFlags
	var run, coordination string
	var brokers int
	c := &cobra.Command{
		Use:   "kgo",
		Short: "Run franz-go's own client tests against a broker, or a cluster",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if brokers > 1 {
				return d.kgoCluster(c.Context(), f, coordination, brokers, run)
			}
			return d.kgo(c.Context(), f, run)
		},
	}
	f.add(c)
	c.Flags().IntVar(&brokers, "brokers", 1, "more than one: a cluster, with three replicas of each partition; --target kafka39 is Apache Kafka's")
	c.Flags().StringVar(&coordination, "coordination", target.ZooKeeper, "of a cluster: zookeeper or memberlist")
	c.Flags().StringVar(&run, "run", "", "only the tests that match, as with go test")
	return c
}

// kgo builds the tests once and runs them against every broker that f chooses.
func (d *dev) kgo(ctx context.Context, f brokerFlags, run string) error {
	t, err := d.buildKgo(ctx)
	if err != nil {
		return err
	}
	return d.each(ctx, f, func(ctx context.Context, to *target.Target) error {
		if err := t.run(ctx, to.Name, to.Addr, 1, run); err != nil {
			return err
		}
		return to.Stop()
	})
}

// kgoCluster runs them against a cluster.
func (d *dev) kgoCluster(ctx context.Context, f brokerFlags, coordination string, brokers int, run string) error {
	t, err := d.buildKgo(ctx)
	if err != nil {
		return err
	}
	return d.withCluster(ctx, target.ClusterOptions{What: f.target, Storage: f.storage, Coordination: coordination, Brokers: brokers}, func(ctx context.Context, c *target.Cluster) error {
		return t.run(ctx, c.Name, c.Addrs(), min(brokers, 3), run)
	})
}

// kgoTests are franz-go's tests, built.
type kgoTests struct {
	d       *dev
	binary  string
	sources string // where go test would run them: some read their package's files
}

func (d *dev) buildKgo(ctx context.Context) (kgoTests, error) {
	t := kgoTests{d: d}
	var err error
	if t.binary, err = d.tools.GoTest(ctx, kgoPackage); err != nil {
		return t, err
	}
	sources, err := d.env.Output(ctx, task.Command{Args: []string{"go", "list", "-f", "{{.Dir}}", kgoPackage}})
	t.sources = strings.TrimSpace(sources)
	return t, err
}

// run runs those that match against the brokers at addrs, with topics of so many replicas.
func (t kgoTests) run(ctx context.Context, name, addrs string, replicas int, match string) error {
	t.d.env.Say("franz-go's tests against %s at %s", name, addrs)
	log := &task.TestLog{Out: t.d.env}
	err := t.d.env.Run(ctx, task.Command{
		Dir:    t.sources,
		Env:    []string{"KGO_SEEDS=" + addrs, fmt.Sprintf("KGO_TEST_RF=%d", replicas), fmt.Sprintf("KGO_TEST_RECORDS=%d", kgoRecords), "KGO_LOG_LEVEL=none"},
		Args:   []string{"go", "tool", "test2json", t.binary, "-test.v=test2json", "-test.timeout=10m", "-test.run=" + match, "-test.skip=^(" + strings.Join(kgoLeftOut(), "|") + ")$"},
		Stdout: log,
	})
	passed, failed, skipped := log.Counts()
	t.d.env.Say("%s: %d tests passed, %d failed, %d skipped themselves", name, passed, failed, skipped)
	if err == nil && passed == 0 {
		err = errors.New("no test ran")
	}
	return err
}
