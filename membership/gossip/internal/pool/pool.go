package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
)

// Timings are how long things take.
type Timings struct {
	Probe, ProbeTimeout time.Duration // between two probes, and that one waits
	Suspicion           time.Duration // that a silent server is suspected before it is called dead
	Gossip              time.Duration // between two packets with news
	Sync                time.Duration // between two exchanges of everything that is known
	Reclaim             time.Duration // that a server must have been dead until another address may have its name
}

// Config is what a pool is made of.
type Config struct {
	Name      string           // of this server in gossip: NodeName
	Label     string           // the cluster's name, which every packet bears
	Port      *port.Port       // its gossip listener and its packets are the pool's
	Identity  *member.Identity // of this server
	Advertise string           // HOST:PORT at which others reach the port; see Advertise
	IP        net.IP           // what its host stands for now
	Join      []string         // HOST:PORT of servers to begin with
	Keyring   *memberlist.Keyring
	Version   string
	Timings   Timings
	Logger    *slog.Logger
	// OnChange is called when what Nodes or Err returns may have changed. It must return at once.
	OnChange func()
}

// NodeName is the name of a server in gossip: its broker id, or for one that has none yet a name of its own.
func NodeName(name string, server member.ServerID) string {
	if name == member.Generated {
		return member.Generated + "-" + server.Store()
	}
	return name
}

// ErrNameTaken says that a living server has the name of this one.
var ErrNameTaken = errors.New("another living broker has this name")

// Node is one server, as far as gossip knows.
type Node struct {
	Meta
	Name   string
	Gossip string    // IP:PORT
	Gone   bool      // dead, or has left
	Since  time.Time // since when it is gone, or there
}

// Advertise completes the HOST:PORT at which others are to reach a port that is bound, and says what its host stands for now: an
// empty host is whatever this machine can be reached by, port 0 the one that is bound.
func Advertise(ctx context.Context, address string, bound *net.TCPAddr) (string, net.IP, error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, err
	}
	if host == "" {
		host = kafka.RoutableHost(ctx)
	}
	if number == "0" {
		number = strconv.Itoa(bound.Port)
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return "", nil, fmt.Errorf("other brokers can't find this one: %w", err)
	}
	ip := ips[0]
	for _, other := range ips {
		if four := other.To4(); four != nil {
			ip = four
			break
		}
	}
	return net.JoinHostPort(host, number), ip, nil
}

// maxGone bounds how many servers that are gone are remembered, and goneFor for how long.
const (
	maxGone = 256
	goneFor = 24 * time.Hour
)

// Pool is this server's part in gossip. Its methods may be called from any goroutine, between Start and Stop.
type Pool struct {
	c         Config
	list      *memberlist.Memberlist
	transport *transport
	own       string // IP:PORT
	closed    chan struct{}
	renew     chan struct{} // capacity 1: what this server says of itself has changed
	running   sync.WaitGroup
	stop      sync.Once

	store     atomic.Bool
	survey    surveyor
	mu        sync.Mutex
	nodes     map[string]Node // all others, by name
	rival     *Node           // who has this server's name elsewhere, as others say
	err       error
	refusedAt map[string]time.Time
}

// Start begins to gossip. Finding others goes on in the background.
func Start(c Config) (*Pool, error) {
	_, number, err := net.SplitHostPort(c.Advertise)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, err
	}
	p := &Pool{c: c, own: net.JoinHostPort(c.IP.String(), number), closed: make(chan struct{}), renew: make(chan struct{}, 1),
		nodes: map[string]Node{}, refusedAt: map[string]time.Time{}}
	if len(p.NodeMeta(memberlist.MetaMaxSize)) == 0 {
		return nil, fmt.Errorf("what this broker says of itself is longer than %d bytes: choose a shorter address than %s", memberlist.MetaMaxSize, c.Advertise)
	}
	encrypted := func() bool { return c.Keyring != nil && len(c.Keyring.GetKeys()) > 0 }
	p.transport = newTransport(c.Port, c.Label, encrypted, c.IP, int(n), func(from net.Addr) {
		p.refuse("a packet", from.String(), errors.New("it is none of this cluster's"))
	})
	p.transport.own = p.own
	config := p.config()
	p.transport.start()
	if p.list, err = memberlist.Create(config); err != nil {
		_ = p.transport.Shutdown() // never fails
		return nil, err
	}
	p.running.Go(p.run)
	return p, nil
}

func (p *Pool) config() *memberlist.Config {
	t := p.c.Timings
	m := memberlist.DefaultLANConfig()
	m.Name, m.Label, m.Transport = p.c.Name, p.c.Label, p.transport
	m.ProbeInterval, m.ProbeTimeout = t.Probe, t.ProbeTimeout
	m.SuspicionMult = max(1, int(math.Round(float64(t.Suspicion)/float64(t.Probe))))
	m.GossipInterval, m.PushPullInterval = t.Gossip, t.Sync
	m.GossipToTheDeadTime = max(t.Sync, 10*t.Suspicion)
	m.DeadNodeReclaimTime = t.Reclaim
	m.TCPTimeout = max(5*time.Second, 3*t.ProbeTimeout)
	m.EnableCompression = false // see acceptable
	m.Keyring = p.c.Keyring
	m.Delegate, m.Events, m.Alive, m.Merge, m.Conflict = p, p, p, p, p
	m.LogOutput = newLogWriter(p.c.Logger)
	return m
}

// Err says why this server takes no part, for ever: [ErrNameTaken]. It is nil while it does, or tries.
func (p *Pool) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// SetStore tells the others that this server has a store, or has joined a cluster: what it says of itself is made anew.
func (p *Pool) SetStore(store bool) {
	p.store.Store(store)
	select {
	case p.renew <- struct{}{}:
	default:
	}
}

// Self is this server as the others are told of it.
func (p *Pool) Self() Node {
	return Node{Name: p.c.Name, Gossip: p.own, Meta: Meta{Format: Format, Server: p.c.Identity.Server(), Cluster: p.c.Identity.Cluster(),
		Address: p.c.Advertise, Store: p.store.Load(), Version: p.c.Version}}
}

// Nodes lists the others by name: those that are there and those that were. Servers of other clusters aren't among them.
func (p *Pool) Nodes() []Node {
	own := p.c.Identity.Cluster()
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Node
	for _, n := range p.nodes {
		if own == "" || n.Cluster == "" || n.Cluster == own {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Locate says where a server is that is there, else "".
func (p *Pool) Locate(server member.ServerID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		if n.Server == server && !n.Gone {
			return n.Address
		}
	}
	return ""
}

// Stop tells the others that this server leaves, at most as long as ctx lasts, and ends gossip. A probe that is under way ends within its
// interval.
func (p *Pool) Stop(ctx context.Context) error {
	p.stop.Do(func() {
		wait := 2 * time.Second
		if deadline, ok := ctx.Deadline(); ok {
			wait = max(min(wait, time.Until(deadline)), time.Millisecond)
		}
		if err := p.list.Leave(wait); err != nil {
			p.c.Logger.Debug("nobody may have heard that this broker leaves", "error", err)
		}
		p.end()
	})
	return nil
}

// Kill ends gossip without a word, as a crash would.
func (p *Pool) Kill() { p.stop.Do(p.end) }

func (p *Pool) end() {
	close(p.closed)
	_ = p.list.Shutdown() // never fails, as the transport's doesn't
	p.running.Wait()
}

// refuse logs that somebody is kept out, not more often than every 30 seconds for each of them.
func (p *Pool) refuse(who, from string, why error) {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	key := who + "\x00" + host
	p.mu.Lock()
	now := time.Now()
	due := now.Sub(p.refusedAt[key]) >= 30*time.Second
	if due {
		if len(p.refusedAt) >= maxKinds {
			clear(p.refusedAt)
		}
		p.refusedAt[key] = now
	}
	p.mu.Unlock()
	if due {
		p.c.Logger.Warn("gossip: refused "+who, "from", from, "because", why)
	}
}
