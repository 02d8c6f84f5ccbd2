package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/cluster"
	"github.com/barnabas-mq/barnabas/core/config"
)

// reassign is what `topic reassign` is asked to do.
type reassign struct {
	at       remote
	brokers  []int32
	replicas []string
	factor   int
	throttle string
	dryRun   bool
	noWait   bool
	list     bool
	watch    bool
	cancel   bool
}

func newTopicReassign(a *app) *cobra.Command {
	var r reassign
	cmd := &cobra.Command{
		Use:   "reassign [TOPIC...]",
		Short: "Move replicas to other brokers, or change their number",
		Long: `Moves the replicas of topics, all that are named or simply all, to the brokers that --brokers lists (default: those that are
alive) so that they share them evenly, in different racks as far as there are racks. What needn't move stays where it is.
--replication-factor changes the number of replicas. --replicas says exactly where one partition's replicas go.

It shows what it is going to do, does it, and waits with a progress bar until the new replicas have caught up. When it is
interrupted the brokers go on by themselves: --watch waits again. --throttle bounds what the move takes from the brokers;
when all is moved, or --watch has seen that, the bound is taken away.`,
		Example: `  barnabas topic reassign clicks orders --brokers 1,2,3 --throttle 50MiB
  barnabas topic reassign clicks --replicas 0=1,2,3 --replicas 1=2,3,1
  barnabas topic reassign --replication-factor 3 --dry-run
  barnabas topic reassign --watch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(args); err != nil {
				return err
			}
			return r.at.labour(cmd, func(ctx context.Context, admin *kadm.Client) error {
				return a.reassign(ctx, admin, r, args)
			})
		},
	}
	r.at.flags(cmd)
	f := cmd.Flags()
	f.Int32SliceVar(&r.brokers, "brokers", nil, "the brokers that shall have the replicas, by id")
	f.StringArrayVar(&r.replicas, "replicas", nil, "the replicas of one partition of one topic, PARTITION=ID,ID,… (may be repeated)")
	f.IntVarP(&r.factor, "replication-factor", "r", 0, "how many replicas each partition shall have (default: as many as it has)")
	f.StringVar(&r.throttle, "throttle", "", "how much each broker may send, and receive, for the move in a second, such as 50MiB")
	f.BoolVar(&r.dryRun, "dry-run", false, "only show what would be done")
	f.BoolVar(&r.noWait, "no-wait", false, "don't wait for the end")
	f.BoolVar(&r.list, "list", false, "list the reassignments that are going on, and do nothing else")
	f.BoolVar(&r.watch, "watch", false, "wait for those that are going on, and take the throttle away")
	f.BoolVar(&r.cancel, "cancel", false, "cancel those that are going on, of the topics or all")
	return cmd
}

// check finds what is wrong with the flags.
func (r reassign) check(topics []string) error {
	modes := 0
	for _, on := range []bool{r.list, r.watch, r.cancel} {
		if on {
			modes++
		}
	}
	plans := len(r.brokers) > 0 || len(r.replicas) > 0 || r.factor != 0
	switch {
	case modes > 1, modes == 1 && (plans || r.throttle != "" || r.dryRun || r.noWait):
		return wrong(errors.New("--list, --watch and --cancel go with nothing else"))
	case modes == 1 && !r.cancel && len(topics) > 0:
		return wrong(errors.New("--list and --watch are about all topics"))
	case modes == 0 && !plans && len(topics) == 0:
		return wrong(errors.New("nothing to do: name topics, or --brokers, --replication-factor or --replicas"))
	case len(r.replicas) > 0 && (len(topics) != 1 || len(r.brokers) > 0 || r.factor != 0):
		return wrong(errors.New("--replicas goes with one topic, and without --brokers and --replication-factor"))
	case r.factor < 0:
		return wrong(fmt.Errorf("--replication-factor: want a positive number, not %d", r.factor))
	}
	if _, err := r.replicaLists(); err != nil {
		return err
	}
	_, err := r.rate()
	return err
}

// rate is the throttle in bytes a second, 0 for none.
func (r reassign) rate() (int64, error) {
	if r.throttle == "" {
		return 0, nil
	}
	var n config.ByteSize
	if err := n.UnmarshalText([]byte(r.throttle)); err != nil || n < 1 {
		return 0, wrong(fmt.Errorf("--throttle: want a size such as 50MiB, not %q", r.throttle))
	}
	return int64(n), nil
}

// replicaLists reads --replicas.
func (r reassign) replicaLists() (map[int32][]int32, error) {
	lists := map[int32][]int32{}
	for _, text := range r.replicas {
		bad := wrong(fmt.Errorf("--replicas: want PARTITION=ID,ID,…, not %q", text))
		left, right, ok := strings.Cut(text, "=")
		partition, err := strconv.ParseInt(left, 10, 32)
		if !ok || err != nil || partition < 0 {
			return nil, bad
		}
		var list []int32
		for one := range strings.SplitSeq(right, ",") {
			id, err := strconv.ParseInt(one, 10, 32)
			if err != nil || id < 0 || slices.Contains(list, int32(id)) {
				return nil, bad
			}
			list = append(list, int32(id))
		}
		lists[int32(partition)] = list
	}
	return lists, nil
}

func (a *app) reassign(ctx context.Context, admin *kadm.Client, r reassign, topics []string) error {
	switch {
	case r.list:
		return a.listMoves(ctx, admin)
	case r.watch:
		return a.awaitMoves(ctx, admin)
	case r.cancel:
		return a.cancelMoves(ctx, admin, topics)
	}
	s, err := cluster.Read(ctx, admin)
	if err != nil {
		return err
	}
	changes, err := r.plan(s, topics)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintln(a.out, "nothing to do: everything is where it should be")
		return nil
	}
	printChanges(a.out, changes)
	if r.dryRun {
		return nil
	}
	rate, err := r.rate()
	if err != nil {
		return err
	}
	if rate > 0 {
		if err := throttle(ctx, admin, s, changes, rate); err != nil {
			return err
		}
	}
	if err := apply(ctx, admin, changes); err != nil {
		return err
	}
	if r.noWait {
		fmt.Fprintf(a.out, "%s begun; `barnabas topic reassign --watch` waits for the end\n", counted(len(changes), "reassignment"))
		return nil
	}
	return a.awaitMoves(ctx, admin)
}

// plan works out what is to change.
func (r reassign) plan(s cluster.State, topics []string) ([]cluster.Change, error) {
	for _, name := range topics {
		if len(s.Topic(name)) == 0 {
			return nil, fmt.Errorf("no topic %s: `barnabas topic list --internal` shows all", name)
		}
	}
	if len(r.replicas) > 0 {
		return r.planExactly(s.Topic(topics[0]))
	}
	brokers := s.Brokers
	if len(r.brokers) > 0 {
		brokers = nil
		for _, id := range r.brokers {
			b, ok := s.Broker(id)
			if !ok {
				return nil, fmt.Errorf("--brokers: no broker %d is alive: `barnabas cluster describe` shows all", id)
			}
			if !slices.Contains(brokers, b) {
				brokers = append(brokers, b)
			}
		}
	}
	var these, others []cluster.Partition
	for _, p := range s.Partitions {
		if len(topics) == 0 || slices.Contains(topics, p.Topic) {
			these = append(these, p)
		} else {
			others = append(others, p)
		}
	}
	return cluster.Spread(these, brokers, r.factor, others)
}

func (r reassign) planExactly(partitions []cluster.Partition) ([]cluster.Change, error) {
	lists, err := r.replicaLists()
	if err != nil {
		return nil, err
	}
	var changes []cluster.Change
	for _, p := range partitions {
		to, ok := lists[p.Number]
		delete(lists, p.Number)
		if ok && !slices.Equal(to, p.Replicas) {
			changes = append(changes, cluster.Change{Topic: p.Topic, Number: p.Number, Replicas: to, From: p.Replicas, Leader: p.Leader})
		}
	}
	for n := range lists {
		return nil, fmt.Errorf("--replicas: topic %s has no partition %d", partitions[0].Topic, n)
	}
	return changes, nil
}

func printChanges(w io.Writer, changes []cluster.Change) {
	t := newTable()
	t.AppendHeader(table.Row{"partition", "replicas", "become", "copies"})
	for _, c := range changes {
		t.AppendRow(table.Row{fmt.Sprintf("%s-%d", c.Topic, c.Number), numbers(c.From), numbers(c.Replicas), c.Moved()})
	}
	fmt.Fprintln(w, t.Render())
}

// apply asks for the changes. What the cluster refused is in the error; the rest goes on.
func apply(ctx context.Context, admin *kadm.Client, changes []cluster.Change) error {
	var req kadm.AlterPartitionAssignmentsReq
	for _, c := range changes {
		req.Assign(c.Topic, c.Number, c.Replicas)
	}
	return alter(ctx, admin, req)
}

func alter(ctx context.Context, admin *kadm.Client, req kadm.AlterPartitionAssignmentsReq) error {
	answers, err := admin.AlterPartitionAssignments(ctx, req)
	if err != nil {
		return fmt.Errorf("reassign: %w", err)
	}
	var errs []error
	for _, one := range answers.Sorted() {
		if one.Err != nil {
			errs = append(errs, fmt.Errorf("reassign %s-%d: %w", one.Topic, one.Partition, detailed(one.Err, one.ErrMessage)))
		}
	}
	return errors.Join(errs...)
}

func (a *app) listMoves(ctx context.Context, admin *kadm.Client) error {
	moves, err := cluster.Moves(ctx, admin)
	if err != nil {
		return err
	}
	if len(moves) == 0 {
		fmt.Fprintln(a.out, "no reassignment is going on")
		return nil
	}
	t := newTable()
	t.AppendHeader(table.Row{"partition", "adds", "removes"})
	for _, m := range moves {
		t.AppendRow(table.Row{m.Name(), someNumbers(m.Adding), someNumbers(m.Removing)})
	}
	fmt.Fprintln(a.out, t.Render())
	return nil
}

// awaitMoves waits until no reassignment goes on any more, and takes the throttles away.
func (a *app) awaitMoves(ctx context.Context, admin *kadm.Client) error {
	err := a.watch(ctx, "reassignments", func(ctx context.Context) (int, error) {
		moves, err := cluster.Moves(ctx, admin)
		return len(moves), err
	})
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("the brokers go on by themselves; `barnabas topic reassign --watch` waits again: %w", err)
	}
	if err != nil {
		return err
	}
	if err := unthrottle(ctx, admin); err != nil {
		return err
	}
	fmt.Fprintln(a.out, "done: no reassignment is going on")
	return nil
}

// cancelMoves cancels the reassignments of topics, or all of them.
func (a *app) cancelMoves(ctx context.Context, admin *kadm.Client, topics []string) error {
	moves, err := cluster.Moves(ctx, admin)
	if err != nil {
		return err
	}
	var req kadm.AlterPartitionAssignmentsReq
	n := 0
	for _, m := range moves {
		if len(topics) == 0 || slices.Contains(topics, m.Topic) {
			req.CancelAssign(m.Topic, m.Number)
			n++
		}
	}
	if n > 0 {
		if err := alter(ctx, admin, req); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "%s cancelled\n", counted(n, "reassignment"))
	if n == len(moves) {
		return unthrottle(ctx, admin)
	}
	return nil
}
