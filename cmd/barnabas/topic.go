package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

func newTopic(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "topic", Short: "Create, list, describe, change and delete topics"}
	cmd.AddCommand(newTopicCreate(a), newTopicList(a), newTopicDescribe(a), newTopicAlter(a), newTopicDelete(a),
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
