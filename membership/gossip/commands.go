package gossip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/pool"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/voters"
)

// What is asked on connections of the kind port.Commands.
const (
	methodStatus   = "status"   // -> Status
	methodPosition = "position" // -> consensus.Status
	methodPromote  = "promote"  // which server (text) -> Order
	methodRemove   = "remove"   // which server (text) -> Order
	methodPromise  = "promise"  // promise -> nothing
	methodStands   = "stands"   // member.ClusterID -> bool: whether this server's proposal of it stands
)

// Codes of the errors that are answered.
const (
	codePromised  = "promised"   // this server belongs, or has promised itself, to another cluster
	codeNotLeader = "not_leader" // another server leads: the detail is its address, if that is known
	codeRefused   = "refused"    // the order could cost the quorum, or makes no sense
)

// promise asks a server to promise itself to a cluster that another one proposes.
type promise struct {
	Cluster member.ClusterID `json:"cluster"`
	By      member.ServerID  `json:"by"`
}

func (p *peers) commands() map[string]rpc.Handler {
	all := p.keyCommands()
	maps.Copy(all, map[string]rpc.Handler{
		methodStatus:   func(context.Context, []byte) (any, error) { return p.status(), nil },
		methodPosition: func(context.Context, []byte) (any, error) { return p.h.node.Status(), nil },
		methodPromise:  p.promise,
		methodStands:   p.stands,
		methodPromote:  p.promote,
		methodRemove:   p.remove,
	})
	return all
}

func (p *peers) promise(_ context.Context, body []byte) (any, error) {
	var ask promise
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	if !ask.Cluster.Valid() || ask.Cluster == "" || !ask.By.Valid() {
		return nil, errors.New("no promise that makes sense")
	}
	if p.hasStore() && p.h.identity.Cluster() != ask.Cluster {
		return nil, &rpc.Error{Code: codePromised, Text: "it is part of a cluster"}
	}
	if err := p.h.identity.Promise(ask.Cluster, ask.By); err != nil {
		if errors.Is(err, member.ErrForeignCluster) {
			return nil, &rpc.Error{Code: codePromised, Text: err.Error()}
		}
		return nil, err
	}
	p.pool.Load().SetStore(p.hasStore())
	p.rouse()
	return nil, nil
}

func (p *peers) stands(_ context.Context, body []byte) (any, error) {
	var cluster member.ClusterID
	if err := json.Unmarshal(body, &cluster); err != nil {
		return nil, err
	}
	return cluster != "" && p.h.identity.Cluster() == cluster, nil
}

// Order is what became of an order.
type Order struct {
	Server  string `json:"server"`  // the one that was meant
	Outcome string `json:"outcome"` // what was done
	Voters  int    `json:"voters"`  // how many there are now
}

// order does the leader's part of an order: decide says what is to be done, over who answers now.
func (p *peers) order(ctx context.Context, body []byte, decide func(members []voters.Member, m voters.Member, living voters.Living) (outcome string, do func(index uint64) error, err error)) (any, error) {
	var which string
	if err := json.Unmarshal(body, &which); err != nil {
		return nil, err
	}
	if !p.h.node.Leads() {
		return nil, p.notLeader()
	}
	p.orders.Lock()
	defer p.orders.Unlock()
	members, index := p.members()
	m, err := voters.Find(members, which)
	if err != nil {
		return nil, &rpc.Error{Code: codeRefused, Text: err.Error()}
	}
	outcome, do, err := decide(members, m, p.living(ctx, members))
	switch {
	case errors.Is(err, voters.ErrRefused):
		return nil, &rpc.Error{Code: codeRefused, Text: err.Error()}
	case errors.Is(err, consensus.ErrNotLeader):
		return nil, p.notLeader()
	case err != nil:
		return nil, err
	}
	if err := do(index); errors.Is(err, consensus.ErrNotLeader) {
		return nil, p.notLeader()
	} else if err != nil {
		return nil, err
	}
	p.log.Warn("coordination: who votes was changed by an order", "server", string(m.Server), "outcome", outcome)
	o := Order{Server: string(m.Server), Outcome: outcome}
	members, _ = p.members()
	for _, m := range members {
		if m.Voter {
			o.Voters++
		}
	}
	p.rouse()
	return o, nil
}

func (p *peers) notLeader() error {
	server, address := p.h.node.Leader()
	if server == string(p.h.identity.Server()) {
		address = ""
	}
	return &rpc.Error{Code: codeNotLeader, Text: "another server leads", Detail: address}
}

// living asks all servers how far their logs go. Those that don't answer in time aren't in the result.
func (p *peers) living(ctx context.Context, members []voters.Member) voters.Living {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	self := p.h.identity.Server()
	living := voters.Living{self: p.h.node.Status().LastIndex} // before anybody else writes there
	for _, m := range members {
		if m.Server == self {
			continue
		}
		address := p.locate(string(m.Server))
		if address == "" {
			address = m.Address
		}
		asking.Go(func() {
			var s consensus.Status
			if err := p.client.Call(ctx, string(m.Server), address, methodPosition, nil, &s); err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			living[m.Server] = s.LastIndex
		})
	}
	asking.Wait()
	return living
}

func (p *peers) promote(ctx context.Context, body []byte) (any, error) {
	return p.order(ctx, body, func(members []voters.Member, m voters.Member, living voters.Living) (string, func(uint64) error, error) {
		if err := voters.Promote(members, m, living, p.h.node.Status().LastIndex); err != nil {
			return "", nil, err
		}
		return "votes from now on", func(index uint64) error {
			return p.h.node.SetServer(ctx, consensus.Server{ID: string(m.Server), Address: m.Address, Voter: true}, index)
		}, nil
	})
}

func (p *peers) remove(ctx context.Context, body []byte) (any, error) {
	return p.order(ctx, body, func(members []voters.Member, m voters.Member, living voters.Living) (string, func(uint64) error, error) {
		outcome, err := voters.Remove(members, m, living)
		if err != nil {
			return "", nil, err
		}
		if m.Server == p.h.identity.Server() {
			// Who leads gives that up first: the next leader carries the order out.
			if err := p.h.node.TransferLeadership(ctx); err != nil {
				return "", nil, fmt.Errorf("could not give the leadership up: %w", err)
			}
			return "", nil, consensus.ErrNotLeader
		}
		if outcome == voters.Demote {
			return "follows from now on, without a vote", func(index uint64) error { return p.h.node.Demote(ctx, string(m.Server), index) }, nil
		}
		return "is forgotten", func(index uint64) error { return p.h.node.RemoveServer(ctx, string(m.Server), index) }, nil
	})
}

// Status is what a broker knows of its coordination.
type Status struct {
	Broker      string           `json:"broker"` // its name in gossip: the broker id
	Server      string           `json:"server"` // its id in raft
	Address     string           `json:"address"`
	RaftCluster string           `json:"raft_cluster"`
	Waits       string           `json:"waits,omitempty"` // what it waits for, while it is part of no raft cluster
	Problem     string           `json:"problem,omitempty"`
	Leader      string           `json:"leader,omitempty"` // the server that leads, as far as it knows
	LeaderAt    string           `json:"leader_address,omitempty"`
	Raft        consensus.Status `json:"raft"`
	Controller  int32            `json:"controller"` // broker, or -1
	Epoch       int32            `json:"controller_epoch"`
	Voters      int              `json:"voters"`
	Tolerates   int              `json:"tolerates"` // how many voters may fail
	Members     []MemberStatus   `json:"members"`
}

// MemberStatus is what a broker knows of a server.
type MemberStatus struct {
	Broker  string `json:"broker"`
	Server  string `json:"server"`
	Address string `json:"address"`
	Raft    string `json:"raft"`   // leader, voter, follower (without a vote), or none when raft doesn't know it
	Gossip  string `json:"gossip"` // alive, suspect, dead, left, or unknown
}

// status tells what this server knows.
func (p *peers) status() Status {
	g := p.pool.Load()
	self := g.Self()
	s := Status{Broker: self.Name, Server: string(self.Server), Address: self.Address, RaftCluster: string(self.Cluster), Raft: p.h.node.Status()}
	if !p.hasStore() {
		s.Waits = p.waits()
	}
	if err := errors.Join(g.Err(), p.h.node.Err()); err != nil {
		s.Problem = err.Error()
	}
	s.Leader, s.LeaderAt = p.h.node.Leader()
	p.h.node.View(func(m *machine.Machine) { s.Controller, s.Epoch = m.Controller() })
	opinions := g.Survey()
	nodes := append(g.Nodes(), self)
	seen := map[member.ServerID]bool{}
	members, _ := p.members()
	for _, m := range members {
		seen[m.Server] = true
		row := MemberStatus{Broker: m.Server.Name(), Server: string(m.Server), Address: m.Address, Raft: "follower", Gossip: "unknown"}
		if m.Voter {
			s.Voters++
			row.Raft = "voter"
		}
		if row.Server == s.Leader {
			row.Raft = "leader"
		}
		for _, n := range nodes {
			if n.Server == m.Server {
				row.Broker, row.Address, row.Gossip = n.Name, n.Address, opinionOf(opinions, n)
			}
		}
		s.Members = append(s.Members, row)
	}
	for _, n := range nodes {
		if !seen[n.Server] {
			s.Members = append(s.Members, MemberStatus{Broker: n.Name, Server: string(n.Server), Address: n.Address, Raft: "none", Gossip: opinionOf(opinions, n)})
		}
	}
	s.Tolerates = max(0, s.Voters-1) / 2
	return s
}

func opinionOf(opinions map[string]pool.Opinion, n pool.Node) string {
	if o, ok := opinions[n.Name]; ok {
		return string(o)
	}
	if n.Gone {
		return string(pool.Dead)
	}
	return "unknown"
}
