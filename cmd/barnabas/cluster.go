package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

func newClusterHealth(a *app) *cobra.Command {
	var at remote
	var wait time.Duration
	var brokers, limit int
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say what is wrong with a cluster; fail when clients would notice",
		Long: `Says what is wrong with a cluster. The exit code is 1 when there is no controller, a broker is missing, or a partition has no
leader, or fewer replicas in sync than it has replicas. Partitions that are being reassigned, that another than the preferred
replica leads, or that can't lose another replica, are told, and pass for healthy.

A broker counts as missing when replicas are assigned to it, or when there are fewer than --brokers.`,
		Example: "  barnabas cluster health --brokers 3 --wait 1m",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 || brokers < 0 || limit < 0 {
				return wrong(errors.New("--wait, --brokers and --limit: want no negative value"))
			}
			return at.labour(cmd, func(ctx context.Context, admin *kadm.Client) error {
				return a.health(ctx, admin, wait, brokers, limit)
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the cluster to be healthy")
	cmd.Flags().IntVar(&brokers, "brokers", 0, "how many brokers there have to be")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many findings to list; 0 lists all")
	return cmd
}

// health prints the findings. With wait, it asks again for so long while they are serious.
func (a *app) health(ctx context.Context, admin *kadm.Client, wait time.Duration, brokers, limit int) error {
	var s cluster.State
	var findings []cluster.Finding
	look := func(ctx context.Context) (serious int, err error) {
		if s, err = cluster.Read(ctx, admin); err != nil {
			return 0, err
		}
		minISR, err := cluster.MinISR(ctx, admin, s.Topics())
		if err != nil {
			return 0, err
		}
		findings = cluster.Health(s, minISR)
		if len(s.Brokers) < brokers {
			findings = append([]cluster.Finding{{Fault: cluster.BrokerMissing, Detail: fmt.Sprintf("there are %d, and there should be %d", len(s.Brokers), brokers)}}, findings...)
		}
		for _, f := range findings {
			if f.Fault.Serious() {
				serious++
			}
		}
		return serious, nil
	}
	if wait > 0 {
		waiting, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		err := a.watch(waiting, "findings", look)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return err
		} // what is still wrong after that time follows
	}
	serious, err := look(ctx)
	if err != nil {
		return err
	}
	a.printFindings(findings, limit)
	if serious == 0 {
		fmt.Fprintf(a.out, "healthy: %s, %s\n", counted(len(s.Brokers), "broker"), counted(len(s.Partitions), "partition"))
		return nil
	}
	return fmt.Errorf("the cluster isn't healthy: %s", summary(findings))
}

func (a *app) printFindings(findings []cluster.Finding, limit int) {
	if len(findings) == 0 {
		return
	}
	t := newTable()
	t.AppendHeader(table.Row{"finding", "where", "detail"})
	for i, f := range findings {
		if limit > 0 && i == limit {
			break
		}
		t.AppendRow(table.Row{f.Fault, f.What, f.Detail})
	}
	fmt.Fprintln(a.out, t.Render())
	if more := len(findings) - t.Length(); more > 0 {
		fmt.Fprintf(a.out, "and %d more: --limit 0 lists all\n", more)
	}
	fmt.Fprintln(a.out)
}

// summary counts the serious findings.
func summary(findings []cluster.Finding) string {
	counts := map[cluster.Fault]int{}
	var order []cluster.Fault
	for _, f := range findings {
		if !f.Fault.Serious() {
			continue
		}
		if counts[f.Fault] == 0 {
			order = append(order, f.Fault)
		}
		counts[f.Fault]++
	}
	texts := make([]string, len(order))
	for i, f := range order {
		texts[i] = fmt.Sprintf("%s (%d)", f, counts[f])
	}
	return strings.Join(texts, ", ")
}
