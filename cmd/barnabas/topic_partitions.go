package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newTopicAddPartitions(a *app) *cobra.Command {
	var at remote
	var add, total int
	cmd := &cobra.Command{
		Use:   "add-partitions TOPIC",
		Short: "Give a topic more partitions",
		Long: `Gives a topic more partitions. They never go away again, and from then on records with the same key may go to another
partition than before.`,
		Example: "  barnabas topic add-partitions clicks --total 12",
		Args:    exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (add > 0) == (total > 0) || add < 0 || total < 0 {
				return wrong(errors.New("want either --add or --total, a positive number of partitions"))
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				change := admin.UpdatePartitions
				n := total
				if add > 0 {
					change, n = admin.CreatePartitions, add
				}
				made, err := change(ctx, n, args[0])
				if err != nil {
					return err
				}
				one, err := made.On(args[0], nil)
				if err == nil && one.Err != nil {
					err = detailed(one.Err, one.ErrMessage)
				}
				if err != nil {
					return fmt.Errorf("add partitions to topic %s: %w", args[0], err)
				}
				if add > 0 {
					fmt.Fprintf(a.out, "topic %s has %s more\n", args[0], counted(add, "partition"))
				} else {
					fmt.Fprintf(a.out, "topic %s has %s\n", args[0], counted(total, "partition"))
				}
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().IntVar(&add, "add", 0, "how many partitions more")
	cmd.Flags().IntVar(&total, "total", 0, "how many partitions there shall be in all")
	return cmd
}

func newTopicElectLeaders(a *app) *cobra.Command {
	var at remote
	var unclean bool
	cmd := &cobra.Command{
		Use:   "elect-leaders [TOPIC|TOPIC:PARTITION...]",
		Short: "Let the preferred replicas lead, or with --unclean any that lives",
		Long: `Makes the preferred replica, the first that is assigned, leader of each partition: of those that are named, or of all.

With --unclean it elects, for partitions without a leader, a replica that isn't in sync. What only the others have is lost. It
wants the partitions to be named.`,
		Example: `  barnabas topic elect-leaders
  barnabas topic elect-leaders clicks orders:3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			how := kadm.ElectPreferredReplica
			if unclean {
				how = kadm.ElectLiveReplica
				if len(args) == 0 {
					return wrong(errors.New("--unclean loses records: name the topics or partitions"))
				}
			}
			named, err := parsePartitions(args)
			if err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				return a.electLeaders(ctx, admin, how, named)
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVar(&unclean, "unclean", false, "elect replicas that aren't in sync, and lose records")
	return cmd
}

// parsePartitions reads TOPIC and TOPIC:PARTITION. A topic with no partitions stands for all of it.
func parsePartitions(args []string) (kadm.TopicsSet, error) {
	set := kadm.TopicsSet{}
	for _, arg := range args {
		topic, number, one := strings.Cut(arg, ":")
		if topic == "" {
			return nil, wrong(fmt.Errorf("want TOPIC or TOPIC:PARTITION, not %q", arg))
		}
		if !one {
			set[topic] = nil
			continue
		}
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 {
			return nil, wrong(fmt.Errorf("want TOPIC:PARTITION with a number, not %q", arg))
		}
		if all, named := set[topic]; !named || len(all) > 0 { // not over the whole topic
			set.Add(topic, int32(n))
		}
	}
	return set, nil
}

func (a *app) electLeaders(ctx context.Context, admin *kadm.Client, how kadm.ElectLeadersHow, named kadm.TopicsSet) error {
	if err := allPartitions(ctx, admin, named); err != nil {
		return err
	}
	if len(named) == 0 {
		named = nil // all
	}
	results, err := admin.ElectLeaders(ctx, how, named)
	if err != nil {
		return fmt.Errorf("elect leaders: %w", err)
	}
	var errs []error
	var elected kadm.TopicsSet
	needless := 0
	for _, topic := range results {
		for _, r := range topic {
			switch {
			case r.Err == nil:
				elected.Add(r.Topic, r.Partition)
			case errors.Is(r.Err, kerr.ElectionNotNeeded):
				needless++
			default:
				errs = append(errs, fmt.Errorf("elect a leader of %s-%d: %w", r.Topic, r.Partition, detailed(r.Err, r.ErrMessage)))
			}
		}
	}
	if needless > 0 || len(elected) == 0 && len(errs) == 0 {
		fmt.Fprintf(a.out, "no election needed: %s\n", counted(needless, "partition"))
	}
	if err := a.printLeaders(ctx, admin, elected); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// allPartitions fills in the partitions of topics that have none.
func allPartitions(ctx context.Context, admin *kadm.Client, set kadm.TopicsSet) error {
	whole := set.EmptyTopics()
	if len(whole) == 0 {
		return nil
	}
	topics, err := admin.ListTopicsWithInternal(ctx, whole...)
	if err != nil {
		return err
	}
	for _, name := range whole {
		topic, ok := topics[name]
		if !ok {
			topic.Err = kerr.UnknownTopicOrPartition
		}
		if topic.Err != nil {
			return fmt.Errorf("topic %s: %w", name, topic.Err)
		}
		set.Add(name, topic.Partitions.Numbers()...)
	}
	return nil
}

func (a *app) printLeaders(ctx context.Context, admin *kadm.Client, of kadm.TopicsSet) error {
	if len(of) == 0 {
		return nil
	}
	topics, err := admin.ListTopicsWithInternal(ctx, of.Topics()...)
	if err != nil {
		return err
	}
	t := newTable()
	t.AppendHeader(table.Row{"partition", "leader", "replicas", "in sync"})
	for _, topic := range topics.Sorted() {
		for _, p := range topic.Partitions.Sorted() {
			if of.Lookup(p.Topic, p.Partition) {
				t.AppendRow(table.Row{fmt.Sprintf("%s-%d", p.Topic, p.Partition), p.Leader, numbers(p.Replicas), numbers(p.ISR)})
			}
		}
	}
	fmt.Fprintln(a.out, t.Render())
	return nil
}
