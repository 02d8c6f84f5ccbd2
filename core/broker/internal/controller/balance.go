package controller

import (
	"maps"
	"slices"
)

// configChanged looks again at partitions that have no leader: they may get an unclean one now.
func (m *Machine) configChanged(name string) {
	for k, p := range m.partitions() {
		if (name == "" || k.topic == name) && p.state != nil && !m.alive(p.state.Leader) {
			m.dirty[k] = struct{}{}
		}
	}
}

// rebalance gives leadership back to preferred replicas (auto.leader.rebalance.enable), for the brokers that lead too few of the
// partitions that they are preferred for: the share that others lead is above Rules.Imbalance percent. Partitions that are
// moving are left alone, for their leaders change with the move.
func (m *Machine) rebalance() []Effect {
	type balance struct {
		preferred int  // partitions that the broker is preferred for
		elsewhere []tp // those of them that others lead
	}
	brokers := map[int32]*balance{}
	for _, k := range m.everything() {
		p := m.partition(k)
		if p == nil || p.state == nil || len(p.assignment.Replicas) == 0 {
			continue
		}
		first := p.assignment.Replicas[0]
		b := brokers[first]
		if b == nil {
			b = &balance{}
			brokers[first] = b
		}
		if b.preferred++; p.state.Leader != first {
			b.elsewhere = append(b.elsewhere, k)
		}
	}
	var w WriteStates
	for _, id := range slices.Sorted(maps.Keys(brokers)) {
		b := brokers[id]
		if int64(len(b.elsewhere))*100 <= int64(b.preferred)*int64(m.rules.Imbalance) {
			continue
		}
		for _, k := range b.elsewhere {
			p := m.partition(k)
			if p.reassigning() {
				continue
			}
			if next, ok := preferred(*p.state, p.assignment, m.staying(p)); ok {
				w.add(m.epoch, k, p.state, next, why{})
			}
		}
	}
	if len(w.Updates) == 0 {
		return nil
	}
	return []Effect{w}
}
