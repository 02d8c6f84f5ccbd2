package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Recovery states on the wire (KIP-704).
const (
	recovered  int8 = 0
	recovering int8 = 1
)

// alterPartition checks a leader's wishes, in the order of Kafka's checks, and writes those that are well. The leader epoch
// stays: the leader knows what it asked for, and only the other brokers' caches have to be told.
func (m *Machine) alterPartition(c *AlterPartition) []Effect {
	req, resp := c.Request, c.Response
	if b, ok := m.brokers[req.BrokerID]; !ok || b.Epoch != req.BrokerEpoch {
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		return nil
	}
	// All results are made before any is pointed to.
	resp.Topics = make([]kmsg.AlterPartitionResponseTopic, len(req.Topics))
	var w WriteStates
	for i := range req.Topics {
		in, out := &req.Topics[i], &resp.Topics[i]
		out.Topic, out.TopidID = in.Topic, in.TopicID
		name, known := in.Topic, true
		if req.Version >= 2 {
			t := m.ids[in.TopicID]
			if known = t != nil; known {
				name = t.name
			}
		}
		out.Partitions = make([]kmsg.AlterPartitionResponseTopicPartition, len(in.Partitions))
		for n := range in.Partitions {
			wish, result := &in.Partitions[n], &out.Partitions[n]
			result.Partition = wish.Partition
			k := tp{name, wish.Partition}
			p := m.partition(k)
			switch {
			case !known:
				result.ErrorCode = kerr.UnknownTopicID.Code
			case p == nil || p.state == nil:
				result.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				m.alterOne(req, wish, k, p, result, &w)
			}
		}
	}
	if len(w.Updates) == 0 {
		return nil
	}
	return []Effect{w}
}

func (m *Machine) alterOne(req *kmsg.AlterPartitionRequest, wish *kmsg.AlterPartitionRequestTopicPartition, k tp, p *partition,
	result *kmsg.AlterPartitionResponseTopicPartition, w *WriteStates) {
	isr := wish.NewISR
	if req.Version >= 3 {
		isr = make([]int32, len(wish.NewEpochISR))
		for i := range wish.NewEpochISR {
			isr[i] = wish.NewEpochISR[i].BrokerID
		}
	}
	s := p.state
	switch {
	case wish.LeaderEpoch > s.LeaderEpoch || wish.PartitionEpoch > s.PartitionEpoch:
		result.ErrorCode = kerr.NotController.Code // the leader has heard of a later controller
	case wish.LeaderEpoch < s.LeaderEpoch:
		result.ErrorCode = kerr.FencedLeaderEpoch.Code
	case req.BrokerID != s.Leader:
		result.ErrorCode = kerr.InvalidRequest.Code
	case sameISR(isr, s.ISR) && (wish.LeaderRecoveryState == recovering) == s.Recovering:
		answer(result, s)
	case wish.PartitionEpoch < s.PartitionEpoch:
		result.ErrorCode = kerr.InvalidUpdateVersion.Code
	case len(isr) == 0 || !slices.Contains(isr, s.Leader) || !subset(isr, p.assignment.Replicas) || repeats(isr):
		result.ErrorCode = kerr.InvalidRequest.Code
	case wish.LeaderRecoveryState == recovering && (len(isr) > 1 || !s.Recovering):
		result.ErrorCode = kerr.InvalidRequest.Code
	case slices.ContainsFunc(isr, func(id int32) bool { return !m.usable(p)(id) || m.stopping[id] != nil && !slices.Contains(s.ISR, id) }):
		result.ErrorCode = kerr.IneligibleReplica.Code
		if req.Version < 2 {
			result.ErrorCode = kerr.OperationNotAttempted.Code
		}
	default:
		next := *s
		next.ISR, next.Recovering = slices.Clone(isr), wish.LeaderRecoveryState == recovering
		next.ControllerEpoch = m.epoch
		w.Updates = append(w.Updates, election.PartitionUpdate{Topic: k.topic, Partition: k.partition, State: next})
		w.whys = append(w.whys, why{alter: result})
	}
}

func sameISR(a, b []int32) bool { return len(a) == len(b) && subset(a, b) && subset(b, a) }

func repeats(ids []int32) bool {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return true
		}
	}
	return false
}

// answer tells a leader the state that holds.
func answer(out *kmsg.AlterPartitionResponseTopicPartition, s *election.PartitionState) {
	out.LeaderID, out.LeaderEpoch, out.PartitionEpoch = s.Leader, s.LeaderEpoch, s.PartitionEpoch
	out.ISR = slices.Clone(s.ISR)
	if s.Recovering {
		out.LeaderRecoveryState = recovering
	}
}
