package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// Coordinations measures what coordination costs: clusters of three brokers on memberlist beside those on ZooKeeper.
type Coordinations struct {
	Env    *task.Env
	Tools  *tools.Tools
	Rounds int           // medians of so many count
	Idle   time.Duration // how long idle brokers are watched
	Starve time.Duration // how long other processes keep all cores busy
	// Servers is how many servers ZooKeeper has. Each syncs what it acknowledges.
	Servers int
}

// The figures of a coordination.
const (
	topicOf1000 = "create a topic of 1,000 partitions, s"
	leaders1000 = "kill -9 of their leader: until 1,000 new leaders, s"
	writesGoOn  = "kill -9 of their leader: until all writes go on, s"
	idleCost    = "idle, of a core, the broker that needs most, %"
	falseDeaths = "registrations lost while others keep all cores busy"
)

// coordinationLimits are what memberlist must not exceed, by figure.
func coordinationLimits() []struct {
	figure string
	limit  float64
} {
	return []struct {
		figure string
		limit  float64
	}{{topicOf1000, -1}, {leaders1000, 3}, {writesGoOn, 3}, {idleCost, 1}, {falseDeaths, 0}} // -1: not more than on ZooKeeper
}

// Run measures both, and prints them side by side. The error says which of memberlist's figures are too large.
func (c *Coordinations) Run(ctx context.Context) error {
	all := map[string]map[string]float64{}
	for _, name := range []string{target.ZooKeeper, target.Memberlist} {
		figures, err := c.measure(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all[name] = figures
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"figure", target.Memberlist, target.ZooKeeper, "target", "result"})
	missed := 0
	for _, l := range coordinationLimits() {
		if _, measured := all[target.Memberlist][l.figure]; !measured {
			continue
		}
		ours, theirs := all[target.Memberlist][l.figure], all[target.ZooKeeper][l.figure]
		limit := l.limit
		if limit < 0 {
			limit = theirs
		}
		result := "pass"
		if ours > limit {
			missed++
			result = "MISSED"
		}
		t.AppendRow(table.Row{l.figure, fmt.Sprintf("%.3g", ours), fmt.Sprintf("%.3g", theirs), fmt.Sprintf("≤ %.3g", limit), result})
	}
	c.Env.Print("\n" + t.Render() + "\n")
	if missed > 0 {
		return fmt.Errorf("%d figures miss their targets", missed)
	}
	return nil
}

// measure measures one cluster.
func (c *Coordinations) measure(ctx context.Context, coordination string) (map[string]float64, error) {
	p := properties()
	p["min.insync.replicas"] = "2"
	// ZooKeeper as it is run outside tests: what it acknowledges is on the disks of a majority, as with memberlist.
	o := target.ClusterOptions{What: target.Barnabas, Storage: "mmap", Coordination: coordination, Brokers: clusterBrokers, Properties: p, Servers: c.Servers, Sync: true}
	running, err := target.Opener{Env: c.Env, Tools: c.Tools}.OpenCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	defer running.Close()
	x := &cluster{running: running, noted: noted{}}
	x.broker = broker{name: running.Name, addr: running.Members[0].Addr, replicas: clusterBrokers}
	if err := c.topics(ctx, x); err != nil {
		return nil, err
	}
	if err := c.kills(ctx, x); err != nil {
		return nil, err
	}
	if err := c.idle(ctx, x); err != nil {
		return nil, err
	}
	if err := c.starve(ctx, x); err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	for name, values := range x.noted {
		figures[name] = median(values)
	}
	return figures, running.Stop()
}

// topics creates topics of many partitions.
func (c *Coordinations) topics(ctx context.Context, x *cluster) error {
	for i := range c.Rounds {
		name := fmt.Sprintf("many-%d", i)
		begin := time.Now()
		if err := bench.CreateTopic(ctx, x.addr, name, many, 3); err != nil {
			return err
		}
		x.note(topicOf1000, time.Since(begin).Seconds())
		c.Env.Say("%s: a topic of %d partitions took %.2f s", x.name, many, time.Since(begin).Seconds())
		if err := errors.Join(bench.DeleteTopic(ctx, x.addr, name), pause(ctx, settle)); err != nil {
			return err
		}
	}
	return nil
}

// kills kills a broker that leads all partitions of a topic, and isn't controller.
func (c *Coordinations) kills(ctx context.Context, x *cluster) error {
	f, err := newFailOver(ctx, x)
	if err != nil {
		return err
	}
	defer f.client.Close()
	for range c.Rounds {
		if err := f.killUntilAllLead(ctx, c.Env.Say); err != nil {
			return err
		}
	}
	return f.restore(ctx)
}

// killUntilAllLead kills the victim. What counts begins with its death.
func (f *failOver) killUntilAllLead(ctx context.Context, say func(string, ...any)) error {
	if err := f.restore(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	end := f.sending(ctx)
	err := pause(ctx, 2*time.Second)
	killed := time.Now()
	f.victim.Kill()
	var elected time.Time
	if err == nil {
		elected, err = f.await(ctx, func(p *kmsg.MetadataResponseTopicPartition) bool {
			return p.Leader >= 0 && p.Leader != int32(f.victim.ID)
		})
	}
	if err == nil {
		err = pause(ctx, 5*time.Second) // writes go on by then, or they are late enough
	}
	acks, sendErr := end()
	if err = errors.Join(err, sendErr); err != nil {
		return err
	}
	on := goesOn(acks, killed, written)
	if on.IsZero() {
		return errors.New("writes did not go on")
	}
	f.of.note(leaders1000, elected.Sub(killed).Seconds())
	f.of.note(writesGoOn, on.Sub(killed).Seconds())
	say("%s: %.2f s after a broker's death all its partitions have leaders, after %.2f s writes go on", f.of.name, elected.Sub(killed).Seconds(), on.Sub(killed).Seconds())
	return nil
}

// idle watches brokers that do nothing. The one that needs most counts: it is the one that leads raft, and a median would hide it.
func (c *Coordinations) idle(ctx context.Context, x *cluster) error {
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	before := map[int]time.Duration{}
	begin := time.Now()
	for _, m := range x.running.Members {
		u, err := bench.Measure(m.Pid())
		if err != nil {
			return err
		}
		before[m.ID] = u.CPU
	}
	if err := pause(ctx, c.Idle); err != nil {
		return err
	}
	most := 0.0
	for _, m := range x.running.Members {
		u, err := bench.Measure(m.Pid())
		if err != nil {
			return err
		}
		cost := 100 * (u.CPU - before[m.ID]).Seconds() / time.Since(begin).Seconds()
		most = max(most, cost)
		c.Env.Say("%s: broker %d is idle with %.2f %% of a core", x.name, m.ID, cost)
	}
	x.note(idleCost, most)
	return nil
}

// lost is what a broker says when its registration is over against its will.
const lost = "this broker's registration is lost"

// starve keeps all cores busy with other processes, and counts the brokers that were taken for dead.
func (c *Coordinations) starve(ctx context.Context, x *cluster) error {
	if c.Starve <= 0 {
		return nil
	}
	count := func() (n int) {
		for _, m := range x.running.Members {
			n += strings.Count(m.Output(), lost)
		}
		return n
	}
	c.Env.Say("%s: %d busy processes for %s", x.name, runtime.NumCPU(), c.Starve)
	before := count()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range runtime.NumCPU() {
		busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		busy.Stderr = os.Stderr
		if err := busy.Start(); err != nil {
			return err
		}
		defer func() { stop(); _ = busy.Wait() }() // killed, as it should be
	}
	if err := pause(ctx, c.Starve); err != nil {
		return err
	}
	x.note(falseDeaths, float64(count()-before))
	c.Env.Say("%s: %d registrations lost", x.name, count()-before)
	return nil
}
