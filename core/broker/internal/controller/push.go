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
// then who leads, to the replicas; then everybody's caches, so that no client is sent to a leader that doesn't know it yet. A
// broker that is new gets all there is for its cache with the list, as from Kafka's controller: by the first word that it hears
// it knows the cluster, and can serve clients.
//
// What is said of a partition is made once for all brokers: requests share it, and the machine's own slices, which are
// replaced and never changed. Who gets a request must leave it as it is.
func (m *Machine) pushes() []Effect {
	if !m.untold && len(m.changed) == 0 && len(m.fresh) == 0 {
		return nil
	}
	var effects []Effect
	ids := slices.Sorted(maps.Keys(m.brokers))
	live := m.liveBrokers(ids)
	told := ordered(m.changed)
	// Brokers that are new are told of all, others of what changed, and those that are about to stop nothing of what they
	// were told to stop.
	all := told
	if len(m.fresh) > 0 {
		all = m.everything()
	}
	states := m.partitionStates(told)
	everything := states
	if len(m.fresh) > 0 {
		everything = m.partitionStates(all)
	}
	for _, id := range ids {
		switch {
		case m.fresh[id]:
			effects = append(effects, m.push(id, m.updateMetadata(live, everything)))
		case m.untold:
			effects = append(effects, m.push(id, m.updateMetadata(live, nil)))
		}
	}
	m.untold = false
	replicas := m.leaderAndISR(all, func(id int32, k tp) bool {
		if _, stopped := m.stopping[id][k]; stopped && m.topics[k.topic].parts[k.partition].state.Leader != id {
			return false
		}
		return m.fresh[id] || m.changed[k].leaderAndISR
	})
	for _, id := range ids {
		if req := replicas[id]; req != nil {
			effects = append(effects, m.push(id, req))
		}
	}
	for _, id := range ids {
		if len(states) > 0 && !m.fresh[id] {
			effects = append(effects, m.push(id, m.updateMetadata(live, states)))
		}
	}
	clear(m.changed)
	clear(m.fresh)
	return effects
}

// everything lists all partitions, by topic and number.
func (m *Machine) everything() []tp {
	n := 0
	for _, t := range m.topics {
		n += len(t.parts)
	}
	all := make([]tp, 0, n)
	for _, t := range inOrder(m.topics) {
		for i := range t.parts {
			all = append(all, tp{t.name, int32(i)})
		}
	}
	return all
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

// leaderAndISR is what replicas have to know of these partitions: a request for each living broker that has any of those that
// it is to be told of.
func (m *Machine) leaderAndISR(of []tp, tell func(broker int32, k tp) bool) map[int32]*kmsg.LeaderAndISRRequest {
	reqs := map[int32]*kmsg.LeaderAndISRRequest{}
	leaders := map[int32]map[int32]bool{} // of what a broker is told
	for _, k := range of {
		p, n := m.partition(k), m.changed[k]
		if p == nil || p.state == nil {
			continue
		}
		for _, id := range m.toBe(p).Replicas {
			if !m.alive(id) || !tell(id, k) {
				continue
			}
			req := reqs[id]
			if req == nil {
				req = &kmsg.LeaderAndISRRequest{Version: leaderAndISRVersion, ControllerID: m.rules.BrokerID, ControllerEpoch: m.epoch}
				reqs[id], leaders[id] = req, map[int32]bool{}
			}
			if last := len(req.TopicStates) - 1; last < 0 || req.TopicStates[last].Topic != k.topic {
				req.TopicStates = append(req.TopicStates, kmsg.LeaderAndISRRequestTopicState{Topic: k.topic, TopicID: m.topics[k.topic].id})
			}
			t := &req.TopicStates[len(req.TopicStates)-1]
			t.PartitionStates = append(t.PartitionStates, m.replicaState(k, p, id, n.isNew))
			leaders[id][p.state.Leader] = true
		}
	}
	for id, req := range reqs {
		for _, leader := range slices.Sorted(maps.Keys(leaders[id])) {
			if b, ok := m.brokers[leader]; ok {
				host, port := m.address(b)
				req.LiveLeaders = append(req.LiveLeaders, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: leader, Host: host, Port: port})
			}
		}
	}
	return reqs
}

// replicaState is what a replica has to know. It may make a log in any directory when nothing can be in one that failed: the
// partition is new, or the replica is being added and not in sync yet.
func (m *Machine) replicaState(k tp, p *partition, broker int32, isNew bool) kmsg.LeaderAndISRRequestTopicPartition {
	a := m.toBe(p)
	s := kmsg.LeaderAndISRRequestTopicPartition{Topic: k.topic, Partition: k.partition, ControllerEpoch: p.state.ControllerEpoch,
		Leader: p.state.Leader, LeaderEpoch: p.state.LeaderEpoch, ISR: p.state.ISR, ZKVersion: p.state.PartitionEpoch,
		Replicas: a.Replicas, AddingReplicas: a.Adding, RemovingReplicas: a.Removing,
		IsNew: isNew || slices.Contains(p.assignment.Adding, broker) && !slices.Contains(p.state.ISR, broker)}
	if p.state.Recovering {
		s.LeaderRecoveryState = recovering
	}
	return s
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

// liveBrokers describes brokers as UpdateMetadata does.
func (m *Machine) liveBrokers(ids []int32) []kmsg.UpdateMetadataRequestLiveBroker {
	all := make([]kmsg.UpdateMetadataRequestLiveBroker, 0, len(ids))
	for _, id := range ids {
		b := m.brokers[id]
		l := kmsg.UpdateMetadataRequestLiveBroker{ID: id}
		if b.Rack != "" {
			l.Rack = &b.Rack
		}
		for _, e := range b.Endpoints {
			l.Endpoints = append(l.Endpoints, kmsg.UpdateMetadataRequestLiveBrokerEndpoint{Host: e.Host, Port: e.Port,
				ListenerName: e.Listener, SecurityProtocol: metadata.ProtocolID(e.Protocol)})
		}
		all = append(all, l)
	}
	return all
}

// updateMetadata is what every broker has to know: who lives, and these partitions.
func (m *Machine) updateMetadata(live []kmsg.UpdateMetadataRequestLiveBroker, states []kmsg.UpdateMetadataRequestTopicState) *kmsg.UpdateMetadataRequest {
	return &kmsg.UpdateMetadataRequest{Version: updateMetadataVersion, ControllerID: m.rules.BrokerID, ControllerEpoch: m.epoch,
		TopicStates: states, LiveBrokers: live}
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
		t := &states[len(states)-1]
		t.PartitionStates = append(t.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{Topic: k.topic, Partition: k.partition,
			ControllerEpoch: p.state.ControllerEpoch, Leader: p.state.Leader, LeaderEpoch: p.state.LeaderEpoch, ISR: p.state.ISR,
			ZKVersion: p.state.PartitionEpoch, Replicas: p.assignment.Replicas, OfflineReplicas: m.offline(p)})
	}
	return states
}

// offline are the replicas that can't be reached, or whose log directory failed.
func (m *Machine) offline(p *partition) (ids []int32) {
	for _, id := range p.assignment.Replicas {
		if !m.alive(id) || slices.Contains(p.offline, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// hide tells everybody to forget topics.
func (m *Machine) hide(topics []*topic) []Effect {
	states := make([]kmsg.UpdateMetadataRequestTopicState, 0, len(topics))
	for _, t := range topics {
		s := kmsg.UpdateMetadataRequestTopicState{Topic: t.name, TopicID: t.id}
		for i := range t.parts {
			s.PartitionStates = append(s.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{Topic: t.name, Partition: int32(i),
				ControllerEpoch: m.epoch, Leader: leaderDuringDelete, LeaderEpoch: epochDuringDelete, ZKVersion: -1,
				Replicas: t.parts[i].assignment.Replicas})
		}
		states = append(states, s)
	}
	ids := slices.Sorted(maps.Keys(m.brokers))
	live := m.liveBrokers(ids)
	effects := make([]Effect, 0, len(ids))
	for _, id := range ids {
		effects = append(effects, m.push(id, m.updateMetadata(live, states)))
	}
	return effects
}

// stopRequests gathers one StopReplica for each broker.
type stopRequests struct {
	m  *Machine
	by map[int32]*kmsg.StopReplicaRequest
}

// add asks a broker to stop a replica and, with remove, to delete it.
func (s *stopRequests) add(broker int32, k tp, leaderEpoch int32, remove bool) {
	req := s.by[broker]
	if req == nil {
		req = &kmsg.StopReplicaRequest{Version: stopReplicaVersion, ControllerID: s.m.rules.BrokerID, ControllerEpoch: s.m.epoch}
		s.by[broker] = req
	}
	if last := len(req.Topics) - 1; last < 0 || req.Topics[last].Topic != k.topic {
		req.Topics = append(req.Topics, kmsg.StopReplicaRequestTopic{Topic: k.topic})
	}
	t := &req.Topics[len(req.Topics)-1]
	t.PartitionStates = append(t.PartitionStates, kmsg.StopReplicaRequestTopicPartitionState{Partition: k.partition, LeaderEpoch: leaderEpoch, Delete: remove})
}

func (s *stopRequests) pushes() []Effect {
	var effects []Effect
	for _, id := range slices.Sorted(maps.Keys(s.by)) {
		effects = append(effects, s.m.push(id, s.by[id]))
	}
	return effects
}
