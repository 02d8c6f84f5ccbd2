package controller

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

func inOrder(topics map[string]*topic) []*topic {
	return slices.SortedFunc(maps.Values(topics), func(a, b *topic) int { return cmp.Compare(a.name, b.name) })
}

func ordered[V any](of map[tp]V) []tp {
	return slices.SortedFunc(maps.Keys(of), func(a, b tp) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
}

// settle decides what the marked partitions need. Writes come first; when they are done it is called again, finds nothing
// more to write, and tells the brokers.
func (m *Machine) settle() []Effect {
	if w := m.writeIDs(); w != nil {
		return w
	}
	if len(m.unwanted) > 0 {
		w := TakeMarksBack{Topics: slices.Sorted(maps.Keys(m.unwanted))}
		clear(m.unwanted)
		return []Effect{w}
	}
	deleting := map[string]*topic{}
	var states WriteStates
	finished := map[string]bool{} // topics with a reassignment that is complete
	for _, k := range ordered(m.dirty) {
		t := m.topics[k.topic]
		if t != nil && t.deleting {
			deleting[t.name] = t
		}
		p := m.partition(k)
		if p == nil {
			continue
		}
		next, ok := m.decide(k, p)
		switch {
		case ok:
			states.add(m.epoch, k, p.state, next, why{})
		case m.complete(p):
			finished[k.topic] = true
		}
	}
	clear(m.dirty)
	if len(states.Updates) > 0 {
		for _, t := range deleting { // looked at again after the write
			m.markAll(t)
		}
		for name := range finished {
			m.markAll(m.topics[name])
		}
		return []Effect{states}
	}
	if len(finished) > 0 {
		for _, t := range deleting {
			m.markAll(t)
		}
		return append(m.pushes(), m.finish(finished)...)
	}
	return append(m.pushes(), m.deletion(deleting)...)
}

// decide gives the state that a partition should have instead of its own. Whatever the reason, a controller's write raises the
// leader epoch.
func (m *Machine) decide(k tp, p *partition) (election.PartitionState, bool) {
	alive := m.usable(p)
	if p.state == nil {
		first, ok := firstState(p.assignment, m.staying(p))
		if !ok {
			first, ok = firstState(p.assignment, alive)
		}
		first.LeaderEpoch = m.epochs[k]
		return first, ok
	}
	unclean := m.rules.Unclean(k.topic)
	next, changed := repaired(*p.state, p.assignment, alive, unclean)
	if len(m.stopping) > 0 && len(p.assignment.Replicas) > 1 {
		if s, ok := relieved(next, p.assignment, alive, func(id int32) bool { return m.stopping[id] != nil }); ok {
			next, changed = s, true
		}
	}
	if target := p.target(); p.reassigning() && (p.back || subset(target, next.ISR)) {
		if s, ok := moved(next, target, alive); ok && (s.Leader != next.Leader || len(s.ISR) != len(next.ISR) || !p.arrived) {
			next, changed = s, true
		}
	}
	if _, bump := m.bump[k]; bump {
		changed = true
	}
	return next, changed
}

func subset(of, set []int32) bool {
	return !slices.ContainsFunc(of, func(id int32) bool { return !slices.Contains(set, id) })
}

// add adds an update: next in place of now, by a decision of the controller.
func (w *WriteStates) add(controllerEpoch int32, k tp, now *election.PartitionState, next election.PartitionState, y why) {
	next.ControllerEpoch = controllerEpoch
	if now == nil {
		next.PartitionEpoch = -1
	} else {
		next.LeaderEpoch, next.PartitionEpoch = now.LeaderEpoch+1, now.PartitionEpoch
	}
	w.Updates = append(w.Updates, election.PartitionUpdate{Topic: k.topic, Partition: k.partition, State: next})
	w.whys = append(w.whys, y)
}

// statesWritten takes in new states. Those that were changed by somebody else in between are read again, and decided anew.
func (m *Machine) statesWritten(ev statesWritten) []Effect {
	reread := map[string]bool{}
	for i := range ev.Updates {
		u, res, y := &ev.Updates[i], ev.results[i], ev.whys[i]
		k := tp{u.Topic, u.Partition}
		if res.Err != nil {
			if y.slot != nil {
				*y.slot = metadataError(res.Err)
			}
			if y.alter != nil {
				y.alter.ErrorCode = codeOf(metadataError(res.Err))
			}
			reread[u.Topic] = true
			if errors.Is(res.Err, election.ErrConflict) {
				m.dirty[k] = struct{}{}
			}
			continue
		}
		p := m.partition(k)
		if p == nil {
			continue
		}
		s := u.State
		s.PartitionEpoch = res.PartitionEpoch
		m.noteState(k, p, &s, y.alter != nil)
		m.tell(k, news{leaderAndISR: y.alter == nil, isNew: p.state == nil})
		p.state = &s
		delete(m.bump, k)
		if y.alter == nil {
			p.arrived = p.within()
		}
		m.dirty[k] = struct{}{} // a reassignment may be complete now
		if y.alter != nil {
			answer(y.alter, &s)
		}
	}
	if len(reread) == 0 {
		return nil
	}
	return []Effect{Reread{slices.Sorted(maps.Keys(reread))}}
}
