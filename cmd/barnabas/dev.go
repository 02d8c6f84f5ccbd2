package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/cluster"
	"github.com/barnabas-mq/barnabas/cmd/barnabas/local"
)

func newDev(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "dev", Short: "Try things out on this machine"}
	cmd.AddCommand(newDevCluster(a))
	return cmd
}

// devCluster is what `dev cluster` is asked to do.
type devCluster struct {
	local.Options
	coordination string
	keep         bool
	restart      time.Duration
}

func newDevCluster(a *app) *cobra.Command {
	var d devCluster
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run a whole cluster on this machine, until Ctrl-C",
		Long: `Runs several brokers on this machine, as processes of their own, and shows what becomes of them: kill one and see who
takes over. Ctrl-C stops all of them in order; a second one ends this command at once and leaves them running.

With --coordination zookeeper, a ZooKeeper runs, too. It needs Java on the PATH. Its jars are those of ZOOKEEPER_HOME, or are
fetched by Maven on first use. With --coordination memberlist the brokers need nothing else.

Data, logs and configurations are in --dir, and stay there; without it they are in a directory that is removed at the end,
unless --keep is given.`,
		Example: `  barnabas dev cluster --brokers 3 --coordination memberlist
  barnabas dev cluster --brokers 3 --coordination zookeeper
  barnabas dev cluster --port 0 --set storage=sendfile --set broker.num.partitions=6 --restart 5s`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.check(); err != nil {
				return err
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			go func() { // ends with the command: from then on another signal ends the process
				<-ctx.Done()
				stop()
			}()
			return a.devCluster(ctx, d)
		},
	}
	f := cmd.Flags()
	f.IntVar(&d.Brokers, "brokers", 3, "how many brokers")
	f.StringVar(&d.coordination, "coordination", "zookeeper", "through what they agree: zookeeper or memberlist")
	f.StringVar(&d.Dir, "dir", "", "where data, logs and configurations are, and stay (default: a directory that is removed at the end)")
	f.BoolVar(&d.keep, "keep", false, "keep the directory without --dir, too")
	f.IntVar(&d.Port, "port", 9092, "the port of broker 1; the others have the next ones. 0 takes any that are free")
	f.IntVar(&d.ZooKeeperPort, "zookeeper-port", 2181, "the port of ZooKeeper; 0 takes any that is free")
	f.StringVar(&d.ZooKeeper, "zookeeper", "", "a ZooKeeper that runs already, HOST:PORT/PATH (default: one is started)")
	f.StringArrayVar(&d.Sets, "set", nil, setHelp)
	f.DurationVar(&d.restart, "restart", 0, "how long after its end a broker is started again; 0 leaves it to you")
	return cmd
}

func (d devCluster) check() error {
	switch {
	case d.coordination != "zookeeper" && d.coordination != "memberlist":
		return wrong(fmt.Errorf("--coordination: want zookeeper or memberlist, not %q; `barnabas serve` runs a broker without any", d.coordination))
	case d.coordination == "memberlist" && d.ZooKeeper != "":
		return wrong(errors.New("--zookeeper: with --coordination memberlist there is none"))
	case d.Brokers < 1 || d.Brokers > 100:
		return wrong(fmt.Errorf("--brokers: want 1 to 100, not %d", d.Brokers))
	case d.Port < 0 || d.Port+d.Brokers > 1<<16 || d.ZooKeeperPort < 0 || d.ZooKeeperPort >= 1<<16:
		return wrong(errors.New("--port and --zookeeper-port: want ports, or 0"))
	case d.restart < 0:
		return wrong(errors.New("--restart: want a positive duration"))
	}
	return nil
}

func (a *app) devCluster(ctx context.Context, d devCluster) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	d.Program, d.Memberlist = program, d.coordination == "memberlist"
	kept := d.Dir != "" || d.keep
	if d.Dir == "" {
		if d.Dir, err = os.MkdirTemp("", "barnabas-cluster-"); err != nil {
			return err
		}
		if !kept {
			defer os.RemoveAll(d.Dir)
		}
	}
	fmt.Fprintf(a.out, "starting %s in %s\n", counted(d.Brokers, "broker"), d.Dir)
	c, err := local.Start(ctx, d.Options, func(text string) { fmt.Fprintln(a.out, text) })
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // told to
		}
		return fmt.Errorf("start the cluster: %w", err)
	}
	a.showCluster(c, d)
	watched := a.watchCluster(ctx, c, d)
	fmt.Fprintln(a.out, "\nstopping")
	err = errors.Join(watched, c.Stop(context.WithoutCancel(ctx)))
	if kept {
		fmt.Fprintf(a.out, "everything is kept in %s\n", d.Dir)
	}
	return err
}

// showCluster prints who runs where.
func (a *app) showCluster(c *local.Cluster, d devCluster) {
	t := newTable()
	t.AppendHeader(table.Row{"", "address", "process", "log"})
	if !d.Memberlist {
		pids := "not started here"
		if own := c.ZooKeeperPids(); len(own) > 0 {
			pids = strings.Trim(fmt.Sprint(own), "[]")
		}
		t.AppendRow(table.Row{"zookeeper", c.ZooKeeper, pids, d.Dir + "/zookeeper"})
	}
	for _, b := range c.Brokers {
		t.AppendRow(table.Row{fmt.Sprintf("broker %d", b.ID), b.Addr, b.Pid(), b.Log})
	}
	fmt.Fprintf(a.out, "\n%s\n\n", t.Render())
	fmt.Fprintf(a.out, "  barnabas topic create clicks -p 6 -r %d -b %s\n", min(d.Brokers, 3), c.Connect())
	fmt.Fprintf(a.out, "  barnabas cluster describe -b %s\n", c.Connect())
	fmt.Fprintf(a.out, "  kill -9 %d   # and see what happens; Ctrl-C ends it all\n\n", c.Brokers[0].Pid())
}

// statusEvery is how often the cluster is asked how it is.
const statusEvery = time.Second

// watchCluster shows how the cluster is until ctx ends: on a terminal as a table that changes, else a line for each change.
func (a *app) watchCluster(ctx context.Context, c *local.Cluster, d devCluster) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.RetryTimeout(statusEvery), kgo.MetadataMinAge(statusEvery/2), kgo.ClientID("barnabas-cli"))
	if err != nil {
		return err
	}
	defer client.Close()
	w := clusterWatch{a: a, c: c, admin: kadm.NewClient(client), restart: d.restart, ended: map[int]time.Time{}, live: screen(a.out)}
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// clusterWatch is what was shown of a cluster.
type clusterWatch struct {
	a       *app
	c       *local.Cluster
	admin   *kadm.Client
	restart time.Duration
	ended   map[int]time.Time // brokers that have ended, since when
	live    bool              // shown in place
	last    string
}

// look shows how the cluster is now.
func (w *clusterWatch) look(ctx context.Context) {
	for _, b := range w.c.Brokers {
		ended, how := b.Ended()
		since, known := w.ended[b.ID]
		switch {
		case !ended:
			delete(w.ended, b.ID)
		case !known:
			w.ended[b.ID] = time.Now()
			w.tell(fmt.Sprintf("broker %d (process %d) has ended: %v", b.ID, b.Pid(), how))
		case w.restart > 0 && time.Since(since) >= w.restart:
			delete(w.ended, b.ID)
			if err := b.Start(); err != nil {
				w.tell(fmt.Sprintf("broker %d can't be started again: %v", b.ID, err))
			} else {
				w.tell(fmt.Sprintf("broker %d is started again: process %d", b.ID, b.Pid()))
			}
		}
	}
	asking, cancel := context.WithTimeout(ctx, 3*statusEvery)
	defer cancel()
	s, err := cluster.Read(asking, w.admin)
	if ctx.Err() != nil {
		return
	}
	text := "no broker answers"
	switch {
	case err != nil:
	case w.live:
		text = w.status(s)
	default:
		text = line(s)
	}
	if text == w.last {
		return
	}
	if w.live && w.last != "" {
		fmt.Fprintf(w.a.out, "\x1b[%dA\x1b[J", strings.Count(w.last, "\n")+1)
	}
	fmt.Fprintln(w.a.out, text)
	w.last = text
}

// tell prints something that has happened, above what is shown in place.
func (w *clusterWatch) tell(text string) {
	if w.live && w.last != "" {
		fmt.Fprintf(w.a.out, "\x1b[%dA\x1b[J", strings.Count(w.last, "\n")+1)
	}
	w.last = "" // how the cluster is is shown again, below
	fmt.Fprintln(w.a.out, time.Now().Format(time.TimeOnly)+" "+text)
}

// status is the table.
func (w *clusterWatch) status(s cluster.State) string {
	t := newTable()
	t.AppendHeader(table.Row{"", "state", "leads", "replicas", "behind"})
	shares := map[int32]cluster.Share{}
	for _, share := range s.Shares() {
		shares[share.Broker.ID] = share
	}
	for _, b := range w.c.Brokers {
		share := shares[int32(b.ID)]
		state := "up"
		if ended, _ := b.Ended(); ended {
			state = "ended"
		} else if !share.Alive {
			state = "not in the cluster"
		}
		if s.Controller == int32(b.ID) {
			state += ", controller"
		}
		t.AppendRow(table.Row{fmt.Sprintf("broker %d", b.ID), state, share.Leads, share.Replicas, share.Behind})
	}
	return t.Render() + "\n" + inSync(s)
}

// line is all of it in one.
func line(s cluster.State) string {
	alive := make([]int32, len(s.Brokers))
	for i, b := range s.Brokers {
		alive[i] = b.ID
	}
	return fmt.Sprintf("alive: %s; controller: %d; %s", someNumbers(alive), s.Controller, inSync(s))
}

// inSync says how many partitions are as they should be.
func inSync(s cluster.State) string {
	whole, leaderless := 0, 0
	for _, p := range s.Partitions {
		if len(p.ISR) == len(p.Replicas) {
			whole++
		}
		if p.Leader == cluster.NoLeader {
			leaderless++
		}
	}
	text := fmt.Sprintf("%s, %d with all replicas in sync", counted(len(s.Partitions), "partition"), whole)
	if leaderless > 0 {
		text += fmt.Sprintf(", %d without a leader", leaderless)
	}
	return text
}
