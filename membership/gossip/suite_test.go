package gossip

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// atOnce is how many tests go on at the same time.
const atOnce = 6

func TestMain(m *testing.M) {
	// Tests mostly wait, for elections and for what must come, and so more of them go together than there are cores.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue && runtime.GOMAXPROCS(0) < atOnce {
		_ = flag.Set(parallel.Name, strconv.Itoa(atOnce))
	}
	// A probe of gossip's that is under way when a broker stops ends within its interval: memberlist can't be told.
	// A call that raft has taken while it shut down is never answered, and its goroutine stays.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*deferError).Error"))
}

// patience is how long something that must happen may take on a busy machine.
const patience = 60 * time.Second

// testTimings are quick where that costs nothing, and patient where a busy machine could be taken for a dead one.
func testTimings() consensus.Timings {
	return consensus.Timings{Session: 8 * time.Second, Heartbeat: 600 * time.Millisecond, Election: 600 * time.Millisecond, Lease: 600 * time.Millisecond}
}

// group is a cluster of hosts in this process, whose company knows each other without gossip.
type group struct {
	t       testing.TB
	dir     string
	timings consensus.Timings
	proxied bool // whether servers reach each other through links, which can be cut

	mu      sync.Mutex
	cluster member.ClusterID
	hosts   map[string]*host // that run, by server
	links   map[[2]string]*link
	made    int
}

func newGroup(t testing.TB) *group {
	return &group{t: t, dir: t.TempDir(), timings: testTimings(), cluster: member.NewClusterID(), hosts: map[string]*host{}, links: map[[2]string]*link{}}
}

// host makes the host of a broker, which keeps its directory.
func (g *group) host(broker int) *host {
	h := &host{name: strconv.Itoa(broker), cluster: "test", dir: filepath.Join(g.dir, strconv.Itoa(broker)), bind: "127.0.0.1:0", advertise: "127.0.0.1:0",
		keys: func() [][]byte { return nil }, timings: g.timings, snapshotsAfter: 64, segmentSize: 1 << 20, log: logger(g.t)}
	h.company = &acquainted{g: g}
	return h
}

func (g *group) coordination(broker int) *coordination {
	h := g.host(broker)
	return newCoordination(h, h.timings, h.log)
}

// run starts the coordination of a broker, and stops it at the end.
func (g *group) run(broker int) *coordination {
	g.t.Helper()
	c := g.coordination(broker)
	require.NoError(g.t, c.Start(g.t.Context()))
	g.t.Cleanup(func() { require.NoError(g.t, c.Stop(context.Background())) })
	return c
}

// voters makes a cluster of brokers that vote, and runs them.
func (g *group) voters(n int) (all []*coordination) {
	g.t.Helper()
	var servers []consensus.Server
	for broker := 1; broker <= n; broker++ {
		c := g.run(broker)
		h := c.server.(*host)
		require.NoError(g.t, h.identity.Adopt(g.cluster))
		servers = append(servers, consensus.Server{ID: h.id(), Address: h.address, Voter: true})
		all = append(all, c)
	}
	g.made = n
	require.NoError(g.t, all[0].node.Bootstrap(servers))
	return all
}

// Member implements electiontest.Cluster: another broker, which follows.
func (g *group) Member() election.Coordination {
	g.made++
	return g.coordination(g.made)
}

// acquainted is company whose hosts know each other.
type acquainted struct {
	g   *group
	h   *host
	end context.CancelFunc
	wg  sync.WaitGroup
}

func (a *acquainted) handlers() map[string]rpc.Handler { return nil }

func (a *acquainted) locate(server string) string {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	h := a.g.hosts[server]
	if h == nil || a.h == nil {
		return ""
	}
	if !a.g.proxied {
		return h.address
	}
	return a.g.link(a.h.id(), server).to(h.address)
}

func (a *acquainted) start(_ context.Context, h *host) error {
	a.g.mu.Lock()
	a.h = h
	a.g.hosts[h.id()] = h
	others := len(a.g.hosts) - 1
	a.g.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	a.end = cancel
	if others > 0 && !h.node.HadState() {
		a.wg.Go(func() { a.enter(ctx) })
	}
	return nil
}

// enter has this host added by whoever leads, unless it is one of those that are bootstrapped.
func (a *acquainted) enter(ctx context.Context) {
	for ctx.Err() == nil {
		a.g.mu.Lock()
		var leader *host
		for _, h := range a.g.hosts {
			if h != a.h && h.node.Leads() {
				leader = h
			}
		}
		a.g.mu.Unlock()
		if leader != nil {
			servers, index := leader.node.Servers()
			for _, s := range servers {
				if s.ID == a.h.id() {
					return
				}
			}
			_ = leader.node.SetServer(ctx, consensus.Server{ID: a.h.id(), Address: a.h.address}, index)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (a *acquainted) stop(context.Context) {
	a.end()
	a.wg.Wait()
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	delete(a.g.hosts, a.h.id())
}

// TestSuiteAlone runs the suite on a cluster of one server, which is stopped and started again.
func TestSuiteAlone(t *testing.T) {
	electiontest.Run(t, electiontest.Options{Single: true, Portable: true, Patience: patience}, func(t *testing.T) electiontest.Cluster {
		t.Parallel() // it mostly waits for elections
		g := newGroup(t)
		g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond // nobody else can be leader
		return &solo{g}
	})
}

// solo makes members over one directory, one at a time.
type solo struct{ g *group }

func (s *solo) Member() election.Coordination { return &soloMember{s.g.coordination(1)} }

// soloMember makes the cluster when it is started for the first time.
type soloMember struct{ *coordination }

func (m *soloMember) Start(ctx context.Context) error {
	if err := m.coordination.Start(ctx); err != nil {
		return err
	}
	h := m.server.(*host)
	if h.node.HadState() {
		return nil
	}
	return errors.Join(h.identity.Adopt(h.company.(*acquainted).g.cluster),
		h.node.Bootstrap([]consensus.Server{{ID: h.id(), Address: h.address, Voter: true}}))
}

// TestSuite runs the suite on brokers that follow: where it is about several members, and over random histories, three which vote; else
// one, which is elected sooner.
func TestSuite(t *testing.T) {
	for _, clause := range electiontest.Clauses() {
		if clause.Portable {
			continue
		}
		t.Run(clause.Name, func(t *testing.T) {
			t.Parallel() // it waits for elections, too
			g := newGroup(t)
			if histories := clause.Name == "random histories"; clause.Several || histories {
				if histories { // it compares each answer with a model's, so no leader may be lost because the machine is busy
					g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 3*time.Second, 3*time.Second, 3*time.Second
				}
				g.voters(3)
			} else {
				g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
				g.voters(1)
				g.timings = testTimings() // of those that follow
			}
			clause.Check(t, electiontest.NewSubject(t, electiontest.Options{Patience: patience}, g))
		})
	}
}
