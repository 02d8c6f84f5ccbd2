package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/faults/network"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// Cluster is brokers and what they agree through, with wires between all of them.
type Cluster struct {
	Brokers []*Broker // their ids are 1, 2, …, but for those that a scenario took out
	Network *network.Network

	coordination coordination
	options      Options
	ports        []int // free ones, all different
	client       *kgo.Client
	admin        *kadm.Client

	mu sync.Mutex // guards Brokers where it grows, and where goroutines of the network read it
}

// Options say what kind of cluster.
type Options struct {
	Binary    string            // barnabas
	Kafka     *peers.Java       // Apache Kafka's jars, to run that instead; nil for Barnabas
	Mixed     bool              // only the last broker is Apache Kafka
	Dir       string            // an empty folder
	Brokers   int               // 0 is 3
	Votes     int               // how many of these vote, on memberlist; 0 is the broker's default
	Storage   string            // "" is the broker's default
	ZooKeeper *zktest.Ensemble  // runs; nil for brokers that agree through memberlist and raft
	Root      string            // the path in ZooKeeper below which the cluster keeps its nodes
	Property  map[string]string // further ones of all brokers
}

// NewCluster wires a cluster up. Nothing runs yet.
func NewCluster(o Options) (*Cluster, error) {
	if o.Brokers == 0 {
		o.Brokers = 3
	}
	const spare = 2 // brokers that a scenario may add
	ports, err := peers.FreePorts(portsOfBroker * (o.Brokers + spare))
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o, ports: ports}
	c.Network = network.New(network.Processes(c.processes))
	if o.ZooKeeper != nil {
		c.coordination = &zookeeper{network: c.Network, servers: o.ZooKeeper, root: o.Root}
	} else {
		c.coordination = newMemberlist(c.Network, c.brokers, o.Brokers, o.Votes)
	}
	for id := 1; id <= o.Brokers; id++ {
		b := &Broker{ID: id, bin: o.Binary, dir: filepath.Join(o.Dir, fmt.Sprintf("broker-%d", id)), storage: o.Storage, properties: o.Property}
		if !o.Mixed || id == o.Brokers {
			b.kafka = o.Kafka
		}
		if err := c.wire(b); err != nil {
			c.Network.Close()
			return nil, err
		}
		c.add(b)
	}
	return c, nil
}

// add makes a broker one of the cluster's.
func (c *Cluster) add(b *Broker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Brokers = append(c.Brokers, b)
}

// brokers are those that there are now, for goroutines of the network.
func (c *Cluster) brokers() []*Broker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.Brokers)
}

// portsOfBroker is how many a broker listens on: for clients, for brokers, and for coordination.
const portsOfBroker = 3

// freeAddr takes an address of 127.0.0.1 that nobody has.
func (c *Cluster) freeAddr() (string, error) {
	if len(c.ports) == 0 {
		return "", errors.New("more brokers than there are ports for")
	}
	port := c.ports[0]
	c.ports = c.ports[1:]
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

// wire gives a broker its addresses and gates.
func (c *Cluster) wire(b *Broker) (err error) {
	for _, addr := range []*string{&b.clients, &b.internal, &b.ends.bind} {
		if *addr, err = c.freeAddr(); err != nil {
			return err
		}
	}
	if b.gates.clients, err = c.Network.Gate("", b.name(), b.clients); err != nil {
		return err
	}
	if b.gates.internal, err = c.Network.Gate("", b.name(), b.internal); err != nil {
		return err
	}
	return c.coordination.wire(b)
}

// processes names the brokers' processes, for the network, whose goroutines call it.
func (c *Cluster) processes() map[int]string {
	names := map[int]string{}
	for _, b := range c.brokers() {
		if pid := b.pid(); pid != 0 {
			names[pid] = b.name()
		}
	}
	return names
}

// Start starts all brokers that don't run, side by side.
func (c *Cluster) Start(ctx context.Context) error {
	errs := make(chan error, len(c.Brokers))
	for _, b := range c.Brokers {
		go func() { errs <- b.Start(ctx) }()
	}
	var all []error
	for range c.Brokers {
		all = append(all, <-errs)
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	if c.client == nil {
		client, err := newClient(c.Bootstrap()...)
		if err != nil {
			return err
		}
		c.client, c.admin = client, kadm.NewClient(client)
	}
	return c.agreed(ctx, time.Minute, "all brokers are known", func(m kadm.Metadata) bool { return len(m.Brokers) == len(c.Brokers) && m.Controller > 0 })
}

// Bootstrap are the addresses that clients begin with.
func (c *Cluster) Bootstrap() []string {
	var addrs []string
	for _, b := range c.Brokers {
		addrs = append(addrs, b.Addr())
	}
	return addrs
}

// Broker is the broker with an id, nil when there is none.
func (c *Cluster) Broker(id int32) *Broker {
	for _, b := range c.Brokers {
		if b.ID == int(id) {
			return b
		}
	}
	return nil
}

// remove takes a broker out of the cluster for good: it isn't mended any more.
func (c *Cluster) remove(b *Broker) {
	b.Kill()
	b.forget()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Brokers = slices.DeleteFunc(slices.Clone(c.Brokers), func(other *Broker) bool { return other == b })
}

// Mend undoes everything: wires, pauses, the coordination's servers, brokers that don't run.
func (c *Cluster) Mend(ctx context.Context) error {
	c.Network.Heal()
	errs := []error{c.coordination.mend(ctx)}
	for _, b := range c.Brokers {
		errs = append(errs, b.Resume())
	}
	return errors.Join(append(errs, c.Start(ctx))...)
}

// Stop stops all brokers cleanly, the last first.
func (c *Cluster) Stop() error {
	var errs []error
	for i := len(c.Brokers) - 1; i >= 0; i-- {
		errs = append(errs, c.Brokers[i].Stop())
	}
	return errors.Join(errs...)
}

// Close kills what still runs, and ends the network. Files stay.
func (c *Cluster) Close() {
	for _, b := range c.Brokers {
		b.Kill()
		b.forget()
	}
	if c.client != nil {
		c.client.Close()
	}
	c.Network.Close()
}

// Controller is the broker that is controller, as the cluster says.
func (c *Cluster) Controller(ctx context.Context) (*Broker, error) {
	var id int32
	err := c.await(ctx, time.Minute, "there is a controller", func(m kadm.Metadata) bool {
		id = m.Controller
		return c.Broker(id) != nil
	})
	if err != nil {
		return nil, err
	}
	return c.Broker(id), nil
}

// Leader is the broker that leads a partition, as the cluster says.
func (c *Cluster) Leader(ctx context.Context, topic string, partition int32) (*Broker, error) {
	var id int32
	err := c.await(ctx, time.Minute, fmt.Sprintf("%s-%d has a leader", topic, partition), func(m kadm.Metadata) bool {
		p, ok := m.Topics[topic].Partitions[partition]
		id = p.Leader
		return ok && c.Broker(id) != nil
	}, topic)
	if err != nil {
		return nil, err
	}
	return c.Broker(id), nil
}

// InSync waits until all replicas of a topic are in sync.
func (c *Cluster) InSync(ctx context.Context, topic string, within time.Duration) error {
	return c.agreed(ctx, within, "all replicas of "+topic+" are in sync", func(m kadm.Metadata) bool {
		for _, p := range m.Topics[topic].Partitions {
			if p.Leader < 0 || len(p.ISR) != len(p.Replicas) {
				return false
			}
		}
		return len(m.Topics[topic].Partitions) > 0 && len(m.Brokers) == len(c.Brokers)
	}, topic)
}

// pause waits; false means that ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
