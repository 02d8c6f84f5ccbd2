package partition

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/election"
)

// node is a broker. Its disk outlives its process.
type node struct {
	c    *cluster
	id   int32
	disk map[ID]*trail
	up   bool // its process runs
	held bool // it runs, and does nothing (SIGSTOP)

	stopping bool // it asked the controller to take its leaderships

	// of the process
	member          election.Coordination
	registration    election.Registration
	cache           *metadata.Cache
	controllerEpoch int32
	replicas        map[ID]*replica
}

// replica is a partition on a node: the decider, and what Partition has around it.
type replica struct {
	id      ID
	topicID [16]byte
	log     *trail
	state   state
	waiting []produced

	fetching *fetched     // an answer of the leader's that is on its way
	proposed *ISRProposal // to be sent, or sent and not answered
	answer   *isrAnswer   // of the controller's, on its way
}

// produced is a record that a client waits for with acks=all.
type produced struct {
	value  int
	offset int64
	epoch  int32
}

// fetched is a leader's answer to a follower's fetch, which was asked from a position under an epoch.
type fetched struct {
	at       Position
	entries  []entry
	hw       int64
	diverges bool
	epoch    int32 // where it diverges
	end      int64
}

// isrAnswer is the controller's answer to a proposal.
type isrAnswer struct {
	to             *ISRProposal
	code           int16
	isr            []int32
	partitionEpoch int32
}

func (n *node) working() bool { return n.up && !n.held }

func (n *node) epoch() int64 {
	if n.registration == nil {
		return -1
	}
	return n.registration.Epoch()
}

// handle takes a request of a controller, as Manager does.
func (n *node) handle(req kmsg.Request) kmsg.Response {
	switch req := req.(type) {
	case *kmsg.UpdateMetadataRequest:
		resp := req.ResponseKind().(*kmsg.UpdateMetadataResponse)
		if resp.ErrorCode = n.admit(req.ControllerEpoch, req.BrokerEpoch); resp.ErrorCode != 0 {
			return resp
		}
		return n.cache.Update(req)
	case *kmsg.LeaderAndISRRequest:
		resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
		if resp.ErrorCode = n.admit(req.ControllerEpoch, req.BrokerEpoch); resp.ErrorCode != 0 {
			return resp
		}
		for _, t := range req.TopicStates {
			out := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
			for i := range t.PartitionStates {
				p := &t.PartitionStates[i]
				out.Partitions = append(out.Partitions, kmsg.LeaderAndISRResponseTopicPartition{Partition: p.Partition,
					ErrorCode: n.assign(ID{t.Topic, p.Partition}, t.TopicID, p, req.ControllerEpoch)})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	case *kmsg.StopReplicaRequest:
		resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
		if resp.ErrorCode = n.admit(req.ControllerEpoch, req.BrokerEpoch); resp.ErrorCode != 0 {
			return resp
		}
		for _, t := range req.Topics {
			for _, p := range t.PartitionStates {
				resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: p.Partition,
					ErrorCode: n.stop(ID{t.Topic, p.Partition}, p.LeaderEpoch, p.Delete)})
			}
		}
		return resp
	}
	panic("unknown push")
}

func (n *node) admit(controllerEpoch int32, brokerEpoch int64) int16 {
	if controllerEpoch < n.controllerEpoch && n.c.planted != anyController {
		return kerr.StaleControllerEpoch.Code
	}
	if brokerEpoch >= 0 && brokerEpoch < n.epoch() {
		return kerr.StaleBrokerEpoch.Code
	}
	n.controllerEpoch = controllerEpoch
	return 0
}

func (n *node) assign(id ID, topicID [16]byte, s *kmsg.LeaderAndISRRequestTopicPartition, controllerEpoch int32) int16 {
	if !slices.Contains(s.Replicas, n.id) {
		return kerr.UnknownTopicOrPartition.Code
	}
	r := n.replicas[id]
	if r == nil {
		if n.disk[id] == nil {
			n.disk[id] = &trail{}
		}
		r = &replica{id: id, topicID: topicID, log: n.disk[id]}
		r.state = state{self: n.id, maxLag: maxLag, minISR: n.c.minISR, Assignment: Assignment{Leader: -1, LeaderEpoch: -1, PartitionEpoch: -1}}
		n.replicas[id] = r
	}
	if s.LeaderEpoch <= r.state.LeaderEpoch {
		return kerr.StaleControllerEpoch.Code
	}
	if s.Leader >= 0 {
		if _, known := n.cache.Snapshot().Broker(s.Leader); !known {
			n.c.t.Errorf("broker %d is told to follow %d in %v, of which it wasn't told", n.id, s.Leader, id)
		}
	}
	a := Assignment{Leader: s.Leader, LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.ZKVersion, ControllerEpoch: controllerEpoch,
		Replicas: s.Replicas, ISR: s.ISR, Adding: s.AddingReplicas, Removing: s.RemovingReplicas}
	r.proposed = nil
	if a.Leader == n.id {
		n.c.leads(id, a.LeaderEpoch, n.id)
		r.log.assign(a.LeaderEpoch, r.log.end())
		n.take(r, r.state.lead(a, r.log.end(), r.log.hw, n.c.now))
	} else {
		if n.c.planted == cutsToHighWatermark {
			r.log.truncate(r.log.hw)
		}
		r.state.follow(a)
	}
	n.settle(r)
	return 0
}

func (n *node) stop(id ID, epoch int32, remove bool) int16 {
	if r := n.replicas[id]; r != nil {
		if epoch >= 0 && epoch < r.state.LeaderEpoch {
			return kerr.FencedLeaderEpoch.Code
		}
		delete(n.replicas, id)
	}
	if remove {
		delete(n.disk, id)
	}
	return 0
}

// take carries out what a decision asks for, as Partition.take does.
func (n *node) take(r *replica, e effects) {
	if e.propose != nil {
		p := *e.propose
		r.proposed = &p
	}
	if e.hwMoved {
		r.log.hw = r.state.hw
		n.c.committedUpTo(n, r)
		n.settle(r)
	}
}

// settle answers clients that wait, as Partition.settle does.
func (n *node) settle(r *replica) {
	rest := r.waiting[:0]
	for _, w := range r.waiting {
		switch {
		case r.state.role != RoleLeader || r.state.LeaderEpoch != w.epoch: // NOT_LEADER_OR_FOLLOWER
		case r.state.hw <= w.offset:
			rest = append(rest, w)
		case r.state.underMinISR(): // NOT_ENOUGH_REPLICAS_AFTER_APPEND
		default:
			n.c.acknowledged(r.id, w)
		}
	}
	r.waiting = rest
}

// produce appends a record as a leader; false when it doesn't lead, or may not take it.
func (n *node) produce(id ID, acksAll bool) bool {
	r := n.replicas[id]
	if !n.working() || r == nil || r.state.role != RoleLeader || acksAll && r.state.underMinISR() {
		return false
	}
	n.c.values++
	w := produced{n.c.values, r.log.end(), r.state.LeaderEpoch}
	r.log.append(entry{w.epoch, w.value})
	n.take(r, r.state.appended(r.log.end(), n.c.now))
	if acksAll {
		r.waiting = append(r.waiting, w)
		n.settle(r)
	}
	if n.c.planted == acksAtOnce {
		n.c.acknowledged(id, w)
	}
	return true
}

// fetch has a follower ask its leader for more; the answer is delivered later. As Partition.Read answers followers.
func (n *node) fetch(id ID) {
	r := n.replicas[id]
	if !n.working() || r == nil || r.state.role != RoleFollower || r.state.Leader < 0 || r.fetching != nil {
		return
	}
	leader := n.c.nodes[r.state.Leader]
	if leader == nil || !n.c.reaches(n, leader) {
		return
	}
	l := leader.replicas[id]
	at := Position{LeaderEpoch: r.state.LeaderEpoch, Offset: r.log.end(), LastEpoch: r.log.latest()}
	if l == nil || l.state.role != RoleLeader || l.state.LeaderEpoch != at.LeaderEpoch || !slices.Contains(l.state.Replicas, n.id) {
		return
	}
	f := &fetched{at: at, hw: l.log.hw}
	if at.LastEpoch >= 0 && n.c.planted != neverDiverges {
		epoch, end := l.log.endOf(at.LastEpoch)
		if epoch < at.LastEpoch || end < at.Offset {
			f.diverges, f.epoch, f.end = true, epoch, end
			r.fetching = f
			return
		}
	}
	if at.Offset > l.log.end() {
		f.diverges, f.epoch, f.end = true, l.state.LeaderEpoch, l.log.end() // OFFSET_OUT_OF_RANGE, and then the leader's end
		r.fetching = f
		return
	}
	f.entries = slices.Clone(l.log.entries[at.Offset:])
	if len(f.entries) > 2 {
		f.entries = f.entries[:2]
	}
	e, ok := l.state.fetched(n.id, at.Offset, 0, n.c.now)
	if ok {
		leader.take(l, e)
	}
	f.hw = l.log.hw
	r.fetching = f
}

// receive has a follower take an answer of its leader's. As Partition.AppendAsFollower and the fetcher do.
func (n *node) receive(id ID) {
	r := n.replicas[id]
	if !n.working() || r == nil || r.fetching == nil {
		return
	}
	f := r.fetching
	r.fetching = nil
	if n.c.planted != anyAnswer && (r.state.role != RoleFollower || r.state.LeaderEpoch != f.at.LeaderEpoch || r.log.end() != f.at.Offset) {
		return
	}
	if f.diverges {
		to := f.end
		if own, end := r.log.endOf(f.epoch); own >= 0 && end >= 0 {
			to = min(end, f.end)
			if own < f.epoch {
				to = end
			}
		}
		r.log.truncate(max(0, to))
		return
	}
	for _, e := range f.entries {
		r.log.append(e)
	}
	r.log.hw = max(r.log.hw, min(f.hw, r.log.end()))
}

// alter sends a replica's proposal to the controller; the answer is delivered later.
func (n *node) alter(id ID) {
	r := n.replicas[id]
	if !n.working() || r == nil || r.proposed == nil || r.answer != nil || r.state.role != RoleLeader || r.proposed.LeaderEpoch != r.state.LeaderEpoch {
		return
	}
	p := r.proposed
	req := &kmsg.AlterPartitionRequest{Version: 2, BrokerID: n.id, BrokerEpoch: n.epoch(), Topics: []kmsg.AlterPartitionRequestTopic{{
		TopicID: r.topicID, Partitions: []kmsg.AlterPartitionRequestTopicPartition{{Partition: id.Partition, LeaderEpoch: p.LeaderEpoch,
			PartitionEpoch: p.PartitionEpoch, NewISR: slices.Clone(p.ISR)}}}}}
	resp := n.c.ask(n, req)
	if resp == nil || resp.ErrorCode != 0 || len(resp.Topics) == 0 {
		return // it is sent again
	}
	out := resp.Topics[0].Partitions[0]
	r.answer = &isrAnswer{to: p, code: out.ErrorCode, isr: out.ISR, partitionEpoch: out.PartitionEpoch}
}

// altered has a leader take the controller's answer, as replication.ISR does.
func (n *node) altered(id ID) {
	r := n.replicas[id]
	if !n.working() || r == nil || r.answer == nil {
		return
	}
	a := r.answer
	r.answer = nil
	if r.proposed != a.to {
		return // overtaken
	}
	switch a.code {
	case 0:
		r.proposed = nil
		n.take(r, r.state.isrAnswered(*a.to, true, a.isr, a.partitionEpoch, n.c.now))
		n.settle(r)
	case kerr.IneligibleReplica.Code, kerr.OperationNotAttempted.Code:
		r.proposed = nil
		n.take(r, r.state.isrAnswered(*a.to, false, nil, 0, n.c.now))
		n.settle(r)
	case kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code, kerr.FencedLeaderEpoch.Code, kerr.InvalidUpdateVersion.Code,
		kerr.InvalidRequest.Code, kerr.NewLeaderElected.Code:
		r.proposed = nil // the controller's word is on the way
	}
}

// tick lets leaders drop followers that lag.
func (n *node) tick() {
	if !n.working() {
		return
	}
	for _, id := range n.c.ids {
		if r := n.replicas[id]; r != nil {
			n.take(r, r.state.tick(n.c.now))
		}
	}
}

const maxLag = 10 * time.Second
