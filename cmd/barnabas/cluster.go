package main

import (
	"context"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/cluster"
)

func newCluster(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Show a cluster, and whether it is healthy"}
	cmd.AddCommand(newClusterDescribe(a), newClusterHealth(a))
	return cmd
}

func newClusterDescribe(a *app) *cobra.Command {
	var at remote
	var out output
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the brokers of a cluster and what each has",
		Example: `  barnabas cluster describe
  barnabas cluster describe --bootstrap kafka-1:9092,kafka-2:9092 --output json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				s, err := cluster.Read(ctx, admin)
				if err != nil {
					return err
				}
				return out.print(a, viewCluster(s), func() { a.describeCluster(s) })
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	return cmd
}

// clusterView is a cluster as it is printed for programs.
type clusterView struct {
	Cluster    string       `json:"cluster"`
	Controller *int32       `json:"controller"` // null when nobody is
	Topics     int          `json:"topics"`
	Partitions int          `json:"partitions"`
	Brokers    []brokerView `json:"brokers"`
	Moving     []movingView `json:"moving"`
}

type brokerView struct {
	Broker   int32  `json:"broker"`
	Address  string `json:"address"`
	Rack     string `json:"rack,omitempty"`
	Alive    bool   `json:"alive"`
	Leads    int    `json:"leads"`
	Prefers  int    `json:"prefers"`
	Replicas int    `json:"replicas"`
	Behind   int    `json:"behind"`
}

type movingView struct {
	Partition string  `json:"partition"`
	Adding    []int32 `json:"adding"`
	Removing  []int32 `json:"removing"`
}

func viewCluster(s cluster.State) clusterView {
	v := clusterView{Cluster: s.ID, Topics: len(s.Topics()), Partitions: len(s.Partitions), Brokers: []brokerView{}, Moving: []movingView{}}
	if s.Controller >= 0 {
		v.Controller = &s.Controller
	}
	for _, b := range s.Shares() {
		v.Brokers = append(v.Brokers, brokerView{b.Broker.ID, b.Broker.Addr, b.Broker.Rack, b.Alive, b.Leads, b.Prefers, b.Replicas, b.Behind})
	}
	for _, m := range s.Moving {
		v.Moving = append(v.Moving, movingView{m.Name(), m.Adding, m.Removing})
	}
	return v
}

func (a *app) describeCluster(s cluster.State) {
	controller := "nobody"
	if s.Controller >= 0 {
		controller = fmt.Sprintf("broker %d", s.Controller)
	}
	fmt.Fprintf(a.out, "cluster %s, controller: %s; %s, %s, %s\n\n", s.ID, controller,
		counted(len(s.Brokers), "broker"), counted(len(s.Topics()), "topic"), counted(len(s.Partitions), "partition"))
	t := newTable()
	t.AppendHeader(table.Row{"broker", "address", "rack", "leads", "prefers", "replicas", "behind"})
	for _, share := range s.Shares() {
		addr := share.Broker.Addr
		if !share.Alive {
			addr = "not there"
		}
		t.AppendRow(table.Row{share.Broker.ID, addr, share.Broker.Rack, share.Leads, share.Prefers, share.Replicas, share.Behind})
	}
	fmt.Fprintln(a.out, t.Render())
	for _, m := range s.Moving {
		fmt.Fprintf(a.out, "\n%s is being reassigned: adds %s, removes %s", m.Name(), someNumbers(m.Adding), someNumbers(m.Removing))
	}
	if len(s.Moving) > 0 {
		fmt.Fprintln(a.out)
	}
}

func someNumbers(ids []int32) string {
	if len(ids) == 0 {
		return "none"
	}
	return numbers(ids)
}
