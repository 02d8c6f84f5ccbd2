package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// electLeaders elects the preferred leaders of partitions, or, when nobody in sync is left, unclean ones.
func (m *Machine) electLeaders(c *ElectLeaders) []Effect {
	c.Results = make([]error, len(c.Partitions))
	var w WriteStates
	seen := map[tp]bool{}
	for i, id := range c.Partitions {
		k, slot := tp{id.Topic, id.Partition}, &c.Results[i]
		p := m.partition(k)
		switch {
		case p == nil || p.state == nil:
			*slot = refuse(kerr.UnknownTopicOrPartition, "The partition does not exist.")
		case seen[k]:
			*slot = refuse(kerr.ElectionNotNeeded, "The partition is in the request twice.")
		case c.Unclean:
			*slot = m.electUnclean(k, p, &w, slot)
		default:
			*slot = m.electPreferred(k, p, &w, slot)
		}
		seen[k] = true
	}
	if len(w.Updates) == 0 {
		return nil
	}
	return []Effect{w}
}

func (m *Machine) electPreferred(k tp, p *partition, w *WriteStates, slot *error) error {
	if len(p.assignment.Replicas) > 0 && p.state.Leader == p.assignment.Replicas[0] {
		return refuse(kerr.ElectionNotNeeded, "Leader election not needed for topic partition.")
	}
	next, ok := preferred(*p.state, p.assignment, m.staying(p))
	if !ok {
		return refuse(kerr.PreferredLeaderNotAvailable, "The preferred leader was not available.")
	}
	w.add(m.epoch, k, p.state, next, why{slot: slot})
	return nil
}

func (m *Machine) electUnclean(k tp, p *partition, w *WriteStates, slot *error) error {
	if m.usable(p)(p.state.Leader) {
		return refuse(kerr.ElectionNotNeeded, "Leader election not needed for topic partition.")
	}
	next, _ := repaired(*p.state, p.assignment, m.usable(p), true)
	if !m.usable(p)(next.Leader) {
		return refuse(kerr.EligibleLeadersNotAvailable, "Eligible topic partition leaders are not available.")
	}
	w.add(m.epoch, k, p.state, next, why{slot: slot})
	return nil
}

// controlledShutdown moves what a broker leads to others, and has its other replicas stop, so that they don't get in sync
// again. The broker asks again until nothing remains, or gives up.
func (m *Machine) controlledShutdown(c *ControlledShutdown) []Effect {
	b, ok := m.brokers[c.Broker]
	if !ok {
		c.Err = refuse(kerr.BrokerNotAvailable, "Broker id %d does not exist.", c.Broker)
		return nil
	}
	if c.Epoch >= 0 && c.Epoch < b.Epoch {
		c.Err = refuse(kerr.StaleBrokerEpoch, "Broker epoch %d is stale, it is %d.", c.Epoch, b.Epoch)
		return nil
	}
	stopped := m.stopping[c.Broker]
	if stopped == nil {
		stopped = map[tp]struct{}{}
		m.stopping[c.Broker] = stopped
	}
	follows := map[tp]int32{} // leader epochs of what it doesn't lead
	for k, p := range m.partitions() {
		if p.state == nil || len(p.assignment.Replicas) < 2 || !slices.Contains(p.assignment.Replicas, c.Broker) || m.topics[k.topic].deleting {
			continue
		}
		m.dirty[k] = struct{}{}
		if _, was := stopped[k]; !was && p.state.Leader != c.Broker {
			follows[k] = p.state.LeaderEpoch
		}
	}
	stops := stopRequests{m: m, by: map[int32]*kmsg.StopReplicaRequest{}}
	for _, k := range ordered(follows) {
		stopped[k] = struct{}{}
		stops.add(c.Broker, k, follows[k], false)
	}
	return stops.pushes()
}

// remaining lists what a broker leads though others have replicas, by topic and number.
func (m *Machine) remaining(broker int32) []PartitionID {
	led := map[tp]struct{}{}
	for k, p := range m.partitions() {
		if p.state != nil && p.state.Leader == broker && len(p.assignment.Replicas) > 1 && !m.topics[k.topic].deleting {
			led[k] = struct{}{}
		}
	}
	var left []PartitionID
	for _, k := range ordered(led) {
		left = append(left, PartitionID{k.topic, k.partition})
	}
	return left
}
