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

	"github.com/barnabas-mq/barnabas/cmd/barnabas/groups"
)

// groupView is a group as it is printed for programs. What isn't known is null.
type groupView struct {
	Group       string       `json:"group"`
	State       string       `json:"state"`
	Type        string       `json:"type"`
	Protocol    string       `json:"protocol"`
	Assignor    string       `json:"assignor"`
	Coordinator int32        `json:"coordinator"`
	Lag         int64        `json:"lag"` // over the partitions where it is known
	Partitions  int          `json:"partitions"`
	Uncommitted int          `json:"uncommitted"` // partitions without a commit
	Unread      int          `json:"unread"`      // partitions whose offsets couldn't be read
	MemberCount int          `json:"member_count"`
	Members     []memberView `json:"members,omitzero"` // only when asked for, as are offsets
	Offsets     []offsetView `json:"offsets,omitzero"`
}

type memberView struct {
	ID       string             `json:"id"`
	Instance string             `json:"instance,omitempty"`
	Client   string             `json:"client"`
	Host     string             `json:"host"`
	Assigned map[string][]int32 `json:"assigned"`
}

type offsetView struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Committed *int64  `json:"committed"`
	End       *int64  `json:"end"`
	Lag       *int64  `json:"lag"`
	Member    *string `json:"member"`
	Error     string  `json:"error,omitempty"`
}

// viewGroups makes the views; members and offsets only when asked for.
func viewGroups(list []groups.Group, members, offsets bool) []groupView {
	views := make([]groupView, len(list))
	for i, g := range list {
		total := g.Total()
		v := groupView{
			Group: g.Name, State: g.State, Type: g.Type, Protocol: g.Protocol, Assignor: g.Assignor, Coordinator: g.Coordinator,
			Lag: total.Lag, Partitions: total.Partitions, Uncommitted: total.Uncommitted, Unread: total.Unread, MemberCount: len(g.Members),
		}
		if members {
			v.Members = []memberView{}
			for _, m := range g.Members {
				if m.Assigned == nil {
					m.Assigned = map[string][]int32{}
				}
				v.Members = append(v.Members, memberView{m.ID, m.Instance, m.Client, m.Host, m.Assigned})
			}
		}
		if offsets {
			v.Offsets = []offsetView{}
			for _, o := range g.Offsets {
				v.Offsets = append(v.Offsets, viewOffset(o))
			}
		}
		views[i] = v
	}
	return views
}

func viewOffset(o groups.Offset) offsetView {
	v := offsetView{Topic: o.Topic, Partition: o.Partition, Committed: known(o.Committed), End: known(o.End)}
	if lag, ok := o.Lag(); ok {
		v.Lag = &lag
	}
	if o.Member != nil {
		v.Member = &o.Member.ID
	}
	if o.Err != nil {
		v.Error = o.Err.Error()
	}
	return v
}

// known gives nil for an offset that isn't known.
func known(offset int64) *int64 {
	if offset < 0 {
		return nil
	}
	return &offset
}

// offsetTexts gives the columns of a table: "-" for what isn't there, "?" for what couldn't be read.
func offsetTexts(o groups.Offset) (committed, end, lag string) {
	committed, end, lag = offsetText(o.Committed), offsetText(o.End), "-"
	if n, ok := o.Lag(); ok {
		lag = strconv.FormatInt(n, 10)
	}
	if o.Err != nil {
		if o.Committed < 0 && o.End >= 0 {
			committed = "?"
		}
		if o.End < 0 {
			end = "?"
		}
		lag = "?"
	}
	return committed, end, lag
}

func offsetText(offset int64) string {
	if offset < 0 {
		return "-"
	}
	return strconv.FormatInt(offset, 10)
}

func newGroupLag(a *app) *cobra.Command {
	var at remote
	var out output
	var summary bool
	cmd := &cobra.Command{
		Use:   "lag [GROUP...]",
		Short: "Show how far groups are behind: those that are named, or all",
		Long: `Shows how far groups are behind, partition by partition: those that are named, or all.

The lag is what lies between the committed offset and the partition's end (its high watermark), and never negative. Where
nothing is committed there is none ("-"): the client decides where it would begin. Such partitions are shown when a member
of the group reads them; groups without any partition are shown, too. A "?" stands for what couldn't be read, because the
partition is gone or its leader doesn't answer; the latter makes the exit code 1.`,
		Example: `  barnabas group lag audit
  barnabas group lag --summary
  barnabas group lag audit --output json | jq '.[0].lag'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return some("groups")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				list, err := lagging(ctx, admin, names)
				if err != nil {
					return err
				}
				err = out.print(a, viewGroups(list, false, !summary), func() {
					if summary {
						fmt.Fprintln(a.out, lagSummary(list).Render())
					} else {
						fmt.Fprintln(a.out, lagTable(list).Render())
					}
				})
				return errors.Join(err, unread(list))
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	cmd.Flags().BoolVar(&summary, "summary", false, "one line a group")
	return cmd
}

// lagging reads the groups that are named, or all.
func lagging(ctx context.Context, admin *kadm.Client, names []string) ([]groups.Group, error) {
	if len(names) > 0 {
		return readGroups(ctx, admin, names)
	}
	listed, err := groups.List(ctx, admin)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	for _, g := range listed {
		if groups.Consumes(g) {
			names = append(names, g.Group)
		}
	}
	list, err := groups.Read(ctx, admin, names...)
	if err != nil {
		return nil, err
	}
	there := list[:0]
	for _, g := range list {
		if g.State != groups.Dead { // deleted meanwhile
			there = append(there, g)
		}
	}
	return there, nil
}

func lagTable(list []groups.Group) table.Writer {
	t := newTable()
	t.AppendHeader(table.Row{"group", "topic", "partition", "committed", "end", "lag", "client", "host"})
	for _, g := range list {
		for _, o := range g.Offsets {
			client, host := "-", "-"
			if o.Member != nil {
				client, host = o.Member.Client, o.Member.Host
			}
			committed, end, lag := offsetTexts(o)
			t.AppendRow(table.Row{g.Name, o.Topic, o.Partition, committed, end, lag, client, host})
		}
		if len(g.Offsets) == 0 {
			t.AppendRow(table.Row{g.Name, "-", "-", "-", "-", "-", "-", "-"})
		}
	}
	return t
}

func lagSummary(list []groups.Group) table.Writer {
	t := newTable()
	t.AppendHeader(table.Row{"group", "state", "members", "partitions", "uncommitted", "unread", "lag"})
	for _, g := range list {
		total := g.Total()
		lag := strconv.FormatInt(total.Lag, 10)
		if total.Uncommitted+total.Unread == total.Partitions { // none is known
			lag = "-"
		}
		t.AppendRow(table.Row{g.Name, strings.ToLower(g.State), len(g.Members), total.Partitions, total.Uncommitted, total.Unread, lag})
	}
	return t
}
