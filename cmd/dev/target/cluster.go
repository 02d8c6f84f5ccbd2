package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// Kafka39 is the target that is Apache Kafka on ZooKeeper; there are clusters of it only.
const Kafka39 = "kafka39"

// chroot is where clusters keep their nodes, so that it is seen when somebody forgets it.
const chroot = "/cluster"

// What the brokers of a cluster may agree through.
const (
	ZooKeeper  = "zookeeper"
	Memberlist = "memberlist"
)

// ClusterOptions are what differs between clusters.
type ClusterOptions struct {
	What         string            // Barnabas or Kafka39
	Coordination string            // ZooKeeper, which is what "" stands for, or Memberlist, of Barnabas
	Storage      string            // of Barnabas; "" is its default
	Brokers      int               // their ids are 1 to Brokers, in racks r1 to …
	Properties   map[string]string // over those that every broker of a cluster is started with
	Offsets      string            // Barnabas' offsets store, "topic" or "zookeeper"; "" is its default
	Heap         string            // of each of Kafka's JVMs; "" is 256M
	Servers      int               // of ZooKeeper; 0 is 1
	Sync         bool              // whether ZooKeeper forces what it acknowledges to the disk, as it does outside tests
}

// Cluster is several brokers, as processes, on a ZooKeeper of their own or without any.
type Cluster struct {
	Name      string // for reports
	ZooKeeper string // HOST:PORT/CHROOT; "" without one
	Members   []*Member

	zookeeper *zktest.Ensemble
	dir       string // of the brokers' folders
	cleanup   func()
}

// Member is one broker of a cluster. It keeps its address and its data.
type Member struct {
	ID   int
	Addr string

	gossip string // HOST:PORT of its coordination, when that is Memberlist
	start  func(ctx context.Context) (*peers.Peer, error)
	peer   *peers.Peer // nil when it doesn't run
}

// clusterProperties are those that every broker of a cluster is started with: internal topics on all of them, and nothing that
// is waited for.
func clusterProperties(brokers int) map[string]string {
	replicas := strconv.Itoa(min(brokers, 3))
	return map[string]string{
		"group.initial.rebalance.delay.ms":         "0",
		"offsets.topic.num.partitions":             "5",
		"offsets.topic.replication.factor":         replicas,
		"transaction.state.log.num.partitions":     "5",
		"transaction.state.log.replication.factor": replicas,
		"transaction.state.log.min.isr":            strconv.Itoa(min(brokers, 2)),
		"zookeeper.session.timeout.ms":             "6000",
		"controlled.shutdown.retry.backoff.ms":     "500", // the last one to stop has nobody to hand over to
	}
}

// OpenCluster starts what the brokers agree through, and the brokers: on ZooKeeper one after the other, so that broker 1 is controller.
func (o Opener) OpenCluster(ctx context.Context, opts ClusterOptions) (*Cluster, error) {
	dir, cleanup, err := o.Env.TempDir("cluster-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Name: strings.TrimSpace(fmt.Sprintf("%d x %s %s", opts.Brokers, opts.What, opts.Storage)), dir: dir, cleanup: cleanup}
	switch opts.Coordination {
	case Memberlist:
		c.Name += " " + Memberlist
	case ZooKeeper, "":
		if c.zookeeper, err = zktest.Start(ctx, zktest.Options{Dir: filepath.Join(dir, "zookeeper"), Servers: opts.Servers, Sync: opts.Sync}); err != nil {
			c.Close()
			return nil, err
		}
		c.ZooKeeper = c.zookeeper.Connect() + chroot
	default:
		c.Close()
		return nil, fmt.Errorf("coordination %q: not %s or %s", opts.Coordination, ZooKeeper, Memberlist)
	}
	starter, err := o.starter(ctx, opts, dir, c)
	if err != nil {
		c.Close()
		return nil, err
	}
	ports, err := peers.FreePorts(2 * opts.Brokers)
	if err != nil {
		c.Close()
		return nil, err
	}
	at := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])) }
	for id := 1; id <= opts.Brokers; id++ {
		m := &Member{ID: id, Addr: at(2*id - 2), gossip: at(2*id - 1)}
		m.start = func(ctx context.Context) (*peers.Peer, error) { return starter(ctx, m) }
		c.Members = append(c.Members, m)
	}
	if err := c.startAll(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// starter is what starts one broker.
func (o Opener) starter(ctx context.Context, opts ClusterOptions, dir string, c *Cluster) (func(context.Context, *Member) (*peers.Peer, error), error) {
	of := func(m *Member) map[string]string {
		p := clusterProperties(opts.Brokers)
		p["broker.rack"] = fmt.Sprintf("r%d", m.ID)
		maps.Copy(p, opts.Properties)
		return p
	}
	home := c.home
	switch opts.What {
	case Kafka39:
		if c.ZooKeeper == "" {
			return nil, fmt.Errorf("%s needs a ZooKeeper", Kafka39)
		}
		java, err := peers.Kafka39Jars(ctx, o.Tools)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, m *Member) (*peers.Peer, error) {
			_, port, err := net.SplitHostPort(m.Addr)
			if err != nil {
				return nil, err
			}
			n, err := strconv.Atoi(port)
			if err != nil {
				return nil, err
			}
			return peers.StartKafka39(ctx, java, peers.Kafka39Options{Dir: home(m), ID: m.ID, Port: n, ZooKeeper: c.ZooKeeper, Heap: cmp.Or(opts.Heap, "256M"), Properties: of(m)})
		}, nil
	case Barnabas:
		bin, err := o.Tools.GoBuild(ctx, "./cmd/barnabas")
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, m *Member) (*peers.Peer, error) {
			p := of(m)
			p["broker.id"] = strconv.Itoa(m.ID)
			delete(p, "zookeeper.session.timeout.ms")
			sections := c.election(m)
			switch opts.Offsets {
			case "":
			case "zookeeper":
				sections += fmt.Sprintf("offsets:\n  zookeeper:\n    connect: %q\n", c.ZooKeeper)
			default:
				sections += "offsets: " + opts.Offsets + "\n"
			}
			return StartBarnabas(ctx, bin, Options{Dir: home(m), Addr: m.Addr, Storage: opts.Storage, Properties: p, Sections: sections})
		}, nil
	}
	return nil, fmt.Errorf("cluster of %q: not %s or %s", opts.What, Barnabas, Kafka39)
}

// startAll starts the brokers. Without ZooKeeper they wait for one another: only together they form a cluster.
func (c *Cluster) startAll(ctx context.Context) error {
	var together errgroup.Group
	for _, m := range c.Members {
		if c.ZooKeeper == "" {
			together.Go(func() error { return m.Start(ctx) })
		} else if err := m.Start(ctx); err != nil {
			return err
		}
	}
	return together.Wait()
}

// election is that section of a broker's configuration. Without ZooKeeper all brokers know one another's addresses.
func (c *Cluster) election(m *Member) string {
	if c.ZooKeeper != "" {
		return fmt.Sprintf("election:\n  zookeeper:\n    connect: %q\n    session_timeout: 6s\n", c.ZooKeeper)
	}
	all := make([]string, len(c.Members))
	for i, other := range c.Members {
		all[i] = strconv.Quote(other.gossip)
	}
	return fmt.Sprintf("election:\n  memberlist:\n    bind: %q\n    join: [%s]\n", m.gossip, strings.Join(all, ", "))
}

func (c *Cluster) home(m *Member) string {
	return filepath.Join(c.dir, fmt.Sprintf("broker-%d", m.ID))
}

// Start starts the broker, on the data that it has. One that runs is left alone.
func (m *Member) Start(ctx context.Context) (err error) {
	if m.peer != nil {
		return nil
	}
	if m.peer, err = m.start(ctx); err != nil {
		return fmt.Errorf("broker %d: %w", m.ID, err)
	}
	return nil
}

// Stop asks the broker to stop, and waits for its end.
func (m *Member) Stop() error {
	if m.peer == nil {
		return nil
	}
	p := m.peer
	m.peer = nil
	if err := p.Stop(); err != nil {
		return fmt.Errorf("broker %d: %w", m.ID, err)
	}
	return nil
}

// Kill ends the broker with SIGKILL.
func (m *Member) Kill() {
	if m.peer != nil {
		m.peer.Kill()
		m.peer = nil
	}
}

// Running says whether the broker was started and not ended by Stop or Kill.
func (m *Member) Running() bool { return m.peer != nil }

// Pid is the process of a running broker.
func (m *Member) Pid() int { return m.peer.Pid() }

// Output is the end of what a running broker printed.
func (m *Member) Output() string {
	if m.peer == nil {
		return ""
	}
	return m.peer.Output()
}

// Addrs are the brokers' addresses, comma separated.
func (c *Cluster) Addrs() string {
	addrs := make([]string, len(c.Members))
	for i, m := range c.Members {
		addrs[i] = m.Addr
	}
	return strings.Join(addrs, ",")
}

// Output is the end of what each broker printed.
func (c *Cluster) Output() string {
	var b strings.Builder
	for _, m := range c.Members {
		if out := m.Output(); out != "" {
			fmt.Fprintf(&b, "broker %d:\n%s\n", m.ID, out)
		}
	}
	return b.String()
}

// Stop stops all brokers cleanly, the last first, and then ZooKeeper. Their files stay until Close.
func (c *Cluster) Stop() error {
	var errs []error
	for i := len(c.Members) - 1; i >= 0; i-- {
		errs = append(errs, c.Members[i].Stop())
	}
	if c.zookeeper != nil {
		errs = append(errs, c.zookeeper.Stop())
	}
	return errors.Join(errs...)
}

// Close kills what still runs and removes all files.
func (c *Cluster) Close() {
	for _, m := range c.Members {
		m.Kill()
	}
	if c.zookeeper != nil {
		for _, s := range c.zookeeper.Servers() {
			_ = s.Kill() // it may not run
		}
	}
	c.cleanup()
}
