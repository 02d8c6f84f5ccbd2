package gossip

import (
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/pool"
)

var _ plugin.Measured = (*coordination)(nil)

// Measures implements plugin.Measured: what raft and gossip are at, as this broker knows it. Gossip is asked what it thinks of the
// others, which goes through this broker's own port and no further.
func (c *coordination) Measures() []plugin.Measure {
	c.mu.Lock()
	node := c.node
	c.mu.Unlock()
	h, ok := c.server.(*host)
	if node == nil || !ok {
		return nil
	}
	p, ok := h.company.(*peers)
	if !ok {
		return nil
	}
	return measuresOf(p.status())
}

func measuresOf(s Status) []plugin.Measure {
	all := []plugin.Measure{
		{Name: "raft_term", Help: "The term of raft that this broker knows of.", Counter: true, Value: float64(s.Raft.Term)},
		{Name: "raft_leader", Help: "Whether this broker leads raft.", Value: truth(s.Raft.State == "leader")},
		{Name: "raft_leader_known", Help: "Whether this broker knows who leads raft; without a leader nothing is decided.", Value: truth(s.Leader != "")},
		{Name: "raft_last_index", Help: "The last entry in this broker's log of raft.", Value: float64(s.Raft.LastIndex)},
		{Name: "raft_commit_index", Help: "The last entry that this broker knows to be decided.", Value: float64(s.Raft.CommitIndex)},
		{Name: "raft_applied_index", Help: "The last entry that is in this broker's state.", Value: float64(s.Raft.Applied)},
		{Name: "raft_last_contact_seconds", Help: "Since this broker heard of the leader of raft; 0 at the leader.", Value: s.Raft.LastContact.Seconds()},
		{Name: "raft_voters", Help: "Brokers that vote.", Value: float64(s.Voters)},
		{Name: "raft_failures_tolerated", Help: "How many voters may fail and others still decide.", Value: float64(s.Tolerates)},
	}
	thinks := map[string]int{}
	for _, m := range s.Members {
		thinks[m.Gossip]++
	}
	for _, o := range []pool.Opinion{pool.Alive, pool.Suspect, pool.Dead, pool.Left} {
		all = append(all, plugin.Measure{Name: "gossip_brokers", Help: "What gossip thinks of the brokers; it never decides.", Label: string(o), Value: float64(thinks[string(o)])})
	}
	return all
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
