package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// listedTopic is a topic as `topic list` prints it.
type listedTopic struct {
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	Replicas   int    `json:"replicas"` // of the partition that has most
	Internal   bool   `json:"internal"`
}

func newTopicList(a *app) *cobra.Command {
	var at remote
	var out output
	var internal bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List topics",
		Example: `  barnabas topic list --internal
  barnabas topic list --output json | jq -r '.[].topic'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				topics, err := listed(ctx, admin, internal)
				if err != nil {
					return err
				}
				list := []listedTopic{}
				t := newTable()
				t.AppendHeader(table.Row{"topic", "partitions", "replicas"})
				for _, topic := range topics.Sorted() {
					replicas := 0
					for _, p := range topic.Partitions {
						replicas = max(replicas, len(p.Replicas))
					}
					list = append(list, listedTopic{topic.Topic, len(topic.Partitions), replicas, topic.IsInternal})
					t.AppendRow(table.Row{topic.Topic, len(topic.Partitions), replicas})
				}
				return out.print(a, list, func() { fmt.Fprintln(a.out, t.Render()) })
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	cmd.Flags().BoolVar(&internal, "internal", false, "the broker's own topics, too")
	return cmd
}

func listed(ctx context.Context, admin *kadm.Client, internal bool) (kadm.TopicDetails, error) {
	if internal {
		return admin.ListTopicsWithInternal(ctx)
	}
	return admin.ListTopics(ctx)
}

// describedTopic is a topic as `topic describe` prints it. What isn't known is null.
type describedTopic struct {
	Topic      string               `json:"topic"`
	ID         string               `json:"id"` // as Kafka's tools write it
	Partitions []describedPartition `json:"partitions"`
	Configs    []configView         `json:"configs"`
}

type describedPartition struct {
	Partition int32   `json:"partition"`
	Leader    *int32  `json:"leader"`
	Epoch     int32   `json:"leader_epoch"`
	Replicas  []int32 `json:"replicas"`
	InSync    []int32 `json:"in_sync"`
	Start     *int64  `json:"start"`
	End       *int64  `json:"end"`
}

func newTopicDescribe(a *app) *cobra.Command {
	var at remote
	var out output
	var all bool
	cmd := &cobra.Command{
		Use:   "describe TOPIC",
		Short: "Show a topic's partitions, with their offsets, and its configuration",
		Example: `  barnabas topic describe clicks --all-configs
  barnabas topic describe clicks --output yaml`,
		Args: exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				topic, err := describeTopic(ctx, admin, args[0], all)
				if err != nil {
					return err
				}
				return out.print(a, topic, func() { a.printTopic(topic) })
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	cmd.Flags().BoolVar(&all, "all-configs", false, "the whole configuration, not only what was set for this topic")
	return cmd
}

func describeTopic(ctx context.Context, admin *kadm.Client, name string, all bool) (d describedTopic, err error) {
	topics, err := admin.ListTopicsWithInternal(ctx, name)
	if err != nil {
		return d, err
	}
	topic, ok := topics[name]
	if !ok {
		topic.Err = kerr.UnknownTopicOrPartition
	}
	if topic.Err != nil {
		return d, fmt.Errorf("describe topic %s: %w", name, topic.Err)
	}
	starts, err := admin.ListStartOffsets(ctx, name)
	if err != nil {
		return d, err
	}
	ends, err := admin.ListEndOffsets(ctx, name)
	if err != nil {
		return d, err
	}
	offset := func(all kadm.ListedOffsets, partition int32) *int64 {
		if o, ok := all.Lookup(name, partition); ok && o.Err == nil {
			return &o.Offset
		}
		return nil
	}
	d.Topic, d.ID = name, base64.RawURLEncoding.EncodeToString(topic.ID[:])
	for _, p := range topic.Partitions.Sorted() {
		one := describedPartition{p.Partition, nil, p.LeaderEpoch, p.Replicas, p.ISR, offset(starts, p.Partition), offset(ends, p.Partition)}
		if p.Leader >= 0 {
			one.Leader = &p.Leader
		}
		d.Partitions = append(d.Partitions, one)
	}
	resources, err := admin.DescribeTopicConfigs(ctx, name)
	if err != nil {
		return d, err
	}
	resource, err := resources.On(name, nil)
	if err == nil {
		err = resource.Err
	}
	if err != nil {
		return d, fmt.Errorf("describe the configuration of %s: %w", name, err)
	}
	d.Configs = viewConfigs(resource.Configs, "DYNAMIC_TOPIC_CONFIG")
	if all {
		d.Configs = viewConfigs(resource.Configs)
	}
	return d, nil
}

func (a *app) printTopic(d describedTopic) {
	fmt.Fprintf(a.out, "topic %s, id %s\n\n", d.Topic, d.ID)
	t := newTable()
	t.AppendHeader(table.Row{"partition", "leader", "epoch", "replicas", "in sync", "start", "end"})
	offset := func(o *int64) any {
		if o == nil {
			return "?"
		}
		return *o
	}
	for _, p := range d.Partitions {
		leader := any("none")
		if p.Leader != nil {
			leader = *p.Leader
		}
		t.AppendRow(table.Row{p.Partition, leader, p.Epoch, numbers(p.Replicas), numbers(p.InSync), offset(p.Start), offset(p.End)})
	}
	fmt.Fprintln(a.out, t.Render())
	if len(d.Configs) == 0 {
		fmt.Fprintln(a.out, "\nno configuration of its own: --all-configs shows what is in force")
		return
	}
	fmt.Fprintln(a.out, "\n"+configTable(d.Configs).Render())
}

func numbers(ids []int32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
}
