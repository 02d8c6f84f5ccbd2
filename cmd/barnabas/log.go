package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/record"
)

func newLog(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Look into the files of a log directory, without a broker",
		Long: `Reads the files of log directories, Apache Kafka's and ours alike. They are only ever opened to read, and no lock is taken: a broker may
have the directory at the same time.`,
	}
	cmd.AddCommand(newLogDump(a), newLogVerify(a))
	return cmd
}

// inspecting are the flags of commands that read records.
type inspecting struct {
	records bool
	limit   config.ByteSize
}

func (f *inspecting) flags(cmd *cobra.Command, records string) {
	cmd.Flags().BoolVar(&f.records, "deep", false, records)
	cmd.Flags().TextVar(&f.limit, "limit", config.ByteSize(256<<20), "the most that one batch may decompress to")
}

// appendPatience is how long what seems corrupt may take to turn out as an append that was under way.
const appendPatience = 100 * time.Millisecond

// run calls f with codecs that are started, or nil when records aren't read.
func (f *inspecting) run(ctx context.Context, a *app, use func(codecs record.Codecs) error) error {
	if f.limit <= 0 {
		return wrong(errors.New("--limit: want a size above 0"))
	}
	if !f.records {
		return use(nil)
	}
	codecs, err := a.parts.codecs()
	if err != nil {
		return err
	}
	if err := codecs.Start(ctx); err != nil {
		return err
	}
	return errors.Join(use(codecs), codecs.Stop(context.WithoutCancel(ctx)))
}

// recordLimit is --limit as the readers of records want it.
func (f *inspecting) recordLimit() int { return int(min(f.limit, 1<<31-1)) }

// someOf wants at least one argument, each of which is there.
func someOf(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return wrong(fmt.Errorf("%s wants at least one %s: %s", cmd.CommandPath(), name, cmd.UseLine()))
		}
		for _, arg := range args {
			if _, err := os.Stat(arg); err != nil {
				return wrong(err)
			}
		}
		return nil
	}
}
