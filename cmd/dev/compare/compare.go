package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// Options are how much is measured.
type Options struct {
	Storages []string
	Only     []string // figures; none is all
	Clusters bool     // the figures of clusters instead of those of one broker
	Rounds   int
	Duration time.Duration // of one load, once
	WarmUp   time.Duration // of each broker, over all loads
	Idle     time.Duration
}

// Defaults are the options that the targets are meant for.
func Defaults() Options {
	return Options{Storages: []string{"mmap", "sendfile"}, Rounds: 3, Duration: 4 * time.Second, WarmUp: 24 * time.Second, Idle: 12 * time.Second}
}

// Comparison is one run of all that is measured.
type Comparison struct {
	Options
	Env   *task.Env
	Tools *tools.Tools
	Dir   string // for everything that is written; its owner removes it

	bin  string
	java peers.Java
}

// settle is how long brokers are left alone after a topic was deleted: its files go in the background.
const settle = 1500 * time.Millisecond

// properties are set on both brokers: what is deleted goes at once, or gigabytes wait on the disk.
func properties() map[string]string {
	return map[string]string{
		"log.segment.delete.delay.ms": "500",
		// As Kafka has them, whatever the tests' brokers are started with.
		"group.initial.rebalance.delay.ms": "3000",
		"offsets.topic.num.partitions":     "50",
	}
}

// Names lists the figures.
func Names() []string { return append(singleNames(), clusterNames()...) }

// singleNames lists the figures of one broker.
func singleNames() []string {
	var names []string
	for _, l := range loads() {
		names = append(names, l.name)
	}
	for _, s := range states() {
		names = append(names, s.name)
	}
	return names
}

// clusterNames lists the figures of clusters.
func clusterNames() []string {
	var names []string
	for _, f := range clusterFigures() {
		names = append(names, f.Name)
	}
	return names
}

// wants says whether a figure of one broker is wanted.
func (c *Comparison) wants(name string) bool { return len(c.Only) == 0 && !c.Clusters || c.named(name) }

func (c *Comparison) named(name string) bool { return slices.Contains(c.Only, name) }

// Run measures everything.
func (c *Comparison) Run(ctx context.Context) (Report, error) {
	for _, name := range c.Only {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("no figure %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	if c.Rounds < 1 || len(c.Storages) == 0 {
		return nil, fmt.Errorf("nothing to measure: %d rounds, storages %v", c.Rounds, c.Storages)
	}
	single, err := c.measureSingle(ctx)
	if err != nil || !c.wantsClusters(clusterNames()...) {
		return single, err
	}
	clusters, err := c.measureClusters(ctx)
	return append(single, clusters...), err
}

// measureSingle measures what is wanted of one broker.
func (c *Comparison) measureSingle(ctx context.Context) (Report, error) {
	if !slices.ContainsFunc(singleNames(), c.wants) {
		return nil, nil
	}
	var err error
	if c.bin, err = c.Tools.GoBuild(ctx, "./cmd/barnabas"); err != nil {
		return nil, err
	}
	if c.java, err = peers.KafkaJars(ctx, c.Tools); err != nil {
		return nil, err
	}
	report, err := c.measureStates(ctx)
	if err != nil {
		return nil, err
	}
	underLoad, err := c.measureLoads(ctx)
	return append(underLoad, report...), err
}

// measureLoads starts all brokers and puts each load on each of them, in turn.
func (c *Comparison) measureLoads(ctx context.Context) (Report, error) {
	var wanted []load
	for _, l := range loads() {
		if c.wants(l.name) {
			wanted = append(wanted, l)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	var brokers []broker // Kafka's is the first
	kafka, err := c.startKafka(ctx, "loads-kafka")
	if err != nil {
		return nil, err
	}
	defer kafka.Kill()
	brokers = append(brokers, broker{"kafka", kafka.Addr, []int{kafka.Pid()}, 1})
	for _, storage := range c.Storages {
		p, err := c.startBarnabas(ctx, "loads-"+storage, storage, "")
		if err != nil {
			return nil, err
		}
		defer p.Kill()
		brokers = append(brokers, broker{"barnabas " + storage, p.Addr, []int{p.Pid()}, 1})
	}
	if err := c.warmUp(ctx, wanted, brokers); err != nil {
		return nil, err
	}
	var report Report
	for _, l := range wanted {
		figures := make([][]float64, len(brokers))
		for range c.Rounds {
			for i, b := range brokers {
				value, result, err := l.put(ctx, b, c.Duration)
				if err != nil {
					return nil, err
				}
				figures[i] = append(figures[i], value)
				c.Env.Say("%-11s %-18s %7.3f %s (%.0f MiB/s, %.0f requests/s, p99 %.2f ms)", l.name, b.name, value, l.unit,
					result.MiBPerSecond(), result.RequestsPerSecond(), result.Latency.P99/1e3)
				if err := pause(ctx, settle); err != nil {
					return nil, err
				}
			}
		}
		for i, b := range brokers[1:] {
			report = append(report, Figure{Name: l.name, Broker: b.name, Unit: l.unit, Ours: median(figures[i+1]), Theirs: median(figures[0]), Limit: l.limit, OfRatio: true})
		}
	}
	return report, nil
}

// warmUp puts all loads on all brokers.
func (c *Comparison) warmUp(ctx context.Context, wanted []load, brokers []broker) error {
	each := c.WarmUp / time.Duration(len(wanted))
	if each <= 0 {
		return nil
	}
	for _, b := range brokers {
		c.Env.Say("warming %s up for %s", b.name, c.WarmUp)
		took := each
		if b.name != "kafka" {
			took = min(each, time.Second) // nothing is compiled while it runs
		}
		for _, l := range wanted {
			if _, _, err := l.put(ctx, b, took); err != nil {
				return err
			}
		}
	}
	return pause(ctx, settle)
}

func (c *Comparison) startKafka(ctx context.Context, name string) (*peers.Peer, error) {
	return peers.StartKafka(ctx, c.Env, c.java, peers.KafkaOptions{Dir: filepath.Join(c.Dir, name), Properties: properties()})
}

func (c *Comparison) startBarnabas(ctx context.Context, name, storage, addr string) (*peers.Peer, error) {
	dir := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return target.StartBarnabas(ctx, c.bin, target.Options{Dir: dir, Addr: addr, Storage: storage, Properties: properties()})
}

// startTimed starts a broker and gives the time from its start to its first answer to Metadata.
func (c *Comparison) startTimed(ctx context.Context, name, storage string) (*peers.Peer, time.Duration, error) {
	port, err := peers.FreePort()
	if err != nil {
		return nil, 0, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	answered := make(chan time.Time, 1)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with waiting
		if bench.Await(waiting, addr) == nil {
			answered <- time.Now()
		}
	}()
	begin := time.Now()
	p, err := c.startBarnabas(ctx, name, storage, addr)
	if err != nil {
		return nil, 0, err
	}
	select {
	case at := <-answered:
		return p, at.Sub(begin), nil
	case <-ctx.Done():
		p.Kill()
		return nil, 0, ctx.Err()
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
