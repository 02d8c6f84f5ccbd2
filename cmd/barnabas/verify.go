package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify"
	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
	"github.com/barnabas-mq/barnabas/core/config"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	at         remote
	options    verify.Options
	size       config.ByteSize
	configs    []string
	tolerate   []string
	json       bool
	replicas   int16
	minInSync  int
	partitions int32
}

func newVerify(a *app) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Put load on a cluster and see whether it keeps what it promises",
		Long: `Writes numbered records to any cluster that speaks Kafka's protocol, with acks=all and idempotence, and reads them meanwhile as consumers
do. At the end it reads every replica of every partition, and holds what the cluster told and showed against what Kafka promises:

` + kindsHelp() + `
Break things meanwhile: that is what it is for. A stale answer is what Kafka gives, too, for moments, when a leader is cut off or paused:
--tolerate stale lets it pass. The exit code is 0 when all promises were kept, 1 when one was not, or could not be verified.`,
		Example: `  barnabas verify --bootstrap broker1:9092,broker2:9092 --duration 5m
  barnabas verify --records 100000 --transactions --every-leader --json > report.json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.options.Partitions, f.options.Replication, f.options.MinInSync = f.partitions, f.replicas, f.minInSync
			if !cmd.Flags().Changed("duration") && f.options.Records > 0 {
				f.options.Duration = 0
			}
			return a.verify(cmd.Context(), &f)
		},
	}
	f.at.flags(cmd)
	o := &f.options
	cmd.Flags().StringVarP(&o.Topic, "topic", "t", "", "the topic to write to; made when it isn't there (default: one for the run)")
	cmd.Flags().Int32VarP(&f.partitions, "partitions", "p", 6, "partitions of a topic that is made")
	cmd.Flags().Int16VarP(&f.replicas, "replication-factor", "r", 0, "replicas of a topic that is made (default: 3, or as many as there are brokers)")
	cmd.Flags().IntVar(&f.minInSync, "min-in-sync", 0, "min.insync.replicas of a topic that is made (default: 2, or 1 without replicas)")
	cmd.Flags().StringArrayVarP(&f.configs, "config", "c", nil, "configuration of a topic that is made, KEY=VALUE (may be repeated)")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "keep a topic that was made")
	cmd.Flags().IntVarP(&o.Producers, "producers", "n", 3, "producers")
	cmd.Flags().Int64Var(&o.Records, "records", 0, "records to write (default: as many as --duration allows)")
	cmd.Flags().DurationVarP(&o.Duration, "duration", "d", 10*time.Second, "how long to write; without it, --records alone decides")
	cmd.Flags().IntVar(&o.Rate, "rate", 0, "records a second (default: as many as the cluster takes)")
	cmd.Flags().TextVar(&f.size, "record-size", config.ByteSize(200), "bytes of a record's value")
	cmd.Flags().BoolVar(&o.Transactions, "transactions", false, "write in transactions, and abort some")
	cmd.Flags().BoolVar(&o.EveryLeader, "every-leader", false, "make each replica the leader at the end, and read it as such")
	cmd.Flags().DurationVar(&o.Patience, "patience", time.Minute, "how long to wait at the end for answers, and for replicas that lag")
	cmd.Flags().StringSliceVar(&f.tolerate, "tolerate", nil, "kinds of faults that are counted and not held against the cluster")
	cmd.Flags().BoolVar(&f.json, "json", false, "the report as JSON, without a progress bar")
	return cmd
}

// kindsHelp explains the kinds of faults.
func kindsHelp() string {
	var b strings.Builder
	for _, kind := range history.Kinds() {
		fmt.Fprintf(&b, "  %-12s %s\n", kind, kind.About())
	}
	return b.String()
}

// complete turns what was typed into options.
func (f *verifyFlags) complete() error {
	if err := f.at.check(); err != nil {
		return err
	}
	o := &f.options
	o.Bootstrap, o.RecordSize = f.at.bootstrap, int(min(f.size, 1<<30))
	o.Configs = map[string]string{}
	for _, c := range f.configs {
		key, value, ok := strings.Cut(c, "=")
		if !ok {
			return wrong(fmt.Errorf("--config: want KEY=VALUE, not %q", c))
		}
		o.Configs[key] = value
	}
	for _, kind := range f.tolerate {
		o.Tolerate = append(o.Tolerate, history.Kind(kind))
	}
	if o.Records == 0 && o.Duration == 0 {
		return wrong(errors.New("--records or --duration has to say when to end"))
	}
	return wrong(o.Check())
}

func (a *app) verify(ctx context.Context, f *verifyFlags) error {
	if err := f.complete(); err != nil {
		return err
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	client, err := f.at.open(ctx) // says what to do when nobody is there
	if err != nil {
		return err
	}
	client.Close()
	var bar func(verify.Progress)
	if !f.json && a.terminal() {
		var done func()
		bar, done = a.verifyProgress(&f.options)
		defer done()
	}
	if !f.json {
		f.options.Say = func(what string) { fmt.Fprintf(a.err, "%s\n", what) }
	}
	report, err := verify.Verify(ctx, f.options, bar)
	if err != nil {
		return f.at.explain(err)
	}
	if f.json {
		e := json.NewEncoder(a.out)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		a.printVerified(report)
	}
	if err == nil && !report.OK {
		err = fmt.Errorf("%s found", counted(total(report.Counts), "fault"))
	}
	return err
}

// verifyProgress shows a bar while records are written.
func (a *app) verifyProgress(o *verify.Options) (show func(verify.Progress), done func()) {
	most := int64(o.Duration)
	if o.Records > 0 {
		most = o.Records
	}
	bar := progressbar.NewOptions64(most, progressbar.OptionSetWriter(a.err), progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false), progressbar.OptionThrottle(100*time.Millisecond))
	return func(p verify.Progress) {
		bar.Describe(fmt.Sprintf("%9d acknowledged %9d read", p.Acknowledged, p.Read))
		at := int64(p.Elapsed)
		if o.Records > 0 {
			at = p.Acknowledged
		}
		_ = bar.Set64(min(at, most))
	}, func() { _ = bar.Finish() }
}

func total(counts map[history.Kind]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

func (a *app) printVerified(r *verify.Report) {
	fmt.Fprintf(a.out, "%s sent, %d acknowledged, in %s\n", counted(int(r.Sent), "record"), r.Acknowledged, r.Took.Round(100*time.Millisecond))
	if n := r.Committed + r.Aborted + r.Unknown; n > 0 {
		fmt.Fprintf(a.out, "%s: %d committed, %d aborted, %d without an answer\n", counted(n, "transaction"), r.Committed, r.Aborted, r.Unknown)
	}
	fmt.Fprintf(a.out, "longest silence: %s, of partition %d, from %s on\n\n", r.Silence.Round(time.Millisecond), r.SilentOne, r.Started.Add(r.SilentAt).Format("15:04:05.000"))
	t := newTable()
	t.AppendHeader(table.Row{"reader", "partitions", "records"})
	for _, v := range r.Views {
		t.AppendRow(table.Row{v.Name, v.Partitions, v.Records})
	}
	fmt.Fprintln(a.out, t.Render())
	for _, what := range slices.Sorted(maps.Keys(r.Complaints)) {
		fmt.Fprintf(a.out, "\n%d times: %s", r.Complaints[what], what)
	}
	for _, what := range r.Unread {
		fmt.Fprintf(a.out, "\nnot read: %s", what)
	}
	fmt.Fprintln(a.out)
	if len(r.Counts) == 0 {
		fmt.Fprintln(a.out, "nothing lost, nothing twice, nothing out of order: no fault found")
		return
	}
	faults := newTable()
	faults.AppendHeader(table.Row{"fault", "times", "what it is"})
	for _, kind := range history.Kinds() {
		if n := r.Counts[kind]; n > 0 {
			faults.AppendRow(table.Row{kind, n, kind.About()})
		}
	}
	fmt.Fprintln(a.out, faults.Render())
	fmt.Fprintln(a.out)
	const shown = 3
	told := map[history.Kind]int{}
	for _, fault := range r.Faults {
		if told[fault.Kind]++; told[fault.Kind] <= shown {
			fmt.Fprintln(a.out, fault)
		}
	}
}
