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
	Only     []string // rows; none is all
	Clusters bool     // the rows of clusters instead of those of one broker
	Rounds   int
	Duration time.Duration // of one load, once
	WarmUp   time.Duration // of each broker, over all loads
	Idle     time.Duration
	Touch    int64 // bytes of memory to use once right before each load, so that the machine has them: see limits.Touch
}

// Defaults are the options that the targets are meant for.
func Defaults() Options {
	return Options{Storages: []string{"mmap", "sendfile"}, Rounds: 3, Duration: 3 * time.Second, WarmUp: 45 * time.Second, Idle: 12 * time.Second, Touch: 4 << 30}
}

// Comparison is one run of all that is measured.
type Comparison struct {
	Options
	Env   *task.Env
	Tools *tools.Tools
	Dir   string // for everything that is written; its owner removes it

	bin    string
	java   peers.Java
	bounds bounds
	failed []string // what could not be measured, and why
}

// settle is how long brokers are left alone after a topic was deleted: its files go in the background.
const settle = 1500 * time.Millisecond

// properties are set on both brokers: what is deleted goes at once, or gigabytes wait on the disk, and sockets receive as well as
// the system can, which is what Barnabas does by default.
func properties() map[string]string {
	return map[string]string{
		"log.segment.delete.delay.ms": "500",
		"socket.receive.buffer.bytes": "-1",
		// As Kafka has them, whatever the tests' brokers are started with.
		"group.initial.rebalance.delay.ms": "3000",
		"offsets.topic.num.partitions":     "50",
	}
}

// Names lists the rows.
func Names() []string { return append(singleNames(), clusterNames()...) }

// singleNames lists the rows of one broker.
func singleNames() []string {
	var names []string
	for _, l := range loads() {
		names = append(names, l.name)
	}
	for _, s := range append(partitionStates(), states()...) {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// clusterNames lists the rows of clusters.
func clusterNames() []string {
	var names []string
	for _, f := range clusterFigures() {
		names = append(names, f.Name)
	}
	return names
}

// wants says whether one of these rows of one broker is wanted.
func (c *Comparison) wants(names ...string) bool {
	return len(c.Only) == 0 && !c.Clusters || slices.ContainsFunc(names, c.named)
}

func (c *Comparison) named(name string) bool { return slices.Contains(c.Only, name) }

// Run measures everything. What can't be measured is in the report, the error is about all of it.
func (c *Comparison) Run(ctx context.Context) (*Report, error) {
	for _, name := range c.Only {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("no row %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	if c.Rounds < 1 || c.Duration <= 0 || len(c.Storages) == 0 {
		return nil, fmt.Errorf("nothing to measure: %d rounds of %s, storages %v", c.Rounds, c.Duration, c.Storages)
	}
	c.bounds, c.failed = bounds{}, nil
	var report Report
	for _, part := range []func(context.Context) ([]Figure, error){c.measureLoads, c.measurePartitions, c.measureStates, c.measureClusters} {
		figures, err := part(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			c.fails(err)
		}
		report.Figures = append(report.Figures, figures...)
	}
	report.Limits, report.Failed = c.bounds.report(), c.failed
	return &report, nil
}

// fails notes that something could not be measured. The rest of a long run goes on.
func (c *Comparison) fails(err error) {
	c.Env.Say("FAILED: %v", err)
	c.failed = append(c.failed, err.Error())
}

// prepare builds Barnabas and fetches Kafka, once.
func (c *Comparison) prepare(ctx context.Context) (err error) {
	if c.bin != "" {
		return nil
	}
	if c.java, err = peers.KafkaJars(ctx, c.Tools); err != nil {
		return err
	}
	c.bin, err = c.Tools.GoBuild(ctx, "./cmd/barnabas")
	return err
}

// startKafka starts Kafka on a port of its own, or at addr, on the data that it has.
func (c *Comparison) startKafka(ctx context.Context, name string, port int) (*peers.Peer, error) {
	return peers.StartKafka(ctx, c.Env, c.java, peers.KafkaOptions{Dir: filepath.Join(c.Dir, name), Port: port, Properties: properties()})
}

func (c *Comparison) startBarnabas(ctx context.Context, name, storage, addr string) (*peers.Peer, error) {
	dir := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return target.StartBarnabas(ctx, c.bin, target.Options{Dir: dir, Addr: addr, Storage: storage, Properties: properties()})
}

// kind is a broker that is measured: Kafka, or Barnabas with a storage.
type kind struct {
	storage string // "" for Kafka
}

func (k kind) String() string {
	if k.storage == "" {
		return "kafka"
	}
	return "barnabas " + k.storage
}

// kinds are those that are measured: Kafka first.
func (c *Comparison) kinds() []kind {
	all := []kind{{}}
	for _, storage := range c.Storages {
		all = append(all, kind{storage})
	}
	return all
}

// start starts a broker of some kind in the folder of that name; port 0 is any.
func (c *Comparison) start(ctx context.Context, k kind, name string, port int) (*peers.Peer, error) {
	if k.storage == "" {
		return c.startKafka(ctx, name, port)
	}
	addr := ""
	if port != 0 {
		addr = fmt.Sprintf("127.0.0.1:%d", port)
	}
	return c.startBarnabas(ctx, name, k.storage, addr)
}

// startTimed starts a broker and gives the time from its start to its first answer to Metadata.
func (c *Comparison) startTimed(ctx context.Context, k kind, name string) (*peers.Peer, time.Duration, error) {
	port, err := peers.FreePort()
	if err != nil {
		return nil, 0, err
	}
	answered := make(chan time.Time, 1)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with waiting
		if bench.Await(waiting, fmt.Sprintf("127.0.0.1:%d", port)) == nil {
			answered <- time.Now()
		}
	}()
	begin := time.Now()
	p, err := c.start(ctx, k, name, port)
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
