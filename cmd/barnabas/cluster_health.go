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

func newClusterHealth(a *app) *cobra.Command {
	var at remote
	var out output
	var wait time.Duration
	var brokers, limit int
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say what is wrong with a cluster; fail when clients would notice",
		Long: `Says what is wrong with a cluster. The exit code is 1 when there is no controller, a broker is missing, or a partition has no
leader, or fewer replicas in sync than it has replicas. Partitions that are being reassigned, that another than the preferred
replica leads, or that can't lose another replica, are told, and pass for healthy.

A broker counts as missing when replicas are assigned to it, or when there are fewer than --brokers.`,
		Example: `  barnabas cluster health --brokers 3 --wait 1m
  barnabas cluster health --output json | jq '.findings[] | select(.serious)'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 || brokers < 0 || limit < 0 {
				return wrong(errors.New("--wait, --brokers and --limit: want no negative value"))
			}
			if err := out.check(); err != nil {
				return err
			}
			return at.labour(cmd, func(ctx context.Context, admin *kadm.Client) error {
				return a.health(ctx, admin, out, wait, brokers, limit)
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the cluster to be healthy")
	cmd.Flags().IntVar(&brokers, "brokers", 0, "how many brokers there have to be")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many findings a table lists; 0 lists all, as json and yaml do")
	return cmd
}

// healthView is what is wrong with a cluster, as it is printed for programs.
type healthView struct {
	Healthy    bool          `json:"healthy"`
	Brokers    int           `json:"brokers"`
	Partitions int           `json:"partitions"`
	Findings   []findingView `json:"findings"`
}

type findingView struct {
	Finding string `json:"finding"`
	Where   string `json:"where,omitempty"` // a partition or a broker
	Detail  string `json:"detail"`
	Serious bool   `json:"serious"`
}

func viewHealth(s cluster.State, findings []cluster.Finding) healthView {
	v := healthView{Healthy: cluster.Healthy(findings), Brokers: len(s.Brokers), Partitions: len(s.Partitions), Findings: []findingView{}}
	for _, f := range findings {
		v.Findings = append(v.Findings, findingView{string(f.Fault), f.What, f.Detail, f.Fault.Serious()})
	}
	return v
}

// health prints the findings. With wait, it asks again for so long while they are serious.
func (a *app) health(ctx context.Context, admin *kadm.Client, out output, wait time.Duration, brokers, limit int) error {
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
	err = out.print(a, viewHealth(s, findings), func() {
		a.printFindings(findings, limit)
		if serious == 0 {
			fmt.Fprintf(a.out, "healthy: %s, %s\n", counted(len(s.Brokers), "broker"), counted(len(s.Partitions), "partition"))
		}
	})
	if err != nil || serious == 0 {
		return err
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
