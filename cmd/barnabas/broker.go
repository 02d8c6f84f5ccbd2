package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/cluster"
)

func newBroker(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "broker", Short: "Configure brokers while they run, and take them out of service"}
	cmd.AddCommand(newBrokerConfig(a), newBrokerDrain(a))
	return cmd
}

// drain is what `broker drain` is asked to do.
type drain struct {
	at     remote
	pid    int
	noWait bool
	force  bool
}

func newBrokerDrain(a *app) *cobra.Command {
	var d drain
	cmd := &cobra.Command{
		Use:   "drain BROKER",
		Short: "Move leaders away from a broker, then stop it",
		Long: `Makes other brokers lead what a broker leads, so that clients don't notice when it stops: for each partition it puts another
replica, one that is in sync, first in the order of replicas, and has that one elected.

Then the broker is stopped: with --pid by this command, which has to run on the same machine; else by you, and the command
waits until it is gone from the cluster. At last the replicas get their old order back, so that the broker leads what it led
when it has come back and leaders are elected (by themselves, where auto.leader.rebalance.enable is set, or by
` + "`barnabas topic elect-leaders`" + `).

Partitions that nobody else can lead, because no other replica is in sync, keep the broker from being drained, unless --force
is given: they have no leader while it is down.

With --no-wait the command ends as soon as the broker leads nothing, and leaves the order of replicas as it is then.`,
		Example: "  barnabas broker drain 2 --pid $(pgrep -f broker-2.yaml)",
		Args:    exactly("BROKER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseBroker(args[0])
			if err != nil {
				return err
			}
			if d.pid < 0 || d.pid > 0 && d.noWait {
				return wrong(errors.New("--pid: want the broker's process, and no --no-wait"))
			}
			if d.pid > 0 {
				if err := syscall.Kill(d.pid, 0); err != nil {
					return wrong(fmt.Errorf("--pid: process %d: %w", d.pid, err))
				}
			}
			return d.at.labour(cmd, func(ctx context.Context, admin *kadm.Client) error {
				return a.drain(ctx, admin, d, id)
			})
		},
	}
	d.at.flags(cmd)
	cmd.Flags().IntVar(&d.pid, "pid", 0, "the process of the broker, on this machine: it gets SIGTERM")
	cmd.Flags().BoolVar(&d.noWait, "no-wait", false, "end when the broker leads nothing, without waiting for it to stop")
	cmd.Flags().BoolVar(&d.force, "force", false, "go on when there are partitions that nobody else can lead")
	return cmd
}

func (a *app) drain(ctx context.Context, admin *kadm.Client, d drain, id int32) error {
	s, err := cluster.Read(ctx, admin)
	if err != nil {
		return err
	}
	if _, ok := s.Broker(id); !ok {
		return fmt.Errorf("no broker %d is alive: `barnabas cluster describe` shows all", id)
	}
	changes, stuck := cluster.Drain(s, id)
	for i, p := range stuck {
		if i == 10 {
			fmt.Fprintf(a.err, "and %d more\n", len(stuck)-i)
			break
		}
		fmt.Fprintf(a.err, "nobody else can lead %s: in sync: %s of %s\n", p.Name(), someNumbers(p.ISR), numbers(p.Replicas))
	}
	if len(stuck) > 0 && !d.force {
		return fmt.Errorf("%s would have no leader without broker %d; --force drains it all the same", counted(len(stuck), "partition"), id)
	}
	if err := a.handOver(ctx, admin, id, changes, len(stuck)); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "broker %d leads nothing any more\n", id)
	if len(stuck) > 0 {
		fmt.Fprintf(a.out, "but for %s that nobody else can lead\n", counted(len(stuck), "partition"))
	}
	if d.noWait {
		return nil
	}
	if err := a.awaitEnd(ctx, admin, d.pid, id); err != nil {
		return err
	}
	for i, c := range changes {
		changes[i].Replicas = c.From
	}
	if err := apply(ctx, admin, changes); err != nil {
		return fmt.Errorf("broker %d is down, but its replicas couldn't be put back in their order: %w", id, err)
	}
	fmt.Fprintf(a.out, "broker %d is down\n", id)
	return nil
}

// handOver makes others lead, and waits until the broker leads only what it has to.
func (a *app) handOver(ctx context.Context, admin *kadm.Client, id int32, changes []cluster.Change, rest int) error {
	if len(changes) == 0 {
		return nil
	}
	if err := apply(ctx, admin, changes); err != nil {
		return err
	}
	return a.watch(ctx, "leaders to move", func(ctx context.Context) (int, error) {
		var waiting kadm.TopicsSet
		s, err := cluster.Read(ctx, admin)
		if err != nil {
			return 0, err
		}
		n := 0
		for _, p := range s.Partitions {
			if p.Leader == id {
				n++
				if p.Preferred() != id {
					waiting.Add(p.Topic, p.Number)
				}
			}
		}
		if len(waiting) > 0 { // again and again: an in-sync replica may have fallen behind for a moment
			if err := elect(ctx, admin, waiting); err != nil {
				return 0, err
			}
		}
		return max(n-rest, 0), nil
	})
}

// elect asks for the preferred leaders. Those that can't be elected now are no error.
func elect(ctx context.Context, admin *kadm.Client, of kadm.TopicsSet) error {
	results, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, of)
	if err != nil {
		return fmt.Errorf("elect leaders: %w", err)
	}
	for _, topic := range results {
		for _, r := range topic {
			if r.Err != nil && !errors.Is(r.Err, kerr.ElectionNotNeeded) && !errors.Is(r.Err, kerr.PreferredLeaderNotAvailable) && !kerr.IsRetriable(r.Err) {
				return fmt.Errorf("elect a leader of %s-%d: %w", r.Topic, r.Partition, detailed(r.Err, r.ErrMessage))
			}
		}
	}
	return nil
}

// awaitEnd stops the process, if there is one, and waits until the broker is gone from the cluster.
func (a *app) awaitEnd(ctx context.Context, admin *kadm.Client, pid int, id int32) error {
	if pid > 0 {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", pid, err)
		}
	} else {
		fmt.Fprintf(a.out, "stop it now; waiting until it is gone (Ctrl-C leaves things as they are)\n")
	}
	began := time.Now()
	return a.watch(ctx, "brokers to stop", func(ctx context.Context) (int, error) {
		s, err := cluster.Read(ctx, admin)
		if err != nil {
			return 0, err
		}
		if pid > 0 && syscall.Kill(pid, 0) == nil {
			if time.Since(began) > patience {
				return 0, fmt.Errorf("process %d still runs, %s after SIGTERM", pid, patience)
			}
			return 1, nil
		}
		if _, there := s.Broker(id); there {
			return 1, nil
		}
		return 0, nil
	})
}

func parseBroker(text string) (int32, error) {
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil || id < 0 {
		return 0, wrong(fmt.Errorf("want a broker's id, not %q", text))
	}
	return int32(id), nil
}
