package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/log/inspect"
	"github.com/barnabas-mq/barnabas/core/record"
)

func newLogVerify(a *app) *cobra.Command {
	var f inspecting
	var out output
	cmd := &cobra.Command{
		Use:   "verify DIR...",
		Short: "Say what is wrong with the files of log directories, or of single partitions",
		Long: `Checks every batch (header, length, checksum, offsets, leader epoch), and what speaks of them: indexes, aborted transactions,
producer snapshots, leader epochs, and the checkpoints of the log directory. --deep decompresses and reads the records, too.

When the broker stopped in order everything must fit. While it runs, or after it died, some things are harmless, and told apart: an
unfinished batch at the end of a log, space that is allocated ahead, indexes that are behind. The next start mends them.

The exit code is 1 when something is wrong, or couldn't be read.`,
		Example: `  barnabas log verify /var/lib/kafka/data
  barnabas log verify --deep data/clicks-0 data/clicks-1
  barnabas log verify -o json /var/lib/kafka/data | jq '.[].findings[] | select(.harmless | not)'`,
		Args: someOf("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			for _, dir := range args {
				switch place, err := inspect.PlaceOf(dir); {
				case err != nil:
					return wrong(err)
				case place == inspect.Elsewhere:
					return wrong(fmt.Errorf("%s is neither a log directory nor a partition's: it has no segments, and no directories of partitions", dir))
				}
			}
			return f.run(cmd.Context(), a, func(codecs record.Codecs) error {
				return a.verifyLogs(args, out, inspect.Options{Records: f.records, Codecs: codecs, RecordLimit: f.recordLimit(), Patience: appendPatience})
			})
		},
	}
	f.flags(cmd, "decompress and read the records, too")
	out.flags(cmd)
	return cmd
}

// verifiedView is what was found in one directory, as it is printed for programs.
type verifiedView struct {
	Dir          string           `json:"dir"`
	Partitions   int              `json:"partitions"`
	Segments     int              `json:"segments"`
	Batches      int              `json:"batches"`
	Records      *int             `json:"records,omitempty"` // when they were read
	IndexEntries int              `json:"index_entries"`
	Faults       int              `json:"faults"`
	Unlisted     int              `json:"unlisted"` // faults that aren't among the findings: their files have too many
	Unread       string           `json:"unread,omitempty"`
	Findings     []logFindingView `json:"findings"`
}

type logFindingView struct {
	File     string `json:"file"`
	Position *int64 `json:"position,omitempty"` // a byte, when it isn't about the file as a whole
	Harmless bool   `json:"harmless"`
	Text     string `json:"text"`
}

func viewVerified(dir string, r *inspect.Report, records bool, unread error) verifiedView {
	v := verifiedView{
		Dir: dir, Partitions: r.Partitions, Segments: r.Segments, Batches: r.Batches, IndexEntries: r.OffsetEntries + r.TimeEntries,
		Faults: r.Faults(), Unlisted: r.Unlisted(), Findings: []logFindingView{},
	}
	if records {
		v.Records = &r.Records
	}
	if unread != nil {
		v.Unread = unread.Error()
	}
	for _, f := range r.Findings {
		one := logFindingView{File: f.File, Harmless: f.Harmless, Text: f.Text}
		if f.Position >= 0 {
			one.Position = &f.Position
		}
		v.Findings = append(v.Findings, one)
	}
	return v
}

func (a *app) verifyLogs(dirs []string, out output, o inspect.Options) error {
	faults := 0
	var unread []error
	var all []verifiedView
	for _, dir := range dirs {
		r, err := inspect.Verify(dir, o)
		if err != nil {
			unread = append(unread, err)
		}
		faults += r.Faults()
		if out.format != "table" {
			all = append(all, viewVerified(dir, r, o.Records, err))
			continue
		}
		a.printVerifiedLogs(dir, r, o.Records) // at once: a large directory takes its time
	}
	if out.format != "table" {
		if err := out.print(a, all, nil); err != nil {
			return err
		}
	}
	if err := errors.Join(unread...); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("%s found", counted(faults, "fault"))
	}
	return nil
}

func (a *app) printVerifiedLogs(dir string, r *inspect.Report, records bool) {
	for _, f := range r.Findings {
		fmt.Fprintln(a.out, f)
	}
	if n := r.Unlisted(); n > 0 {
		fmt.Fprintf(a.out, "and %d more: no more than %d are listed of one file\n", n, inspect.MaxFindings)
	}
	counts := []string{counted(r.Partitions, "partition"), counted(r.Segments, "segment"), batches(r.Batches)}
	if records {
		counts = append(counts, counted(r.Records, "record"))
	}
	fmt.Fprintf(a.out, "%s: %s, %d index entries: %s\n", dir, strings.Join(counts, ", "), r.OffsetEntries+r.TimeEntries, counted(r.Faults(), "fault"))
}

func batches(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return fmt.Sprintf("%d batches", n)
}
