package voters

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// Peer is one server, as it describes itself through gossip.
type Peer struct {
	Name    string // in gossip: the broker id, if it has one
	Server  member.ServerID
	Cluster member.ClusterID // that it belongs to, or has promised itself to
	Address string           // HOST:PORT of its coordination port
	Store   bool             // it has a raft log or snapshot
}

// Founder is one server of a cluster that is to be made.
type Founder struct {
	Peer
	Voter bool
}

// Forming is what a server without a cluster sees.
type Forming struct {
	Self     Peer
	Proposed bool   // Self's cluster is its own proposal
	Others   []Peer // those that are there
	Expect   int    // how many servers form a cluster; 0: this one never does
	Voters   int    // how many of them vote
}

// Decision is what to do about it: to propose a cluster of these founders, or to wait for what Why says.
type Decision struct {
	Founders []Founder // this server among them; empty to wait
	Drop     bool      // the own proposal stands in the way of another's, or of joining: drop it
	Why      string
}

// Form decides what a server that has no store does.
func Form(f Forming) Decision {
	wait := func(format string, args ...any) Decision { return Decision{Why: fmt.Sprintf(format, args...)} }
	drop := func(format string, args ...any) Decision {
		return Decision{Drop: f.Proposed, Why: fmt.Sprintf(format, args...)}
	}
	if f.Self.Cluster != "" && !f.Proposed {
		return wait("this broker has promised itself to the raft cluster %s, and waits for its leader", f.Self.Cluster)
	}
	fresh := []Peer{f.Self}
	for _, p := range f.Others {
		switch {
		case p.Cluster != "" && p.Cluster == f.Self.Cluster: // promised to this server's proposal, or part of it already
			fresh = append(fresh, p)
		case p.Store:
			return drop("waiting for the raft leader of the cluster %s to add this broker; broker %s is there", p.Cluster, p.Name)
		case p.Cluster != "":
			return drop("broker %s has promised itself to the raft cluster %s, which is being made", p.Name, p.Cluster)
		default:
			fresh = append(fresh, p)
		}
	}
	if f.Expect == 0 {
		return wait("waiting for a cluster to join: none of the brokers that can be reached belongs to one, and bootstrap_expect is 0")
	}
	if len(fresh) < f.Expect {
		return wait("waiting for brokers to form a cluster with: %d of %d are there", len(fresh), f.Expect)
	}
	slices.SortFunc(fresh, byName)
	fresh = fresh[:f.Expect]
	if fresh[0].Server != f.Self.Server && !f.Proposed {
		return wait("waiting for broker %s to propose a cluster", fresh[0].Name)
	}
	if !slices.ContainsFunc(fresh, func(p Peer) bool { return p.Server == f.Self.Server }) {
		fresh[len(fresh)-1] = f.Self // a proposal of its own, from before lower ones came
	}
	d := Decision{Why: "proposing a cluster"}
	for i, p := range fresh {
		d.Founders = append(d.Founders, Founder{p, i < odd(min(f.Voters, len(fresh)))})
	}
	return d
}

// odd is the largest odd number up to n, at least 1: an even number of voters survives no more failures.
func odd(n int) int { return max(1, n-(1-n%2)) }

// byName orders brokers by their id; those without one come last.
func byName(a, b Peer) int {
	number := func(p Peer) int64 {
		n, err := strconv.ParseInt(p.Name, 10, 32)
		if err != nil {
			return 1 << 40
		}
		return n
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Server, b.Server))
}
