package voters

import (
	"slices"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// Member is one server of raft's configuration.
type Member struct {
	Server  member.ServerID
	Address string
	Voter   bool
}

// Change is one change of raft's configuration.
type Change struct {
	Kind Kind
	Member
}

// Kind is what kind of change it is.
type Kind int8

const (
	Nothing Kind = iota
	Add          // a server that follows
	Move         // a server, to another address
	Drop         // a server that follows
)

// maxMembers bounds how many servers raft's configuration may have, for each of which the leader keeps a connection.
const maxMembers = 512

// Keep says what the raft leader is to do next: one change, or nothing. there are the others that gossip shows.
func Keep(self Member, members []Member, there []Peer, cluster member.ClusterID) Change {
	there = slices.DeleteFunc(slices.Clone(there), func(p Peer) bool { return p.Cluster != "" && p.Cluster != cluster })
	slices.SortFunc(there, byName)
	find := func(server member.ServerID) *Member {
		for i := range members {
			if members[i].Server == server {
				return &members[i]
			}
		}
		return nil
	}
	if m := find(self.Server); m != nil && m.Address != self.Address {
		return Change{Move, Member{m.Server, self.Address, m.Voter}}
	}
	for _, p := range there {
		if m := find(p.Server); m != nil && m.Address != p.Address {
			return Change{Move, Member{m.Server, p.Address, m.Voter}}
		}
	}
	for _, p := range there {
		if find(p.Server) != nil {
			continue
		}
		for _, m := range members {
			if !m.Voter && m.Server != self.Server && m.Server.Name() == p.Name && p.Server.Name() == p.Name {
				return Change{Drop, m} // its broker lives with another store
			}
		}
	}
	if len(members) >= maxMembers {
		return Change{}
	}
	for _, p := range there {
		if find(p.Server) == nil {
			return Change{Add, Member{Server: p.Server, Address: p.Address}}
		}
	}
	return Change{}
}
