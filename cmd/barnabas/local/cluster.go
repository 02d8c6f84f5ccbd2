package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// Options say what to start.
type Options struct {
	Program       string   // barnabas
	Dir           string   // of everything, made when missing; a cluster that was there before goes on
	Brokers       int      // their ids are 1 to Brokers, each in a rack of its own
	Port          int      // of broker 1, the others have the next ones; 0 for any free ones
	Memberlist    bool     // whether the brokers agree without a ZooKeeper; what is said of ZooKeeper holds when they don't
	ZooKeeper     string   // HOST:PORT/CHROOT of one that runs already; "" starts one
	ZooKeeperPort int      // of the one that is started; 0 for any free one
	Sets          []string // for every broker's command line: KEY=VALUE
}

// How long brokers may take to answer, and to stop.
const (
	startTimeout = time.Minute
	stopTimeout  = time.Minute
)

// Cluster is a cluster that was started. Its methods are called by one goroutine, but for those of its brokers.
type Cluster struct {
	ZooKeeper string // HOST:PORT/CHROOT; "" for brokers that agree without it
	Brokers   []*Broker

	zookeeper *zktest.Ensemble // nil for one that ran already
}

// Start starts ZooKeeper, if there is to be one, and the brokers, and returns when all brokers know of one another. When that fails nothing is left
// running. say tells what takes long.
func Start(ctx context.Context, o Options, say func(string)) (*Cluster, error) {
	c := &Cluster{ZooKeeper: o.ZooKeeper}
	if err := c.start(ctx, o, say); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options, say func(string)) error {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	if c.ZooKeeper == "" && !o.Memberlist {
		if err := c.startZooKeeper(ctx, o, say); err != nil {
			return err
		}
	}
	ports, coordination, err := o.ports()
	if err != nil {
		return err
	}
	for i := range ports {
		b, err := o.broker(i+1, ports[i], coordination[i])
		if err != nil {
			return err
		}
		c.Brokers = append(c.Brokers, b)
	}
	for _, b := range c.Brokers {
		if err := os.WriteFile(b.Config, []byte(o.yaml(b)+c.election(b)), 0o644); err != nil {
			return err
		}
		if err := b.Start(); err != nil {
			return err
		}
	}
	return c.ready(ctx)
}

func (c *Cluster) startZooKeeper(ctx context.Context, o Options, say func(string)) error {
	zk := zktest.Options{Dir: filepath.Join(o.Dir, "zookeeper"), Sync: true, Tick: time.Second}
	if o.ZooKeeperPort != 0 {
		if err := free(o.ZooKeeperPort); err != nil {
			return fmt.Errorf("ZooKeeper's port: %w; --zookeeper-port takes another one, --zookeeper the one that runs there", err)
		}
		zk.Ports = []int{o.ZooKeeperPort}
	}
	cache, err := zktest.Cache()
	if err != nil {
		return err
	}
	say(fmt.Sprintf("ZooKeeper %s: jars in %s, fetched by Maven when they aren't there yet", zktest.Version, cache))
	if zk.Jars, err = zktest.Jars(ctx, cache); err != nil {
		return err
	}
	if c.zookeeper, err = zktest.Start(ctx, zk); err != nil {
		return err
	}
	c.ZooKeeper = c.zookeeper.Connect() + "/barnabas"
	return nil
}

// free says whether nobody listens on a port of 127.0.0.1.
func free(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// anyPorts are n different ones that nobody listens on, below those that systems give to outgoing connections, so that a broker
// that is started again finds them free.
func anyPorts(n int) (ports []int, err error) {
	const lowest, beyond, tries = 10_000, 32_768, 100
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close() // nothing was done with it
		}
	}()
	var last error
	for range tries * n {
		if len(ports) == n {
			return ports, nil
		}
		port := lowest + rand.IntN(beyond-lowest)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		held, ports = append(held, l), append(ports, port)
	}
	return nil, fmt.Errorf("no free port: %w", last)
}

// portOffset is between a broker's port and that of its coordination: the default of the plug-in memberlist.
const portOffset = 10_000

// ports are those of the brokers, and those of their coordination.
func (o Options) ports() (brokers, coordination []int, err error) {
	if o.Port == 0 {
		ports, err := anyPorts(2 * o.Brokers)
		if err != nil {
			return nil, nil, err
		}
		return ports[:o.Brokers], ports[o.Brokers:], nil
	}
	for id := 1; id <= o.Brokers; id++ {
		port := o.Port + id - 1
		if err := free(port); err != nil {
			return nil, nil, fmt.Errorf("the port of broker %d: %w; --port takes others", id, err)
		}
		own := port + portOffset
		if own >= 1<<16 {
			own = port - portOffset
		}
		if o.Memberlist {
			if err := free(own); err != nil {
				return nil, nil, fmt.Errorf("the port of broker %d's coordination: %w; --port takes others", id, err)
			}
		}
		brokers, coordination = append(brokers, port), append(coordination, own)
	}
	return brokers, coordination, nil
}

// broker gives a broker its places. Its ports stay the same when it is started again.
func (o Options) broker(id, port, coordination int) (b *Broker, err error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	b = &Broker{
		ID:     id,
		Addr:   at(port),
		Config: filepath.Join(dir, fmt.Sprintf("broker-%d.yaml", id)),
		Log:    filepath.Join(dir, fmt.Sprintf("broker-%d.log", id)),
		data:   filepath.Join(dir, fmt.Sprintf("data-%d", id)),
	}
	if o.Memberlist {
		b.coordination = at(coordination)
	}
	b.command = []string{o.Program, "serve", "-c", b.Config}
	for _, s := range o.Sets {
		b.command = append(b.command, "--set", s)
	}
	return b, nil
}

// yaml is a broker's configuration, but for what it agrees with others through.
func (o Options) yaml(b *Broker) string {
	replicas := min(o.Brokers, 3)
	return fmt.Sprintf(`broker:
  broker.id: %d
  broker.rack: rack-%d
  listeners: PLAINTEXT://%s
  log.dirs: %q
  default.replication.factor: %d
  min.insync.replicas: %d
  offsets.topic.replication.factor: %d
  transaction.state.log.replication.factor: %d
  transaction.state.log.min.isr: %d
  group.initial.rebalance.delay.ms: 0
  # The last one to stop has nobody to hand over to, and needn't ask for long.
  controlled.shutdown.retry.backoff.ms: 500
`, b.ID, b.ID, b.Addr, b.data, replicas, max(replicas-1, 1), replicas, replicas, max(replicas-1, 1))
}

// election is that section of a broker's configuration.
func (c *Cluster) election(b *Broker) string {
	if b.coordination == "" {
		return fmt.Sprintf("election:\n  zookeeper:\n    connect: %q\n    session_timeout: 6s\n", c.ZooKeeper)
	}
	var join []string
	for _, other := range c.Brokers {
		join = append(join, strconv.Quote(other.coordination))
	}
	return fmt.Sprintf("election:\n  memberlist:\n    bind: %q\n    join: [%s]\n    profile: local\n", b.coordination, strings.Join(join, ", "))
}

// ready waits until the first broker knows all of them, and a controller.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	var last error
	for {
		for _, b := range c.Brokers {
			if ended, err := b.Ended(); ended {
				return fmt.Errorf("broker %d ended while it was starting: %w\n%s", b.ID, err, b.Tail())
			}
		}
		if last = known(ctx, client, len(c.Brokers)); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the brokers don't form a cluster: %w", errors.Join(ctx.Err(), last))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// known asks any broker whether it knows n brokers and a controller.
func known(ctx context.Context, client *kgo.Client, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	m, err := metadata(ctx, client)
	if err != nil {
		return err
	}
	if len(m.Brokers) != n || m.ControllerID < 0 {
		return fmt.Errorf("there are %d brokers, and the controller is %d", len(m.Brokers), m.ControllerID)
	}
	return nil
}

// Addrs are the brokers' addresses.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, b := range c.Brokers {
		addrs = append(addrs, b.Addr)
	}
	return addrs
}

// Connect is Addrs, comma separated.
func (c *Cluster) Connect() string { return strings.Join(c.Addrs(), ",") }

// ZooKeeperPids are the processes of ZooKeeper that were started here.
func (c *Cluster) ZooKeeperPids() (pids []int) {
	if c.zookeeper == nil {
		return nil
	}
	for _, s := range c.zookeeper.Servers() {
		pids = append(pids, s.Pid())
	}
	return pids
}

// Stop stops the brokers, one after the other, the last first, and then ZooKeeper: brokers hand over what they lead, and say
// goodbye to a ZooKeeper that is still there. What doesn't end in time is killed.
func (c *Cluster) Stop(ctx context.Context) error {
	var errs []error
	for i := len(c.Brokers) - 1; i >= 0; i-- {
		stopping, cancel := context.WithTimeout(ctx, stopTimeout)
		errs = append(errs, c.Brokers[i].Stop(stopping))
		cancel()
	}
	if c.zookeeper != nil {
		errs = append(errs, c.zookeeper.Stop())
	}
	return errors.Join(errs...)
}
