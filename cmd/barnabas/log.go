package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/log/inspect"
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

func newLogVerify(a *app) *cobra.Command {
	var f inspecting
	cmd := &cobra.Command{
		Use:   "verify DIR...",
		Short: "Say what is wrong with the files of log directories, or of single partitions",
		Long: `Checks every batch (header, length, checksum, offsets, leader epoch), and what speaks of them: indexes, aborted transactions,
producer snapshots, leader epochs, and the checkpoints of the log directory. --deep decompresses and reads the records, too.

When the broker stopped in order everything must fit. While it runs, or after it died, some things are harmless, and told apart: an
unfinished batch at the end of a log, space that is allocated ahead, indexes that are behind. The next start mends them.

The exit code is 1 when something is wrong, or couldn't be read.`,
		Example: `  barnabas log verify /var/lib/kafka/data
  barnabas log verify --deep data/clicks-0 data/clicks-1`,
		Args: someOf("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, dir := range args {
				switch place, err := inspect.PlaceOf(dir); {
				case err != nil:
					return wrong(err)
				case place == inspect.Elsewhere:
					return wrong(fmt.Errorf("%s is neither a log directory nor a partition's: it has no segments, and no directories of partitions", dir))
				}
			}
			return f.run(cmd.Context(), a, func(codecs record.Codecs) error {
				return a.verifyLogs(args, inspect.Options{Records: f.records, Codecs: codecs, RecordLimit: f.recordLimit(), Patience: appendPatience})
			})
		},
	}
	f.flags(cmd, "decompress and read the records, too")
	return cmd
}

func (a *app) verifyLogs(dirs []string, o inspect.Options) error {
	faults := 0
	var unread []error
	for _, dir := range dirs {
		r, err := inspect.Verify(dir, o)
		if err != nil {
			unread = append(unread, err)
		}
		for _, f := range r.Findings {
			fmt.Fprintln(a.out, f)
		}
		if n := r.Unlisted(); n > 0 {
			fmt.Fprintf(a.out, "and %d more: no more than %d are listed of one file\n", n, inspect.MaxFindings)
		}
		faults += r.Faults()
		fmt.Fprintf(a.out, "%s: %s, %s, %s", dir, counted(r.Partitions, "partition"), counted(r.Segments, "segment"), batches(r.Batches))
		if o.Records {
			fmt.Fprintf(a.out, ", %s", counted(r.Records, "record"))
		}
		fmt.Fprintf(a.out, ", %d index entries: %s\n", r.OffsetEntries+r.TimeEntries, counted(r.Faults(), "fault"))
	}
	if err := errors.Join(unread...); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("%s found", counted(faults, "fault"))
	}
	return nil
}

func batches(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return fmt.Sprintf("%d batches", n)
}
