package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/groups"
)

func newGroup(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "group", Short: "List, describe, reset and delete consumer groups, and show their lag"}
	cmd.AddCommand(newGroupList(a), newGroupDescribe(a), newGroupLag(a), newGroupReset(a), newGroupDelete(a))
	return cmd
}

// listedGroup is a group as `group list` prints it.
type listedGroup struct {
	Group       string `json:"group"`
	State       string `json:"state"`
	Type        string `json:"type"`
	Protocol    string `json:"protocol"`
	Coordinator int32  `json:"coordinator"`
}

func newGroupList(a *app) *cobra.Command {
	var at remote
	var out output
	var states []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List groups",
		Example: `  barnabas group list
  barnabas group list --state empty,stable --output json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				found, err := groups.List(ctx, admin)
				list := []listedGroup{}
				t := newTable()
				t.AppendHeader(table.Row{"group", "state", "type", "protocol", "coordinator"})
				for _, g := range found {
					if len(states) > 0 && !among(g.State, states) {
						continue
					}
					list = append(list, listedGroup{g.Group, g.State, g.GroupType, g.ProtocolType, g.Coordinator})
					t.AppendRow(table.Row{g.Group, orDash(g.State), orDash(g.GroupType), orDash(g.ProtocolType), g.Coordinator})
				}
				if err != nil { // what the other brokers said is worth seeing, but isn't all
					err = fmt.Errorf("list groups: %w", err)
					if len(list) == 0 {
						return err
					}
				}
				return errors.Join(out.print(a, list, func() { fmt.Fprintln(a.out, t.Render()) }), err)
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these states, comma separated: stable, empty, ...")
	return cmd
}

// among looks a word up, in capitals or not.
func among(word string, words []string) bool {
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func newGroupDescribe(a *app) *cobra.Command {
	var at remote
	var out output
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show the members of groups, and how far they are",
		Example: `  barnabas group describe audit
  barnabas group describe audit billing --output yaml`,
		Args: some("groups"),
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				list, err := readGroups(ctx, admin, names)
				if err != nil {
					return err
				}
				err = out.print(a, viewGroups(list, true, true), func() {
					for i, g := range list {
						if i > 0 {
							fmt.Fprintln(a.out)
						}
						a.describeGroup(g)
					}
				})
				return errors.Join(err, unread(list))
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	return cmd
}

// some wants at least one argument, each of them not empty, and calls anything else wrong.
func some(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for _, arg := range args {
			if arg == "" {
				return wrong(fmt.Errorf("%s: a name is empty", cmd.CommandPath()))
			}
		}
		if len(args) == 0 {
			return wrong(fmt.Errorf("%s wants the names of %s: %s", cmd.CommandPath(), what, cmd.UseLine()))
		}
		return nil
	}
}

// readGroups reads groups, each once, and fails when one of them isn't there.
func readGroups(ctx context.Context, admin *kadm.Client, names []string) ([]groups.Group, error) {
	list, err := groups.Read(ctx, admin, once(names)...)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		if g.State == groups.Dead {
			return nil, noGroup(g.Name, kerr.GroupIDNotFound)
		}
	}
	return list, nil
}

func noGroup(name string, err error) error {
	return fmt.Errorf("no such group: %s: `barnabas group list` shows all: %w", name, err)
}

// once leaves out what was there before.
func once(names []string) (list []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return list
}

// unread is an error when a lag couldn't be found out. Topics that were deleted have none, which is no error.
func unread(list []groups.Group) error {
	var errs []error
	for _, g := range list {
		for _, o := range g.Offsets {
			if o.Err != nil && !errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
				errs = append(errs, fmt.Errorf("group %s: the lag in %s-%d isn't known: %w", g.Name, o.Topic, o.Partition, o.Err))
			}
		}
	}
	return errors.Join(errs...)
}

func (a *app) describeGroup(g groups.Group) {
	fmt.Fprintf(a.out, "group %s: %s, %s, coordinator: broker %d", g.Name, strings.ToLower(g.State), counted(len(g.Members), "member"), g.Coordinator)
	if g.Assignor != "" {
		fmt.Fprintf(a.out, ", assignor: %s", g.Assignor)
	}
	total := g.Total()
	fmt.Fprintf(a.out, "; lag %d in %s\n", total.Lag, counted(total.Partitions, "partition"))
	if total.Uncommitted > 0 {
		fmt.Fprintf(a.out, "nothing is committed in %s\n", counted(total.Uncommitted, "partition"))
	}
	if len(g.Members) > 0 {
		t := newTable()
		t.AppendHeader(table.Row{"member", "instance", "client", "host", "partitions"})
		for _, m := range g.Members {
			t.AppendRow(table.Row{m.ID, orDash(m.Instance), m.Client, m.Host, m.Partitions()})
		}
		fmt.Fprintln(a.out, "\n"+t.Render())
	}
	if len(g.Offsets) > 0 {
		t := newTable()
		t.AppendHeader(table.Row{"topic", "partition", "committed", "end", "lag", "member"})
		for _, o := range g.Offsets {
			member := "-"
			if o.Member != nil {
				member = o.Member.ID
			}
			committed, end, lag := offsetTexts(o)
			t.AppendRow(table.Row{o.Topic, o.Partition, committed, end, lag, member})
		}
		fmt.Fprintln(a.out, "\n"+t.Render())
	}
}

func newGroupDelete(a *app) *cobra.Command {
	var at remote
	cmd := &cobra.Command{
		Use:     "delete GROUP...",
		Short:   "Delete groups without members, with all that they committed",
		Example: "  barnabas group delete audit billing",
		Args:    some("groups"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				deleted, err := admin.DeleteGroups(ctx, once(names)...)
				var errs []error
				for _, d := range deleted.Sorted() {
					switch {
					case errors.Is(d.Err, kerr.GroupIDNotFound):
						errs = append(errs, noGroup(d.Group, d.Err))
					case errors.Is(d.Err, kerr.NonEmptyGroup):
						errs = append(errs, fmt.Errorf("delete group %s: it has members, which have to stop first: `barnabas group describe %s` shows them: %w", d.Group, d.Group, d.Err))
					case d.Err != nil:
						errs = append(errs, fmt.Errorf("delete group %s: %w", d.Group, detailed(d.Err, d.ErrMessage)))
					default:
						fmt.Fprintf(a.out, "group %s deleted\n", d.Group)
					}
				}
				return errors.Join(append(errs, err)...)
			})
		},
	}
	at.flags(cmd)
	return cmd
}
