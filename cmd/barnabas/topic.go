package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newTopic(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "topic", Short: "Create, list, describe, change and delete topics"}
	cmd.AddCommand(newTopicCreate(a), newTopicList(a), newTopicDescribe(a), newTopicDelete(a),
		newTopicAddPartitions(a), newTopicElectLeaders(a), newTopicReassign(a))
	return cmd
}

func newTopicCreate(a *app) *cobra.Command {
	var at remote
	var partitions int32
	var replicas int16
	var configs []string
	cmd := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic",
		Example: `  barnabas topic create clicks --partitions 6
  barnabas topic create users --config cleanup.policy=compact`,
		Args: exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			values := map[string]*string{}
			for _, c := range configs {
				name, value, ok := strings.Cut(c, "=")
				if !ok || name == "" {
					return wrong(fmt.Errorf("--config: want NAME=VALUE, not %q", c))
				}
				values[name] = &value
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				made, err := admin.CreateTopic(ctx, partitions, replicas, values, args[0])
				if err != nil {
					return fmt.Errorf("create topic %s: %w", args[0], detailed(err, made.ErrMessage))
				}
				count := made.NumPartitions
				if count < 0 { // a broker that doesn't tell
					count = max(partitions, 1)
				}
				fmt.Fprintf(a.out, "topic %s created, with %s\n", args[0], counted(int(count), "partition"))
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().Int32VarP(&partitions, "partitions", "p", -1, "partitions; -1 leaves it to the broker")
	cmd.Flags().Int16VarP(&replicas, "replication-factor", "r", -1, "replicas of each partition; -1 leaves it to the broker")
	cmd.Flags().StringArrayVarP(&configs, "config", "c", nil, "a configuration of the topic, NAME=VALUE (may be repeated)")
	return cmd
}

// counted gives a number and a noun, in the plural when need be.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// detailed adds what the broker said to an error, unless it is what the error says already.
func detailed(err error, message string) error {
	if message == "" || strings.Contains(err.Error(), message) {
		return err
	}
	return fmt.Errorf("%w: %s", err, message)
}

func newTopicList(a *app) *cobra.Command {
	var at remote
	var internal bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List topics",
		Example: "  barnabas topic list --internal",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				topics, err := listed(ctx, admin, internal)
				if err != nil {
					return err
				}
				t := newTable()
				t.AppendHeader(table.Row{"topic", "partitions", "replicas"})
				for _, topic := range topics.Sorted() {
					replicas := 0
					for _, p := range topic.Partitions {
						replicas = max(replicas, len(p.Replicas))
					}
					t.AppendRow(table.Row{topic.Topic, len(topic.Partitions), replicas})
				}
				fmt.Fprintln(a.out, t.Render())
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVar(&internal, "internal", false, "the broker's own topics, too")
	return cmd
}

func listed(ctx context.Context, admin *kadm.Client, internal bool) (kadm.TopicDetails, error) {
	if internal {
		return admin.ListTopicsWithInternal(ctx)
	}
	return admin.ListTopics(ctx)
}

func newTopicDescribe(a *app) *cobra.Command {
	var at remote
	var all bool
	cmd := &cobra.Command{
		Use:     "describe TOPIC",
		Short:   "Show a topic's partitions, with their offsets, and its configuration",
		Example: "  barnabas topic describe clicks --all-configs",
		Args:    exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				if err := a.describePartitions(ctx, admin, args[0]); err != nil {
					return err
				}
				return a.describeConfigs(ctx, admin, args[0], all)
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVar(&all, "all-configs", false, "the whole configuration, not only what was set for this topic")
	return cmd
}

func (a *app) describePartitions(ctx context.Context, admin *kadm.Client, name string) error {
	topics, err := admin.ListTopicsWithInternal(ctx, name)
	if err != nil {
		return err
	}
	topic, ok := topics[name]
	if !ok {
		topic.Err = kerr.UnknownTopicOrPartition
	}
	if topic.Err != nil {
		return fmt.Errorf("describe topic %s: %w", name, topic.Err)
	}
	starts, err := admin.ListStartOffsets(ctx, name)
	if err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx, name)
	if err != nil {
		return err
	}
	offset := func(all kadm.ListedOffsets, partition int32) any {
		if o, ok := all.Lookup(name, partition); ok && o.Err == nil {
			return o.Offset
		}
		return "?"
	}
	fmt.Fprintf(a.out, "topic %s, id %s\n\n", name, base64.RawURLEncoding.EncodeToString(topic.ID[:])) // as Kafka's tools write it
	t := newTable()
	t.AppendHeader(table.Row{"partition", "leader", "epoch", "replicas", "in sync", "start", "end"})
	for _, p := range topic.Partitions.Sorted() {
		leader := any(p.Leader)
		if p.Leader < 0 {
			leader = "none"
		}
		t.AppendRow(table.Row{p.Partition, leader, p.LeaderEpoch, numbers(p.Replicas), numbers(p.ISR), offset(starts, p.Partition), offset(ends, p.Partition)})
	}
	fmt.Fprintln(a.out, t.Render())
	return nil
}

func numbers(ids []int32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
}

func (a *app) describeConfigs(ctx context.Context, admin *kadm.Client, name string, all bool) error {
	resources, err := admin.DescribeTopicConfigs(ctx, name)
	if err != nil {
		return err
	}
	resource, err := resources.On(name, nil)
	if err != nil {
		return fmt.Errorf("describe the configuration of %s: %w", name, err)
	}
	t := newTable()
	t.AppendHeader(table.Row{"configuration", "value", "from"})
	slices.SortFunc(resource.Configs, func(x, y kadm.Config) int { return strings.Compare(x.Key, y.Key) })
	for _, c := range resource.Configs {
		source := c.Source.String()
		own := source == "DYNAMIC_TOPIC_CONFIG"
		if own || all {
			t.AppendRow(table.Row{c.Key, c.MaybeValue(), strings.ToLower(strings.ReplaceAll(source, "_", " "))})
		}
	}
	if t.Length() == 0 {
		fmt.Fprintln(a.out, "\nno configuration of its own: --all-configs shows what is in force")
		return nil
	}
	fmt.Fprintln(a.out, "\n"+t.Render())
	return nil
}

func newTopicDelete(a *app) *cobra.Command {
	var at remote
	cmd := &cobra.Command{
		Use:     "delete TOPIC...",
		Short:   "Delete topics and all that is in them",
		Example: "  barnabas topic delete clicks users",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrong(fmt.Errorf("%s wants the names of topics: %s", cmd.CommandPath(), cmd.UseLine()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				deleted, err := admin.DeleteTopics(ctx, args...)
				if err != nil {
					return err
				}
				var errs []error
				for _, d := range deleted.Sorted() {
					if d.Err != nil {
						errs = append(errs, fmt.Errorf("delete topic %s: %w", d.Topic, detailed(d.Err, d.ErrMessage)))
						continue
					}
					fmt.Fprintf(a.out, "topic %s deleted\n", d.Topic)
				}
				return errors.Join(errs...)
			})
		},
	}
	at.flags(cmd)
	return cmd
}
