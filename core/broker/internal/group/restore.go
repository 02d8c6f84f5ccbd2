package group

import (
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// restorer builds groups from what a store has.
type restorer struct {
	groups map[string]*restored
	open   map[int64]map[*restored]struct{} // by producer: the groups that its open transaction commits to
}

func newRestorer() *restorer {
	return &restorer{groups: map[string]*restored{}, open: map[int64]map[*restored]struct{}{}}
}

// restored is a group as its records tell, in the order of the log.
type restored struct {
	meta    *offsets.Group
	offsets map[TopicPartition]offsets.Offset
	txn     map[int64]map[TopicPartition]*offsets.Offset // nil offset: a tombstone
}

func (r *restorer) of(group string) *restored {
	g := r.groups[group]
	if g == nil {
		g = &restored{offsets: map[TopicPartition]offsets.Offset{}}
		r.groups[group] = g
	}
	return g
}

// apply takes one event of a load.
func (r *restorer) apply(e offsets.Event) error {
	switch {
	case e.Ended != offsets.NotEnded:
		for g := range r.open[e.Producer] {
			for tp, o := range g.txn[e.Producer] {
				if e.Ended == offsets.Committed {
					g.set(tp, o)
				}
			}
			delete(g.txn, e.Producer)
		}
		delete(r.open, e.Producer)
	case e.Entry.Kind == offsets.KindGroup:
		r.of(e.Entry.Group).meta = e.Entry.Meta
	case e.Producer != offsets.None:
		g := r.of(e.Entry.Group)
		if g.txn == nil {
			g.txn = map[int64]map[TopicPartition]*offsets.Offset{}
		}
		if g.txn[e.Producer] == nil {
			g.txn[e.Producer] = map[TopicPartition]*offsets.Offset{}
		}
		if r.open[e.Producer] == nil {
			r.open[e.Producer] = map[*restored]struct{}{}
		}
		r.open[e.Producer][g] = struct{}{}
		g.txn[e.Producer][partitionOf(e.Entry.Key)] = e.Entry.Offset
	default:
		r.of(e.Entry.Group).set(partitionOf(e.Entry.Key), e.Entry.Offset)
	}
	return nil
}

func (r *restored) set(tp TopicPartition, o *offsets.Offset) {
	if o == nil {
		delete(r.offsets, tp)
		return
	}
	r.offsets[tp] = *o
}

// gone reports whether nothing is left of the group.
func (r *restored) gone() bool { return r.meta == nil && len(r.offsets) == 0 && len(r.txn) == 0 }

// restore makes the group: stable when it has members, whose sessions begin now, else empty.
func (r *restored) restore(id string, cfg *Config, now time.Time) *Group {
	g := NewGroup(id, cfg, now)
	g.since = offsets.None
	g.offsets = r.offsets
	for producer, pending := range r.txn {
		for tp, o := range pending {
			if o == nil {
				continue
			}
			if g.txn == nil {
				g.txn = map[int64]map[TopicPartition]offsets.Offset{}
			}
			if g.txn[producer] == nil {
				g.txn[producer] = map[TopicPartition]offsets.Offset{}
			}
			g.txn[producer][tp] = *o
		}
	}
	g.begin(now)
	if r.meta != nil {
		g.resume(r.meta)
	}
	g.out = Effects{} // nobody waits yet
	return g
}

// resume takes over a group's own record.
func (g *Group) resume(meta *offsets.Group) {
	g.protocolType, g.generation, g.protocol = meta.ProtocolType, meta.Generation, meta.Protocol
	for _, s := range meta.Members {
		m := &member{
			id: s.ID, instance: s.InstanceID, clientID: s.ClientID, clientHost: s.ClientHost, assignment: s.Assignment,
			rebalance: time.Duration(max(s.RebalanceTimeout, 0)) * time.Millisecond,
			session:   time.Duration(max(s.SessionTimeout, 0)) * time.Millisecond,
			protocols: []Protocol{{Name: g.protocolName(), Metadata: s.Subscription}}, index: map[string]int{g.protocolName(): 0},
		}
		if g.byID[m.id] != nil {
			continue // a member twice: a record that no broker writes
		}
		g.add(m)
		g.touch(m)
	}
	g.leader = ""
	if meta.Leader != nil && g.byID[*meta.Leader] != nil {
		g.leader = *meta.Leader
	} else if len(g.members) > 0 {
		g.leader = g.members[0].id
	}
	if len(g.members) > 0 {
		g.state = Stable
		if g.protocol == nil {
			none := ""
			g.protocol = &none
		}
	}
	g.since = meta.StateTimestamp
	g.subscribed = g.subscriptions()
	if len(g.members) > g.cfg.MaxSize {
		g.prepareRebalance(journal.CoordinatorLoaded, nil) // the limit was lowered; whoever comes back in time stays
	}
}
