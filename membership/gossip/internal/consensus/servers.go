package consensus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/core/election"
)

// This file is what whoever decides about raft's servers stands on. Nothing in this package calls the methods that change them.

// ErrNotLeader says that only the leader can do what was asked.
var ErrNotLeader = errors.New("this server doesn't lead")

// HadState says whether the store held anything when it was opened: the server was part of a cluster before.
func (n *Node) HadState() bool { return n.hadState }

// Bootstrap makes a new cluster of these servers, of which this is one. All of them that are bootstrapped at once must be given the
// same ones. A server that has state returns an error, and stays as it is.
func (n *Node) Bootstrap(servers []Server) error {
	var c raft.Configuration
	for _, s := range servers {
		suffrage := raft.Nonvoter
		if s.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{Suffrage: suffrage, ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Address)})
	}
	return n.await(n.ctx, n.raft.Load().BootstrapCluster(c))
}

// Servers gives the configuration as this server knows it, and its index in the log: 0 when there is none.
func (n *Node) Servers() ([]Server, uint64) {
	r := n.raft.Load()
	if r == nil {
		return nil, 0
	}
	f := r.GetConfiguration()
	if f.Error() != nil { // raft answers at once
		return nil, 0
	}
	var all []Server
	for _, s := range f.Configuration().Servers {
		all = append(all, Server{ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return all, f.Index()
}

// otherVoters are the servers that vote, but for this one, and whether this one does, too: as raft counts majorities now.
func (n *Node) otherVoters() (servers []string, own bool) {
	all, _ := n.Servers()
	for _, s := range all {
		switch {
		case !s.Voter:
		case s.ID == n.c.ID:
			own = true
		default:
			servers = append(servers, s.ID)
		}
	}
	return servers, own
}

func (n *Node) voters() (count int) {
	servers, _ := n.Servers()
	for _, s := range servers {
		if s.Voter {
			count++
		}
	}
	return count
}

// locate says where a server is: as gossip knows it, or as raft's configuration has it.
func (n *Node) locate(server string) string {
	if n.c.Locate != nil {
		if address := n.c.Locate(server); address != "" {
			return address
		}
	}
	servers, _ := n.Servers()
	for _, s := range servers {
		if s.ID == server {
			return s.Address
		}
	}
	return ""
}

// Leader says who leads, as far as this server knows, and where that is; "" while nobody does.
func (n *Node) Leader() (server, address string) {
	at, id := n.raft.Load().LeaderWithID()
	if id == "" {
		return "", ""
	}
	if address = n.locate(string(id)); address == "" {
		address = string(at)
	}
	return string(id), address
}

// Leads says whether this server leads, and may answer as leader.
func (n *Node) Leads() bool {
	_, err := n.leader()
	return err == nil
}

// Changed is closed when another server leads, or nobody, or this one begins to, or is refused: at the latest then, Leader is worth another look.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Refuse ends all waiting for a leader, now and later, with the reason: no cluster will have this server.
func (n *Node) Refuse(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused == nil { // once: those who are told look again, and may find the same
		n.refused = why
		n.tellChanged()
	}
}

// hopeless says why it is no use to wait for a leader, nil when it is.
func (n *Node) hopeless() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused
}

// SetServer adds a server, changes its address, or makes one that follows a voter; a voter stays one. Only the leader can.
// index is that of the configuration which the decision was made over (Servers): when it is another one meanwhile, nothing is done.
func (n *Node) SetServer(ctx context.Context, s Server, index uint64) error {
	wait := n.wait(ctx)
	if s.Voter {
		return n.changing(ctx, n.raft.Load().AddVoter(raft.ServerID(s.ID), raft.ServerAddress(s.Address), index, wait))
	}
	return n.changing(ctx, n.raft.Load().AddNonvoter(raft.ServerID(s.ID), raft.ServerAddress(s.Address), index, wait))
}

// Demote makes a voter follow only. See SetServer.
func (n *Node) Demote(ctx context.Context, server string, index uint64) error {
	return n.changing(ctx, n.raft.Load().DemoteVoter(raft.ServerID(server), index, n.wait(ctx)))
}

// RemoveServer takes a server out of the configuration. See SetServer.
func (n *Node) RemoveServer(ctx context.Context, server string, index uint64) error {
	return n.changing(ctx, n.raft.Load().RemoveServer(raft.ServerID(server), index, n.wait(ctx)))
}

// TransferLeadership makes another voter leader, which is chosen by who has most of the log.
func (n *Node) TransferLeadership(ctx context.Context) error {
	return n.await(ctx, n.raft.Load().LeadershipTransfer()) // raft bounds it by its election timeout
}

func (n *Node) wait(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(time.Millisecond, time.Until(deadline))
	}
	return n.c.Timings.Patience()
}

func (n *Node) changing(ctx context.Context, f raft.Future) error {
	err := n.await(ctx, f)
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return ErrNotLeader
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", election.ErrUnavailable, err)
	}
	return err
}

// Status is what an operator may want to know of this server.
type Status struct {
	State       string        `json:"state"` // leader, follower or candidate
	Term        uint64        `json:"term"`
	LastIndex   uint64        `json:"last_index"`   // of the log
	CommitIndex uint64        `json:"commit_index"` // as this server knows it
	Applied     uint64        `json:"applied"`      // the last command in its state
	Snapshot    uint64        `json:"snapshot"`     // the last entry in its last snapshot
	LastContact time.Duration `json:"last_contact"` // since it heard of the leader; 0 at the leader, and when it never did
}

// Status looks at this server.
func (n *Node) Status() Status {
	r := n.raft.Load()
	s := Status{Term: r.CurrentTerm(), LastIndex: r.LastIndex(), CommitIndex: r.CommitIndex(), Applied: n.replica.applied()}
	s.Snapshot, _ = strconv.ParseUint(r.Stats()["last_snapshot_index"], 10, 64)
	switch state := r.State(); state {
	case raft.Leader:
		s.State = "leader"
	case raft.Candidate:
		s.State = "candidate"
	default:
		s.State = "follower"
	}
	if at := r.LastContact(); s.State != "leader" && !at.IsZero() {
		s.LastContact = time.Since(at)
	}
	return s
}
