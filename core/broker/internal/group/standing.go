package group

// Standing is how a group is, in numbers, and what it has committed.
type Standing struct {
	ID           string
	ProtocolType string
	State        State
	Members      int
	Rebalances   uint64 // that began since this broker coordinates the group
	Committed    map[TopicPartition]int64
}

// Standing says how the group is now. The map is the caller's.
func (g *Group) Standing() Standing {
	s := Standing{ID: g.id, ProtocolType: g.protocolType, State: g.state, Members: len(g.members), Rebalances: g.rebalances,
		Committed: make(map[TopicPartition]int64, len(g.offsets))}
	for tp, o := range g.offsets {
		s.Committed[tp] = o.Offset
	}
	return s
}

// Coordinated is what a manager coordinates.
type Coordinated struct {
	Shards, Loading int // of them, those that are still being read
	Groups          []Standing
}

// Coordinated says what this broker coordinates now, group by group: each is as of one moment.
func (m *Manager) Coordinated() Coordinated {
	m.mu.RLock()
	c := Coordinated{Shards: len(m.shards)}
	var loaded []*shard
	for _, s := range m.shards {
		if s.loading {
			c.Loading++
		} else {
			loaded = append(loaded, s)
		}
	}
	m.mu.RUnlock()
	for _, s := range loaded {
		for _, e := range s.all() {
			e.mu.Lock()
			if !e.gone && e.group.state != Dead {
				c.Groups = append(c.Groups, e.group.Standing())
			}
			e.mu.Unlock()
		}
	}
	return c
}
