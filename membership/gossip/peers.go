package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/pool"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/voters"
)

// peers implements company with gossip: it does what package voters decides over what package pool sees, and carries out what
// operators order.
type peers struct {
	plan    plan
	keyring *keyring
	log     *slog.Logger

	h       *host
	pool    atomic.Pointer[pool.Pool]
	server  *rpc.Server // of connections of the kind port.Commands
	client  *rpc.Client // likewise
	wake    chan struct{}
	ctx     context.Context // ends with stop
	end     context.CancelFunc
	running sync.WaitGroup
	orders  sync.Mutex // held by an order of who votes, one at a time

	mu  sync.Mutex
	why string // what this server waits for, while it has no store
}

// Pauses of a server that has no store yet, between two looks at the others.
const (
	formPause  = 500 * time.Millisecond
	dropPause  = 2 * time.Second // at most, after its proposal was refused
	askTimeout = 5 * time.Second
)

func newPeers(p plan, keyring *keyring, log *slog.Logger) *peers {
	return &peers{plan: p, keyring: keyring, log: log, wake: make(chan struct{}, 1)}
}

func (p *peers) handlers() map[string]rpc.Handler { return nil }

func (p *peers) locate(server string) string {
	if g := p.pool.Load(); g != nil {
		return g.Locate(member.ServerID(server))
	}
	return ""
}

func (p *peers) start(ctx context.Context, h *host) error {
	p.h = h
	_, ip, err := pool.Advertise(ctx, h.address, h.port.Addr())
	if err != nil {
		return err
	}
	t := p.plan.Timings
	g, err := pool.Start(pool.Config{Name: pool.NodeName(p.plan.Name, h.identity.Server()), Label: h.cluster, Port: h.port, Identity: h.identity,
		Advertise: h.address, IP: ip, Join: p.plan.Join, Keyring: p.keyring.ring, Logger: p.log, OnChange: p.rouse,
		Timings: pool.Timings{Probe: t.Probe, ProbeTimeout: t.ProbeTimeout, Suspicion: t.Suspicion, Gossip: t.Gossip, Sync: t.Sync, Reclaim: t.Reclaim}})
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	p.pool.Store(g)
	p.client = rpc.NewClient(func(ctx context.Context, server, address string) (net.Conn, error) {
		return h.port.Dial(ctx, port.Commands, member.ServerID(server), address)
	})
	p.server = rpc.NewServer(p.commands(), p.log)
	p.server.Serve(h.port.Listener(port.Commands))
	p.ctx, p.end = context.WithCancel(context.Background())
	p.running.Go(p.run)
	return nil
}

func (p *peers) stop(ctx context.Context) {
	p.end()
	p.running.Wait()
	p.server.Close()
	p.client.Close()
	_ = p.pool.Load().Stop(ctx) // never fails
}

// rouse makes run look again.
func (p *peers) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run looks at the others whenever something has changed, and does what follows.
func (p *peers) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	known := false
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		case <-p.h.node.Changed():
		case <-timer.C:
		}
		if has := p.hasStore(); has && !known {
			known = true
			p.say("")
			p.pool.Load().SetStore(true)
		}
		pause := time.Duration(0)
		switch {
		case !known:
			pause = p.form()
		case p.h.node.Leads():
			pause = p.keep()
		}
		timer.Stop()
		if pause > 0 {
			timer.Reset(pause)
		}
	}
}

// hasStore says whether this server is part of a raft cluster: it has a log, or had one.
func (p *peers) hasStore() bool {
	servers, _ := p.h.node.Servers()
	return len(servers) > 0 || p.h.node.HadState()
}

// say remembers what this server waits for, and logs it.
func (p *peers) say(why string) {
	p.mu.Lock()
	changed := p.why != why
	p.why = why
	p.mu.Unlock()
	if changed && why != "" {
		p.log.Info("coordination: " + why)
	}
}

// waits says what this server waits for.
func (p *peers) waits() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// peer describes a server to package voters.
func peer(n pool.Node) voters.Peer {
	return voters.Peer{Name: n.Name, Server: n.Server, Cluster: n.Cluster, Address: n.Address, Store: n.Store}
}

// there are the others that gossip shows.
func (p *peers) there() (list []voters.Peer) {
	for _, n := range p.pool.Load().Nodes() {
		if !n.Gone {
			list = append(list, peer(n))
		}
	}
	return list
}

// form does the next step towards a cluster, and says when to look again.
func (p *peers) form() time.Duration {
	g, id := p.pool.Load(), p.h.identity
	if err := g.Err(); err != nil {
		p.say(err.Error())
		p.h.node.Refuse(err)
		return 0
	}
	if by := id.Promised(); by != "" {
		p.askWhetherItStands(by)
	}
	d := voters.Form(voters.Forming{Self: peer(g.Self()), Proposed: id.Proposed(), Others: p.there(), Expect: p.plan.Expect, Voters: p.plan.Voters})
	p.say(d.Why)
	switch {
	case d.Drop:
		return p.drop()
	case len(d.Founders) > 0:
		return p.propose(d.Founders)
	}
	return formPause
}

// drop takes this server's proposal back, and pauses: whoever else proposes may come first.
func (p *peers) drop() time.Duration {
	if err := p.h.identity.Release(p.h.identity.Cluster()); err != nil {
		p.log.Error("coordination: could not take a proposal back", "err", err)
	}
	p.pool.Load().SetStore(false)
	return formPause + rand.N(dropPause)
}

// askWhetherItStands asks who has proposed the cluster that this server has promised itself to. Its own word counts, and nobody else's:
// what gossip says of it may be older than the proposal.
func (p *peers) askWhetherItStands(by member.ServerID) {
	address := p.pool.Load().Locate(by)
	if address == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, askTimeout)
	defer cancel()
	cluster := p.h.identity.Cluster()
	var stands bool
	if err := p.client.Call(ctx, string(by), address, methodStands, cluster, &stands); err != nil || stands {
		return
	}
	if err := p.h.identity.Release(cluster); err != nil {
		p.log.Error("coordination: could not take a promise back", "err", err)
	}
	p.pool.Load().SetStore(false)
}

// propose asks all founders to promise themselves, and makes the cluster when all do.
func (p *peers) propose(founders []voters.Founder) time.Duration {
	cluster, err := p.h.identity.Propose()
	if err != nil {
		p.log.Debug("coordination: this broker promised itself meanwhile", "err", err)
		return formPause
	}
	p.pool.Load().SetStore(false)
	servers := make([]consensus.Server, len(founders))
	for i, f := range founders {
		servers[i] = consensus.Server{ID: string(f.Server), Address: f.Address, Voter: f.Voter}
		if f.Server == p.h.identity.Server() {
			continue
		}
		ctx, cancel := context.WithTimeout(p.ctx, askTimeout)
		err := p.client.Call(ctx, string(f.Server), f.Address, methodPromise, promise{cluster, p.h.identity.Server()}, nil)
		cancel()
		var refused *rpc.Error
		if errors.As(err, &refused) && refused.Code == codePromised {
			p.log.Info("coordination: a broker has promised itself to another cluster, this broker's proposal is dropped", "broker", f.Name, "because", err)
			return p.drop()
		}
		if err != nil {
			p.say(fmt.Sprintf("waiting for broker %s to answer: %v", f.Name, err))
			return formPause
		}
	}
	if err := p.h.node.Bootstrap(servers); err != nil {
		p.log.Error("coordination: could not form the cluster", "err", err)
		return formPause
	}
	p.log.Info("coordination: formed a cluster", "raft_cluster", string(cluster), "servers", len(servers))
	return time.Millisecond // to look at the store
}

// self is this server as raft's configuration should have it.
func (p *peers) self() voters.Member {
	return voters.Member{Server: p.h.identity.Server(), Address: p.h.address}
}

// members are the servers of raft's configuration, and its index.
func (p *peers) members() (list []voters.Member, index uint64) {
	servers, index := p.h.node.Servers()
	for _, s := range servers {
		list = append(list, voters.Member{Server: member.ServerID(s.ID), Address: s.Address, Voter: s.Voter})
	}
	return list, index
}

// keep makes one change of raft's configuration, if one is due, and says when to look again.
func (p *peers) keep() time.Duration {
	if !p.orders.TryLock() { // an operator's order goes first
		return p.plan.Timings.Change
	}
	defer p.orders.Unlock()
	members, index := p.members()
	c := voters.Keep(p.self(), members, p.there(), p.h.identity.Cluster())
	if c.Kind == voters.Nothing {
		return 0
	}
	ctx, cancel := context.WithTimeout(p.ctx, 2*askTimeout)
	defer cancel()
	what, err := "", error(nil)
	switch c.Kind {
	case voters.Add:
		what = "coordination: a broker follows from now on"
		err = p.h.node.SetServer(ctx, consensus.Server{ID: string(c.Server), Address: c.Address}, index)
	case voters.Move:
		what = "coordination: a broker has another address"
		err = p.h.node.SetServer(ctx, consensus.Server{ID: string(c.Server), Address: c.Address, Voter: c.Voter}, index)
	case voters.Drop:
		what = "coordination: a broker has another store, the former one is forgotten"
		err = p.h.node.RemoveServer(ctx, string(c.Server), index)
	}
	if err != nil {
		p.log.Debug("coordination: could not change raft's configuration; trying again", "server", string(c.Server), "err", err)
	} else {
		p.log.Info(what, "server", string(c.Server), "address", c.Address)
	}
	return p.plan.Timings.Change
}
