package controller

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/election"
)

// Versions of the control requests: those of inter.broker.protocol.version 3.9, which brokers don't negotiate.
const (
	leaderAndISRVersion   = 7
	updateMetadataVersion = 8
	stopReplicaVersion    = 4
)

// leaderDuringDelete is the leader that makes brokers forget a partition.
const leaderDuringDelete int32 = -2

// pushes tells the brokers what changed. The list of living brokers comes first, since replicas look their leaders up in it;
// then who leads, to the replicas; then everybody's caches, so that no client is sent to a leader that doesn't know it yet.
func (m *Machine) pushes() []Effect {
	if !m.untold && len(m.changed) == 0 && len(m.fresh) == 0 {
		return nil
	}
	var effects []Effect
	ids := slices.Sorted(maps.Keys(m.brokers))
	if m.untold {
		m.untold = false
		for _, id := range ids {
			effects = append(effects, m.push(id, m.updateMetadata(nil)))
		}
	}
	told := ordered(m.changed)
	var all []tp
	if len(m.fresh) > 0 {
		everything := map[tp]struct{}{}
		for k := range m.partitions() {
			everything[k] = struct{}{}
		}
		all = ordered(everything)
	}
	of := func(id int32) []tp {
		if m.fresh[id] {
			return all
		}
		return told
	}
	for _, id := range ids {
		if req := m.leaderAndISR(id, of(id), m.fresh[id]); len(req.TopicStates) > 0 {
			effects = append(effects, m.push(id, req))
		}
	}
	for _, id := range ids {
		if states := m.partitionStates(of(id)); len(states) > 0 {
			effects = append(effects, m.push(id, m.updateMetadata(states)))
		}
	}
	clear(m.changed)
	clear(m.fresh)
	return effects
}

func (m *Machine) push(broker int32, req kmsg.Request) Effect {
	epoch := m.brokers[broker].Epoch
	switch req := req.(type) {
	case *kmsg.UpdateMetadataRequest:
		req.BrokerEpoch = epoch
	case *kmsg.LeaderAndISRRequest:
		req.BrokerEpoch = epoch
	case *kmsg.StopReplicaRequest:
		req.BrokerEpoch = epoch
	}
	return Push{Broker: broker, Epoch: epoch, Request: req}
}

// leaderAndISR is what one broker's replicas have to know of these partitions.
func (m *Machine) leaderAndISR(broker int32, of []tp, fresh bool) *kmsg.LeaderAndISRRequest {
	req := &kmsg.LeaderAndISRRequest{Version: leaderAndISRVersion, ControllerID: m.rules.BrokerID, ControllerEpoch: m.epoch}
	leaders := map[int32]bool{}
	for _, k := range of {
		p := m.partition(k)
		n := m.changed[k]
		if p == nil || p.state == nil || !fresh && !n.leaderAndISR || !slices.Contains(p.assignment.Replicas, broker) {
			continue
		}
		if last := len(req.TopicStates) - 1; last < 0 || req.TopicStates[last].Topic != k.topic {
			req.TopicStates = append(req.TopicStates, kmsg.LeaderAndISRRequestTopicState{Topic: k.topic, TopicID: m.topics[k.topic].id})
		}
		s := kmsg.LeaderAndISRRequestTopicPartition{Topic: k.topic, Partition: k.partition, ControllerEpoch: p.state.ControllerEpoch,
			Leader: p.state.Leader, LeaderEpoch: p.state.LeaderEpoch, ISR: slices.Clone(p.state.ISR), ZKVersion: p.state.PartitionEpoch,
			Replicas: slices.Clone(p.assignment.Replicas), AddingReplicas: slices.Clone(p.assignment.Adding),
			RemovingReplicas: slices.Clone(p.assignment.Removing), IsNew: n.isNew || slices.Contains(p.assignment.Adding, broker)}
		if p.state.Recovering {
			s.LeaderRecoveryState = recovering
		}
		t := &req.TopicStates[len(req.TopicStates)-1]
		t.PartitionStates = append(t.PartitionStates, s)
		leaders[p.state.Leader] = true
	}
	for _, id := range slices.Sorted(maps.Keys(leaders)) {
		if b, ok := m.brokers[id]; ok {
			host, port := m.address(b)
			req.LiveLeaders = append(req.LiveLeaders, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: id, Host: host, Port: port})
		}
	}
	return req
}

// address is where brokers reach one another.
func (m *Machine) address(b election.Broker) (host string, port int32) {
	for _, e := range b.Endpoints {
		if e.Listener == m.rules.InterBroker {
			return e.Host, e.Port
		}
	}
	return "", -1
}

// updateMetadata is what every broker has to know: who lives, and these partitions.
func (m *Machine) updateMetadata(states []kmsg.UpdateMetadataRequestTopicState) *kmsg.UpdateMetadataRequest {
	req := &kmsg.UpdateMetadataRequest{Version: updateMetadataVersion, ControllerID: m.rules.BrokerID, ControllerEpoch: m.epoch, TopicStates: states}
	for _, id := range slices.Sorted(maps.Keys(m.brokers)) {
		b := m.brokers[id]
		l := kmsg.UpdateMetadataRequestLiveBroker{ID: id}
		if b.Rack != "" {
			l.Rack = &b.Rack
		}
		for _, e := range b.Endpoints {
			l.Endpoints = append(l.Endpoints, kmsg.UpdateMetadataRequestLiveBrokerEndpoint{Host: e.Host, Port: e.Port,
				ListenerName: e.Listener, SecurityProtocol: metadata.ProtocolID(e.Protocol)})
		}
		req.LiveBrokers = append(req.LiveBrokers, l)
	}
	return req
}

func (m *Machine) partitionStates(of []tp) (states []kmsg.UpdateMetadataRequestTopicState) {
	for _, k := range of {
		p := m.partition(k)
		if p == nil || p.state == nil {
			continue
		}
		if last := len(states) - 1; last < 0 || states[last].Topic != k.topic {
			states = append(states, kmsg.UpdateMetadataRequestTopicState{Topic: k.topic, TopicID: m.topics[k.topic].id})
		}
		usable := m.usable(p)
		t := &states[len(states)-1]
		t.PartitionStates = append(t.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{Topic: k.topic, Partition: k.partition,
			ControllerEpoch: p.state.ControllerEpoch, Leader: p.state.Leader, LeaderEpoch: p.state.LeaderEpoch, ISR: slices.Clone(p.state.ISR),
			ZKVersion: p.state.PartitionEpoch, Replicas: slices.Clone(p.assignment.Replicas),
			OfflineReplicas: keep(p.assignment.Replicas, func(id int32) bool { return !usable(id) })})
	}
	return states
}

// hide tells everybody to forget topics.
func (m *Machine) hide(topics []*topic) []Effect {
	var effects []Effect
	for _, id := range slices.Sorted(maps.Keys(m.brokers)) {
		var states []kmsg.UpdateMetadataRequestTopicState
		for _, t := range topics {
			s := kmsg.UpdateMetadataRequestTopicState{Topic: t.name, TopicID: t.id}
			for i := range t.parts {
				s.PartitionStates = append(s.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{Topic: t.name, Partition: int32(i),
					ControllerEpoch: m.epoch, Leader: leaderDuringDelete, LeaderEpoch: epochDuringDelete, ZKVersion: -1,
					Replicas: slices.Clone(t.parts[i].assignment.Replicas)})
			}
			states = append(states, s)
		}
		effects = append(effects, m.push(id, m.updateMetadata(states)))
	}
	return effects
}

// stopRequests gathers one StopReplica for each broker.
type stopRequests struct {
	m  *Machine
	by map[int32]*kmsg.StopReplicaRequest
}

func (s *stopRequests) add(broker int32, k tp, leaderEpoch int32) {
	req := s.by[broker]
	if req == nil {
		req = &kmsg.StopReplicaRequest{Version: stopReplicaVersion, ControllerID: s.m.rules.BrokerID, ControllerEpoch: s.m.epoch}
		s.by[broker] = req
	}
	if last := len(req.Topics) - 1; last < 0 || req.Topics[last].Topic != k.topic {
		req.Topics = append(req.Topics, kmsg.StopReplicaRequestTopic{Topic: k.topic})
	}
	t := &req.Topics[len(req.Topics)-1]
	t.PartitionStates = append(t.PartitionStates, kmsg.StopReplicaRequestTopicPartitionState{Partition: k.partition, LeaderEpoch: leaderEpoch, Delete: true})
}

func (s *stopRequests) pushes() []Effect {
	var effects []Effect
	for _, id := range slices.Sorted(maps.Keys(s.by)) {
		effects = append(effects, s.m.push(id, s.by[id]))
	}
	return effects
}
