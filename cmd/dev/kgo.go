package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	var run string
	c := &cobra.Command{
		Use:   "kgo",
		Short: "Run franz-go's own client tests against a broker",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return d.kgo(c.Context(), f, run) },
	}
	f.add(c)
	c.Flags().StringVar(&run, "run", "", "only the tests that match, as with go test")
	return c
}

// kgo builds the tests once and runs them against every broker that f chooses.
func (d *dev) kgo(ctx context.Context, f brokerFlags, run string) error {
	binary := filepath.Join(d.env.Cache, "bin", "kgo.test")
	if err := d.env.Run(ctx, task.Command{Args: []string{"go", "test", "-c", "-o", binary, kgoPackage}}); err != nil {
		return err
	}
	sources, err := d.env.Output(ctx, task.Command{Args: []string{"go", "list", "-f", "{{.Dir}}", kgoPackage}})
	if err != nil {
		return err
	}
	return d.each(ctx, f, func(ctx context.Context, t *target.Target) error {
		d.env.Say("franz-go's tests against %s at %s", t.Name, t.Addr)
		log := &task.TestLog{Out: d.env}
		err := d.env.Run(ctx, task.Command{
			Dir:    strings.TrimSpace(sources), // where go test would run them: some read their package's files
			Env:    []string{"KGO_SEEDS=" + t.Addr, "KGO_TEST_RF=1", fmt.Sprintf("KGO_TEST_RECORDS=%d", kgoRecords), "KGO_LOG_LEVEL=none"},
			Args:   []string{"go", "tool", "test2json", binary, "-test.v=test2json", "-test.timeout=10m", "-test.run=" + run, "-test.skip=^(" + strings.Join(kgoLeftOut(), "|") + ")$"},
			Stdout: log,
		})
		passed, failed, skipped := log.Counts()
		d.env.Say("%s: %d tests passed, %d failed, %d skipped themselves", t.Name, passed, failed, skipped)
		if err == nil && passed == 0 {
			err = errors.New("no test ran")
		}
		if err == nil {
			err = t.Stop()
		}
		return err
	})
}
