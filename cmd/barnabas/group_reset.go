package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/groups"
)

// groupReset is what `group reset` is asked to do.
type groupReset struct {
	at      remote
	out     output
	topics  []string
	all     bool
	execute bool

	start, end bool
	offset     int64
	time       string
	duration   time.Duration
	shift      int64
}

func newGroupReset(a *app) *cobra.Command {
	var r groupReset
	cmd := &cobra.Command{
		Use:   "reset GROUP",
		Short: "Change what a group committed, so that it goes on reading elsewhere",
		Long: `Changes the committed offsets of a group, so that its members go on reading elsewhere when they come back. The group must not
have members. Without --execute it only shows what it would do.

--topic names topics, or some partitions of one (clicks:0,3); --all-topics stands for all partitions in which the group
has committed. An offset that is outside of the log becomes the nearer end of it, and is marked. --by-duration counts from
now; --to-time and --by-duration find the first record that isn't older, or the end.

When one of the partitions can't be read or shifted, none is reset. A group that isn't there is created by its first commit.`,
		Example: `  barnabas group reset audit --all-topics --to-start
  barnabas group reset audit --topic clicks:0,3 --to-offset 1200 --execute
  barnabas group reset audit --topic clicks --to-time 2006-01-02T15:04:05Z --execute
  barnabas group reset audit --topic clicks --by-duration 15m --execute
  barnabas group reset audit --all-topics --shift-by -100 --execute`,
		Args: exactly("GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return wrong(errors.New("the group's name is empty"))
			}
			target, err := r.target(cmd, time.Now())
			if err != nil {
				return err
			}
			asked, err := r.partitions()
			if err != nil {
				return err
			}
			if err := r.out.check(); err != nil {
				return err
			}
			return r.at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				return a.resetGroup(ctx, admin, &r, args[0], target, asked)
			})
		},
	}
	r.at.flags(cmd)
	r.out.flags(cmd)
	cmd.Flags().StringArrayVarP(&r.topics, "topic", "t", nil, "a topic, or partitions of it: TOPIC or TOPIC:N,N (may be repeated)")
	cmd.Flags().BoolVar(&r.all, "all-topics", false, "all partitions in which the group has committed")
	cmd.Flags().BoolVar(&r.execute, "execute", false, "do it, not only show it")
	cmd.Flags().BoolVar(&r.start, "to-start", false, "to the start of the log")
	cmd.Flags().BoolVar(&r.end, "to-end", false, "to the end of the log")
	cmd.Flags().Int64Var(&r.offset, "to-offset", 0, "to this offset")
	cmd.Flags().StringVar(&r.time, "to-time", "", "to the first record that isn't older than this time")
	cmd.Flags().DurationVar(&r.duration, "by-duration", 0, "to the first record that isn't older than so long")
	cmd.Flags().Int64Var(&r.shift, "shift-by", 0, "so many records on from the committed offset, or back when negative")
	return cmd
}

// target is where the flags say that the group is to go on.
func (r *groupReset) target(cmd *cobra.Command, now time.Time) (groups.Target, error) {
	var given []string
	for _, name := range []string{"to-start", "to-end", "to-offset", "to-time", "by-duration", "shift-by"} {
		if cmd.Flags().Changed(name) {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		return groups.Target{}, wrong(fmt.Errorf("want one of --to-start, --to-end, --to-offset, --to-time, --by-duration and --shift-by, not %d", len(given)))
	}
	switch given[0] {
	case "to-start":
		if r.start {
			return groups.Target{Kind: groups.ToStart}, nil
		}
	case "to-end":
		if r.end {
			return groups.Target{Kind: groups.ToEnd}, nil
		}
	case "to-offset":
		if r.offset >= 0 {
			return groups.Target{Kind: groups.ToOffset, Count: r.offset}, nil
		}
		return groups.Target{}, wrong(fmt.Errorf("--to-offset: want no negative offset, not %d; --shift-by goes back", r.offset))
	case "to-time":
		if t, ok := parseTime(r.time); ok && t.UnixMilli() >= 0 {
			return groups.Target{Kind: groups.ToTime, Time: t}, nil
		}
		return groups.Target{}, wrong(fmt.Errorf("--to-time: want a time since 1970 such as 2006-01-02T15:04:05Z, not %q", r.time))
	case "by-duration":
		if t := now.Add(-r.duration); r.duration >= 0 && t.UnixMilli() >= 0 {
			return groups.Target{Kind: groups.ToTime, Time: t}, nil
		}
		return groups.Target{}, wrong(fmt.Errorf("--by-duration: want how long ago, such as 15m, not %s", r.duration))
	case "shift-by":
		return groups.Target{Kind: groups.ShiftBy, Count: r.shift}, nil
	}
	return groups.Target{}, wrong(fmt.Errorf("--%s: false says nothing about where to go on", given[0]))
}

// partitions reads --topic: the partitions of each topic, none for all.
func (r *groupReset) partitions() (map[string][]int32, error) {
	if r.all == (len(r.topics) > 0) {
		return nil, wrong(errors.New("want either --all-topics or --topic"))
	}
	asked := map[string][]int32{}
	for _, text := range r.topics {
		topic, list, some := strings.Cut(text, ":")
		if _, twice := asked[topic]; twice || topic == "" {
			return nil, wrong(fmt.Errorf("--topic: want each topic once, as TOPIC or TOPIC:N,N, not %q", text))
		}
		asked[topic] = nil
		if !some {
			continue
		}
		seen := map[int32]bool{}
		for _, number := range strings.Split(list, ",") {
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil || n < 0 || seen[int32(n)] {
				return nil, wrong(fmt.Errorf("--topic: want the numbers of partitions, each once, as in TOPIC:0,3, not %q", text))
			}
			seen[int32(n)] = true
			asked[topic] = append(asked[topic], int32(n))
		}
	}
	return asked, nil
}

// resetView is a reset as it is printed for programs.
type resetView struct {
	Group    string     `json:"group"`
	Executed bool       `json:"executed"`
	Offsets  []moveView `json:"offsets"`
}

type moveView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed"` // before
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	New       int64  `json:"new"`
	Adjusted  bool   `json:"adjusted"` // the target was outside of start and end
}

func (a *app) resetGroup(ctx context.Context, admin *kadm.Client, r *groupReset, name string, target groups.Target, asked map[string][]int32) error {
	described, err := groups.Describe(ctx, admin, name)
	if err != nil {
		return err
	}
	g := described[0]
	if len(g.Members) > 0 || g.State != groups.Empty && g.State != groups.Dead {
		return hasMembers(name, fmt.Errorf("it is %s, with %s", strings.ToLower(g.State), counted(len(g.Members), "member")))
	}
	committed, err := groups.Committed(ctx, admin, name)
	if err != nil {
		return err
	}
	of, err := a.resetting(ctx, admin, name, committed[name], asked)
	if err != nil {
		return err
	}
	bounds, err := target.Bounds(ctx, admin, of)
	if err != nil {
		return err
	}
	moves, err := target.Plan(bounds)
	if err != nil {
		return err
	}
	if r.execute {
		if err := commitMoves(ctx, admin, name, moves); err != nil {
			return err
		}
	}
	return r.out.print(a, viewMoves(name, r.execute, moves), func() { a.printMoves(name, r.execute, moves) })
}

func hasMembers(name string, err error) error {
	return fmt.Errorf("reset group %s: it has members, which have to stop first: `barnabas group describe %s` shows them: %w", name, name, err)
}

// resetting gives the partitions to reset, with what is committed there: those that were asked for or, with none, all that
// have a commit and still exist.
func (a *app) resetting(ctx context.Context, admin *kadm.Client, name string, committed []groups.Offset, asked map[string][]int32) ([]groups.Offset, error) {
	var names []string
	for topic := range asked {
		names = append(names, topic)
	}
	if len(asked) == 0 {
		for _, o := range committed {
			names = append(names, o.Topic)
		}
	}
	if len(names) == 0 { // kadm would list all topics
		return nil, fmt.Errorf("reset group %s: it has committed nothing, so that --all-topics names none: use --topic", name)
	}
	topics, err := admin.ListTopicsWithInternal(ctx, once(names)...)
	if err != nil {
		return nil, err
	}
	of, gone, err := groups.Select(topics, committed, asked)
	if err != nil {
		return nil, fmt.Errorf("reset group %s: %w", name, err)
	}
	for _, o := range gone {
		fmt.Fprintf(a.err, "%s-%d is left out: it doesn't exist any more\n", o.Topic, o.Partition)
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("reset group %s: none of the partitions exists any more", name)
	}
	return of, nil
}

// commitMoves commits as somebody who is no member, which brokers refuse when the group has got members meanwhile.
func commitMoves(ctx context.Context, admin *kadm.Client, name string, moves []groups.Move) error {
	var offsets kadm.Offsets
	for _, m := range moves {
		offsets.Add(kadm.Offset{Topic: m.Topic, Partition: m.Partition, At: m.To, LeaderEpoch: -1})
	}
	committed, err := admin.CommitOffsets(ctx, name, offsets)
	if err != nil {
		return fmt.Errorf("commit offsets of group %s: %w", name, err)
	}
	var errs []error
	for _, c := range committed.Sorted() {
		if errors.Is(c.Err, kerr.UnknownMemberID) {
			return hasMembers(name, c.Err)
		}
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("commit the offset of group %s in %s-%d: %w", name, c.Topic, c.Partition, c.Err))
		}
	}
	return errors.Join(errs...)
}

func viewMoves(name string, executed bool, moves []groups.Move) resetView {
	v := resetView{Group: name, Executed: executed, Offsets: []moveView{}}
	for _, m := range moves {
		v.Offsets = append(v.Offsets, moveView{m.Topic, m.Partition, known(m.Committed), m.Start, m.End, m.To, m.Adjusted})
	}
	return v
}

func (a *app) printMoves(name string, executed bool, moves []groups.Move) {
	t := newTable()
	t.AppendHeader(table.Row{"topic", "partition", "start", "end", "committed", "new", ""})
	for _, m := range moves {
		note := ""
		if m.Adjusted {
			note = "adjusted to the log"
		}
		t.AppendRow(table.Row{m.Topic, m.Partition, m.Start, m.End, offsetText(m.Committed), m.To, note})
	}
	fmt.Fprintln(a.out, t.Render())
	if executed {
		fmt.Fprintf(a.out, "\ngroup %s is reset in %s\n", name, counted(len(moves), "partition"))
	} else {
		fmt.Fprintf(a.out, "\nnothing is changed: --execute resets group %s in %s\n", name, counted(len(moves), "partition"))
	}
}
