package compare

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// The figures of clusters: three brokers on ZooKeeper beside Apache Kafka's last release that runs there.
const (
	clusterThroughput = "cluster-throughput"
	clusterCPU        = "cluster-cpu"
	clusterLatency    = "cluster-latency"
	clusterShutdown   = "cluster-shutdown"
	clusterFailOver   = "cluster-fail-over"
	clusterElections  = "cluster-elections-1000"
)

// clusterFigures are what is measured of clusters, and what is good enough, in the report's order.
func clusterFigures() []Figure {
	return []Figure{
		{Name: clusterThroughput, Unit: "MiB/s in 64 KiB batches, acks=all", Target: atLeast(2)},
		{Name: clusterCPU, Unit: "CPU-s/GB of all brokers, the same load", Target: atMost(0.5)},
		{Name: clusterLatency, Unit: "ms p99 at 2,000 records/s, linger 0", Target: atMost(0.5)},
		{Name: clusterShutdown, Unit: "s of silence at most, a leader is stopped", Target: Target{Limit: 1}},
		{Name: clusterFailOver, Unit: "s from a killed leader's expiry to all writes", Target: Target{Limit: 2}},
		{Name: clusterElections, Unit: "s from its expiry to 1,000 new leaders", Target: Target{Limit: 1}},
	}
}

// The size of clusters, and of the topics that take load.
const (
	clusterBrokers    = 3
	clusterPartitions = 12 // four a leader, each with a connection of its own
	clusterHeap       = "512M"
)

// cluster is one that is measured.
type cluster struct {
	broker  // of which addr is that of its first member
	running *target.Cluster
	noted
}

// wantsClusters says whether one of these rows of clusters is wanted: all of them are with Clusters, and those of their load
// without it, unless Only names some.
func (c *Comparison) wantsClusters(names ...string) bool {
	for _, name := range names {
		if len(c.Only) == 0 && (c.Clusters || name == clusterThroughput || name == clusterCPU) || c.named(name) {
			return true
		}
	}
	return false
}

// measureClusters starts all clusters, and does the same to each of them, in turn.
func (c *Comparison) measureClusters(ctx context.Context) ([]Figure, error) {
	if !c.wantsClusters(clusterNames()...) {
		return nil, nil
	}
	clusters, stop, err := c.startClusters(ctx) // Kafka's is the first
	defer stop()
	if err != nil {
		return nil, err
	}
	for _, measure := range []func(context.Context, []*cluster) error{c.clusterLoads, c.clusterLatencies, c.clusterFailOvers} {
		if err := measure(ctx, clusters); err != nil {
			return nil, err
		}
	}
	var figures []Figure
	for _, f := range clusterFigures() {
		for _, ours := range clusters[1:] {
			if !c.wantsClusters(f.Name) {
				continue
			}
			f.Broker, f.Ours, f.Theirs = ours.name, ours.noted[f.Name], clusters[0].noted[f.Name]
			figures = append(figures, f)
		}
	}
	return figures, nil
}

// startClusters starts Kafka's cluster and one of Barnabas for each storage. stop, which is never nil, ends those that run.
func (c *Comparison) startClusters(ctx context.Context) (clusters []*cluster, stop func(), err error) {
	stop = func() {
		for _, x := range clusters {
			x.running.Close()
		}
	}
	p := properties()
	p["min.insync.replicas"] = "2"
	options := []target.ClusterOptions{{What: target.Kafka39, Heap: clusterHeap}}
	for _, storage := range c.Storages {
		options = append(options, target.ClusterOptions{What: target.Barnabas, Storage: storage})
	}
	for _, o := range options {
		o.Brokers, o.Properties = clusterBrokers, p
		running, err := target.Opener{Env: c.Env, Tools: c.Tools}.OpenCluster(ctx, o)
		if err != nil {
			return clusters, stop, err
		}
		c.Env.Say("%s runs", running.Name)
		x := &cluster{running: running, noted: noted{}}
		x.broker = broker{name: running.Name, addr: running.Members[0].Addr, replicas: clusterBrokers}
		for _, m := range running.Members {
			x.pids = append(x.pids, m.Pid())
		}
		clusters = append(clusters, x)
	}
	return clusters, stop, nil
}

// replicated is a load of idempotent producers, one a connection.
func replicated(ctx context.Context, l bench.Load) (*bench.Result, error) {
	return (&bench.Produce{Load: l, InFlight: 5, RecordSize: 1000, BatchSize: 64 << 10, Acks: -1, Idempotent: true}).Run(ctx)
}

// clusterLoads puts the load that is to be as quick as it can on each cluster.
func (c *Comparison) clusterLoads(ctx context.Context, clusters []*cluster) error {
	if !c.wantsClusters(clusterThroughput, clusterCPU) {
		return nil
	}
	l := load{name: "cluster-produce", partitions: clusterPartitions, connections: clusterPartitions, run: replicated}
	for i, x := range clusters {
		took := c.WarmUp
		if i > 0 {
			took = min(took, time.Second) // nothing is compiled while it runs
		}
		if took <= 0 {
			continue
		}
		c.Env.Say("warming %s up for %s", x.name, took)
		if _, err := l.put(ctx, x.broker, took); err != nil {
			return err
		}
	}
	for range c.Rounds {
		for _, x := range clusters {
			if err := pause(ctx, settle); err != nil {
				return err
			}
			if err := c.touch(ctx); err != nil {
				return err
			}
			result, err := l.put(ctx, x.broker, c.Duration)
			if err != nil {
				return err
			}
			x.note(clusterThroughput, result.MiBPerSecond())
			x.note(clusterCPU, result.CPUPerGB())
			c.Env.Say("%-18s %-18s %s", l.name, x.name, told(result))
		}
	}
	return nil
}

// clusterLatencies sends single records at a rate that every cluster should bear with ease.
func (c *Comparison) clusterLatencies(ctx context.Context, clusters []*cluster) error {
	if !c.wantsClusters(clusterLatency) {
		return nil
	}
	measure := func(x *cluster, lasts time.Duration) (p50, p99 float64, err error) {
		topic := fmt.Sprintf("%s-%d", clusterLatency, time.Now().UnixMilli())
		if err := bench.CreateTopic(ctx, x.addr, topic, clusterPartitions, x.replicas); err != nil {
			return 0, 0, err
		}
		p := pacer{addrs: x.addrs(), topic: topic, partitions: clusterPartitions, rate: 2000}
		acks, err := p.run(ctx, lasts)
		if err != nil {
			return 0, 0, fmt.Errorf("%s, %s: %w", x.name, clusterLatency, err)
		}
		return delay(acks, time.Second, 0.5), delay(acks, time.Second, 0.99), bench.DeleteTopic(ctx, x.addr, topic)
	}
	for i, x := range clusters {
		took := c.WarmUp / 2 // another way through the code is compiled
		if i > 0 {
			took = min(took, time.Second)
		}
		if _, _, err := measure(x, took); err != nil {
			return err
		}
	}
	for range c.Rounds {
		for _, x := range clusters {
			if err := pause(ctx, settle); err != nil {
				return err
			}
			p50, p99, err := measure(x, time.Second+c.Duration)
			if err != nil {
				return err
			}
			x.note(clusterLatency, p99)
			c.Env.Say("%-18s %-18s %7.2f ms p99, %.2f ms p50", clusterLatency, x.name, p99, p50)
		}
	}
	return nil
}

func (c *cluster) addrs() []string {
	var addrs []string
	for _, m := range c.running.Members {
		addrs = append(addrs, m.Addr)
	}
	return addrs
}
