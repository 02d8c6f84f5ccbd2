package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumeFlags are the flags of consume.
type consumeFlags struct {
	at         remote
	topic      string
	from       string
	group      string
	partitions []int32
	count      int64
	follow     bool
	committed  bool
	format     string
	template   string
}

func newConsume(a *app) *cobra.Command {
	var f consumeFlags
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Print the records of a topic",
		Long: `Prints records up to the end that the topic has when the command starts; with --follow it goes on until Ctrl-C.

--from says where to begin: start, end, an offset, -N for N records before the end of each partition, or a time such as
2006-01-02T15:04:05Z or 15m (so long ago). In a group (--group) the committed offset counts, and --from only where there is
none; what was printed is committed.

A template is Go's text/template over .Topic .Partition .Offset .Timestamp .Key .Value .Headers.`,
		Example: `  barnabas consume -t clicks
  barnabas consume -t clicks --from end --follow --format json
  barnabas consume -t clicks --from 15m --template '{{.Offset}} {{.Key}} {{.Value}}'
  barnabas consume -t clicks --group audit --count 100`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.consume(cmd.Context(), &f) },
	}
	f.at.flags(cmd)
	cmd.Flags().StringVarP(&f.topic, "topic", "t", "", "the topic (required)")
	cmd.Flags().StringVar(&f.from, "from", "start", "where to begin: start, end, OFFSET, -N, a time or so long ago")
	cmd.Flags().StringVarP(&f.group, "group", "g", "", "consume as a member of this group")
	cmd.Flags().Int32SliceVarP(&f.partitions, "partition", "p", nil, "only these partitions")
	cmd.Flags().Int64VarP(&f.count, "count", "n", 0, "end after so many records; 0 is no limit")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "wait for more at the end")
	cmd.Flags().BoolVar(&f.committed, "read-committed", false, "leave out records of transactions that aren't committed")
	cmd.Flags().StringVarP(&f.format, "format", "o", "plain", "how to print: plain (the value and a newline) or json (one object a line)")
	cmd.Flags().StringVar(&f.template, "template", "", "print with this template, and a newline")
	cmd.MarkFlagsMutuallyExclusive("format", "template")
	cmd.MarkFlagsMutuallyExclusive("group", "partition")
	return cmd
}

// begin is where to begin: at or after a time, or at an offset, which may be relative to the end.
type begin struct {
	offset kgo.Offset
	since  time.Time // zero when offset counts
}

func parseBegin(text string, now time.Time) (begin, error) {
	if text == "start" {
		return begin{offset: kgo.NewOffset().AtStart()}, nil
	}
	if text == "end" {
		return begin{offset: kgo.NewOffset().AtEnd()}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 0 {
			return begin{offset: kgo.NewOffset().AtEnd().Relative(n)}, nil
		}
		return begin{offset: kgo.NewOffset().At(n)}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return begin{since: now.Add(-ago)}, nil
	}
	if t, ok := parseTime(text); ok {
		return begin{since: t}, nil
	}
	return begin{}, wrong(fmt.Errorf("--from: want start, end, an offset, -N, a time such as 2006-01-02T15:04:05Z or so long ago such as 15m, not %q", text))
}

// parseTime reads a time in one of the usual ways to write it; without a zone it is local time.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// kgoOffset is the same for the client.
func (b begin) kgoOffset() kgo.Offset {
	if !b.since.IsZero() {
		return kgo.NewOffset().AfterMilli(b.since.UnixMilli())
	}
	return b.offset
}

func (a *app) consume(ctx context.Context, f *consumeFlags) (err error) {
	if f.topic == "" {
		return wrong(errors.New("--topic: name the topic to consume"))
	}
	from, err := parseBegin(f.from, time.Now())
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.out)
	defer func() { err = errors.Join(err, out.Flush()) }()
	print, err := f.printer(out)
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	options := []kgo.Opt{kgo.ConsumeResetOffset(from.kgoOffset()), kgo.FetchMaxWait(500 * time.Millisecond), kgo.KeepControlRecords()}
	if f.committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if f.group != "" {
		options = append(options, kgo.ConsumerGroup(f.group), kgo.ConsumeTopics(f.topic), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll())
	}
	client, err := f.at.open(ctx, options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	if err := f.at.exists(ctx, client, f.topic, false, 0); err != nil {
		return err
	}
	ends, err := f.plan(ctx, client, from)
	if err != nil {
		return f.at.explain(err)
	}
	return f.at.explain(f.loop(ctx, client, ends, print, out))
}

// plan finds the end of each partition as it is now, and has the client consume those that are wanted.
func (f *consumeFlags) plan(ctx context.Context, client *kgo.Client, from begin) (*ends, error) {
	ctx, cancel := context.WithTimeout(ctx, f.at.timeout)
	defer cancel()
	admin := kadm.NewClient(client)
	last := admin.ListEndOffsets
	if f.committed {
		last = admin.ListCommittedOffsets
	}
	upTo, err := last(ctx, f.topic)
	if err == nil {
		err = upTo.Error()
	}
	if err != nil {
		return nil, err
	}
	starts, err := admin.ListStartOffsets(ctx, f.topic)
	if err != nil {
		return nil, err
	}
	all := &ends{of: map[int32]int64{}, open: map[int32]bool{}}
	wanted := map[int32]kgo.Offset{}
	only := map[int32]bool{}
	for _, p := range f.partitions {
		if _, ok := upTo.Lookup(f.topic, p); !ok {
			return nil, wrong(fmt.Errorf("--partition: topic %s has no partition %d", f.topic, p))
		}
		only[p] = true
	}
	at, err := f.positions(ctx, admin, from)
	if err != nil {
		return nil, err
	}
	upTo.Each(func(o kadm.ListedOffset) {
		if len(only) > 0 && !only[o.Partition] {
			return
		}
		wanted[o.Partition] = from.kgoOffset()
		start, _ := starts.Lookup(f.topic, o.Partition)
		all.of[o.Partition] = o.Offset
		if max(start.Offset, at(o.Partition, o.Offset)) < o.Offset {
			all.open[o.Partition] = true
		}
	})
	if f.group == "" {
		client.AddConsumePartitions(map[string]map[int32]kgo.Offset{f.topic: wanted})
	}
	return all, nil
}

// positions tells, for a partition and its end, the first offset that will be consumed.
func (f *consumeFlags) positions(ctx context.Context, admin *kadm.Client, from begin) (func(partition int32, end int64) int64, error) {
	position := func(_ int32, end int64) int64 {
		o := from.offset.EpochOffset().Offset
		switch {
		case f.from == "start":
			return 0
		case f.from == "end":
			return end
		case strings.HasPrefix(f.from, "-"):
			n, _ := strconv.ParseInt(f.from, 10, 64)
			return end + n
		}
		return o
	}
	if !from.since.IsZero() {
		listed, err := admin.ListOffsetsAfterMilli(ctx, from.since.UnixMilli(), f.topic)
		if err != nil {
			return nil, err
		}
		position = func(partition int32, end int64) int64 {
			if o, ok := listed.Lookup(f.topic, partition); ok && o.Offset >= 0 {
				return o.Offset
			}
			return end
		}
	}
	if f.group == "" {
		return position, nil
	}
	committed, err := admin.FetchOffsets(ctx, f.group)
	if err != nil {
		return nil, fmt.Errorf("offsets of group %s: %w", f.group, err)
	}
	fallback := position
	return func(partition int32, end int64) int64 {
		if o, ok := committed.Lookup(f.topic, partition); ok && o.At >= 0 {
			return o.At
		}
		return fallback(partition, end)
	}, nil
}

// ends are the ends of the partitions as they were at the start, and which of them haven't been reached.
type ends struct {
	of   map[int32]int64
	open map[int32]bool
}

// beyond says whether a record came after the start.
func (e *ends) beyond(r *kgo.Record) bool { return r.Offset >= e.of[r.Partition] }

// passed takes note of a record that was seen.
func (e *ends) passed(r *kgo.Record) {
	if r.Offset+1 >= e.of[r.Partition] {
		delete(e.open, r.Partition)
	}
}

// loop prints what comes, until the ends are reached or the command is told to end. Without --follow it also ends when
// nothing came for as long as the command is patient: what is missing may be another member's.
func (f *consumeFlags) loop(ctx context.Context, client *kgo.Client, ends *ends, print func(*kgo.Record) error, out *bufio.Writer) error {
	printed := int64(0)
	for f.follow || len(ends.open) > 0 {
		fetches, err := f.poll(ctx, client)
		if err != nil || fetches == nil {
			return err
		}
		taken := map[int32]*kgo.Record{} // the last of each partition
		for records := fetches.RecordIter(); !records.Done() && (f.count == 0 || printed < f.count); {
			r := records.Next()
			ends.passed(r)
			if !f.follow && ends.beyond(r) {
				continue
			}
			taken[r.Partition] = r
			if r.Attrs.IsControl() {
				continue
			}
			if err := print(r); err != nil {
				return fmt.Errorf("print a record: %w", err)
			}
			printed++
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if f.group != "" && len(taken) > 0 {
			if err := client.CommitRecords(ctx, slices.Collect(maps.Values(taken))...); err != nil {
				return fmt.Errorf("commit to group %s: %w", f.group, err)
			}
		}
		client.AllowRebalance()
		if f.count > 0 && printed >= f.count {
			return nil
		}
	}
	return nil
}

// poll waits for records. It gives nothing when it is time to end.
func (f *consumeFlags) poll(ctx context.Context, client *kgo.Client) (kgo.Fetches, error) {
	waiting := ctx
	if !f.follow {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, f.at.timeout)
		defer cancel()
	}
	fetches := client.PollFetches(waiting)
	if waiting.Err() != nil && fetches.NumRecords() == 0 {
		return nil, nil // Ctrl-C, which is how --follow ends, or the end of patience
	}
	var failed error
	fetches.EachError(func(_ string, partition int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			failed = errors.Join(failed, fmt.Errorf("topic %s, partition %d: %w", f.topic, partition, err))
		}
	})
	return fetches, failed
}
