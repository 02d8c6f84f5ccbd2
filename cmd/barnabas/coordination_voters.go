package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

// votersCommand is what commands about a cluster on memberlist share: they ask brokers that run.
type votersCommand struct {
	from    source
	address string
	timeout time.Duration
}

func (v *votersCommand) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&v.from.file, "config", "c", "", "the YAML file of a broker of the cluster: its addresses, keys and certificates are used")
	v.from.flagSet(cmd)
	cmd.Flags().StringVar(&v.address, "address", "", "HOST:PORT of the coordination port of the broker to ask, instead of those that the file names")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 30*time.Second, "how long to wait")
}

// open finds whom to ask, and makes what asks.
func (v *votersCommand) open(a *app) (admin *voterAdmin, addresses []string, err error) {
	root, c, err := a.loadWithRoot(v.from)
	if err != nil {
		return nil, nil, err
	}
	if name := c.election.Name(); name != votersPlugin {
		return nil, nil, wrong(fmt.Errorf("the brokers of this configuration agree through %s: this is about clusters on %s", name, votersPlugin))
	}
	_, section, _ := electionOptions(root)
	options := newVoterOptions()
	if err := section.Decode(&options); err != nil {
		return nil, nil, wrong(err)
	}
	if v.address != "" {
		addresses = []string{v.address}
	} else if addresses, err = options.Addresses(c.layers.Static); err != nil {
		return nil, nil, wrong(err)
	}
	admin, err = newVoterAdmin(options)
	return admin, addresses, err
}

// status asks one address after the other, and gives the first answer.
func (v *votersCommand) status(ctx context.Context, a *app) (s voterStatus, err error) {
	admin, addresses, err := v.open(a)
	if err != nil {
		return s, err
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	var errs []error
	for _, address := range addresses {
		asking, end := context.WithTimeout(ctx, 5*time.Second)
		s, err = admin.Status(asking, address)
		end()
		if err == nil {
			return s, nil
		}
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

func newCoordinationStatus(a *app) *cobra.Command {
	var v votersCommand
	var out output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a broker on memberlist knows of its cluster: who leads, who votes, whom gossip suspects",
		Long: `Asks one running broker, on its coordination port, and prints what it knows. Others may know something else for a while, or for as
long as they can't reach each other: ask them with --address.

The exit code is 1 when nobody answers, when the broker takes no part in a cluster, and when it knows of no leader.`,
		Example: `  barnabas coordination status -c broker-1.yaml
  barnabas coordination status -c broker-1.yaml --address broker-2:7946`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			s, err := v.status(cmd.Context(), a)
			if err != nil {
				return err
			}
			if err := out.print(a, s, func() { a.printVoterStatus(s) }); err != nil {
				return err
			}
			switch {
			case s.Problem != "":
				return errors.New(s.Problem)
			case s.Waits != "":
				return errors.New(s.Waits)
			case s.Leader == "":
				return errors.New("nobody leads, as far as this broker knows: nothing can be decided")
			}
			return nil
		},
	}
	v.flags(cmd)
	out.flags(cmd)
	return cmd
}

func (a *app) printVoterStatus(s voterStatus) {
	rows := [][2]string{{"broker", s.Broker}, {"server", s.Server}, {"address", s.Address}}
	if s.RaftCluster != "" {
		rows = append(rows, [2]string{"raft cluster", s.RaftCluster})
	}
	leader := "unknown"
	if s.Leader != "" {
		leader = s.Leader + " at " + s.LeaderAt
	}
	controller := "none"
	if s.Controller >= 0 {
		controller = strconv.Itoa(int(s.Controller))
	}
	rows = append(rows,
		[2]string{"leader", leader},
		[2]string{"term", strconv.FormatUint(s.Raft.Term, 10)},
		[2]string{"log", fmt.Sprintf("%d entries, %d of them committed, %d applied", s.Raft.LastIndex, s.Raft.CommitIndex, s.Raft.Applied)},
		[2]string{"controller", fmt.Sprintf("%s, epoch %d", controller, s.Epoch)},
		[2]string{"voters", fmt.Sprintf("%d, of which %d may fail", s.Voters, s.Tolerates)})
	_ = printRows(a.out, rows)
	fmt.Fprintln(a.out)
	a.printMembers(s)
}

func (a *app) printMembers(s voterStatus) {
	t := newTable()
	t.AppendHeader(table.Row{"broker", "server", "address", "raft", "gossip"})
	for _, m := range s.Members {
		t.AppendRow(table.Row{m.Broker, m.Server, m.Address, m.Raft, m.Gossip})
	}
	fmt.Fprintln(a.out, t.Render())
}

func newCoordinationMembers(a *app) *cobra.Command {
	var v votersCommand
	var out output
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the servers of a cluster on memberlist: who votes in raft, and what gossip thinks of each",
		Long: `Asks one running broker, and lists the servers of raft's configuration and those that gossip shows. A server is a broker with the
directory of its raft store: one that has lost it comes back as another.`,
		Example: "  barnabas coordination members -c broker-1.yaml --output json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			s, err := v.status(cmd.Context(), a)
			if err != nil {
				return err
			}
			return out.print(a, s.Members, func() { a.printMembers(s) })
		},
	}
	v.flags(cmd)
	out.flags(cmd)
	return cmd
}

// newCoordinationOrder is promote or remove.
func newCoordinationOrder(a *app, use, short, long string, order func(*voterAdmin, context.Context, []string, string) (voterOrder, error)) *cobra.Command {
	var v votersCommand
	cmd := &cobra.Command{
		Use:     use + " BROKER",
		Short:   short,
		Long:    long,
		Example: "  barnabas coordination " + use + " 2 -c broker-1.yaml",
		Args:    exactly("BROKER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, addresses, err := v.open(a)
			if err != nil {
				return err
			}
			defer admin.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), v.timeout)
			defer cancel()
			o, err := order(admin, ctx, addresses, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "server %s %s; %s\n", o.Server, o.Outcome, counted(o.Voters, "voter"))
			if o.Voters%2 == 0 {
				fmt.Fprintf(a.err, "note: %d voters survive no more failures than %d\n", o.Voters, o.Voters-1)
			}
			return nil
		},
	}
	v.flags(cmd)
	return cmd
}

func newCoordinationPromote(a *app) *cobra.Command {
	return newCoordinationOrder(a, "promote", "Give a broker of a cluster on memberlist a vote",
		`Gives a broker that follows a vote in raft. BROKER is its id, or the id of its server where it has several.

It is refused unless the broker answers and has caught up, and a majority of all voters that there would be answers.`, (*voterAdmin).Promote)
}

func newCoordinationRemove(a *app) *cobra.Command {
	return newCoordinationOrder(a, "remove", "Take a broker's vote, or forget one that is gone",
		`Takes a broker's vote in raft: one that runs goes on as one that follows, one that doesn't is forgotten. BROKER is its id, or the id of
its server where it has several: a broker that lost its directory comes back as another server.

It is refused when a majority of the voters that would be left doesn't answer. To replace a dead voter, remove it and promote another.`, (*voterAdmin).Remove)
}
