package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteTopics marks topics for deletion. What is left to do is found in settle, by this controller or the next.
func (m *Machine) deleteTopics(c *DeleteTopics) []Effect {
	c.Results = make([]error, len(c.Topics))
	var w WriteMarks
	for i, name := range c.Topics {
		switch t := m.topics[name]; {
		case !m.rules.DeleteTopics:
			c.Results[i] = refuse(kerr.TopicDeletionDisabled, "Topic deletion is disabled.")
		case t == nil:
			c.Results[i] = refuse(kerr.UnknownTopicOrPartition, "The topic does not exist.")
		case !t.deleting:
			w.Topics = append(w.Topics, name)
			w.slots = append(w.slots, &c.Results[i])
		}
	}
	if len(w.Topics) == 0 {
		return nil
	}
	return []Effect{w}
}

func (m *Machine) marksWritten(ev marksWritten) {
	for i, name := range ev.Topics {
		if err := ev.errs[i]; err != nil {
			*ev.slots[i] = metadataError(err)
			continue
		}
		if t := m.topics[name]; t != nil {
			t.deleting = true
			m.markAll(t)
		}
	}
}

func (m *Machine) markAll(t *topic) {
	for i := range t.parts {
		m.dirty[tp{t.name, int32(i)}] = struct{}{}
	}
}

// deletion goes on with the topics that are being deleted: brokers are told to forget them, replicas to go, and those whose
// replicas are all gone are removed.
func (m *Machine) deletion(topics map[string]*topic) []Effect {
	var hide []*topic
	stops := stopRequests{m: m, by: map[int32]*kmsg.StopReplicaRequest{}}
	var w WriteRemovals
	for _, t := range inOrder(topics) {
		if !t.hidden {
			t.hidden = true
			hide = append(hide, t)
		}
		left := 0
		for i := range t.parts {
			for _, id := range t.parts[i].assignment.Replicas {
				r := replica{int32(i), id}
				if _, gone := t.gone[r]; gone {
					continue
				}
				left++
				if _, asked := t.asked[r]; !asked && m.alive(id) {
					t.asked[r] = struct{}{}
					stops.add(id, tp{t.name, int32(i)}, epochDuringDelete, true)
				}
			}
		}
		if left == 0 {
			w.Topics = append(w.Topics, t.name)
		}
	}
	var effects []Effect
	if len(hide) > 0 {
		effects = append(effects, m.hide(hide)...)
	}
	effects = append(effects, stops.pushes()...)
	if len(w.Topics) > 0 {
		effects = append(effects, w)
	}
	return effects
}

// epochDuringDelete is the leader epoch that stands for "its topic is being deleted".
const epochDuringDelete int32 = -2

// removalsWritten forgets topics that are gone for good.
func (m *Machine) removalsWritten(ev removalsWritten) []Effect {
	var reread Reread
	for i, name := range ev.Topics {
		if ev.errs[i] != nil {
			reread.Topics = append(reread.Topics, name)
		} else if t := m.topics[name]; t != nil {
			m.drop(t)
		}
	}
	if len(reread.Topics) == 0 {
		return nil
	}
	return []Effect{reread}
}

// delivered takes in a broker's answer to a push.
func (m *Machine) delivered(ev Delivered) {
	b, ok := m.brokers[ev.Broker]
	if !ok || b.Epoch != ev.Epoch || ev.Response == nil {
		return // the broker is gone, or has come back and is told everything again
	}
	switch resp := ev.Response.(type) {
	case *kmsg.StopReplicaResponse:
		deleted := deletes(ev.Request)
		for _, p := range resp.Partitions {
			if k := (tp{p.Topic, p.Partition}); deleted[k] {
				m.stopped(ev.Broker, k, p.ErrorCode)
			}
		}
	case *kmsg.LeaderAndISRResponse:
		for _, p := range resp.Partitions { // versions below 5
			m.accepted(ev.Broker, tp{p.Topic, p.Partition}, p.ErrorCode)
		}
		for _, t := range resp.Topics {
			known := m.ids[t.TopicID]
			for _, p := range t.Partitions {
				if known != nil {
					m.accepted(ev.Broker, tp{known.name, p.Partition}, p.ErrorCode)
				}
			}
		}
	}
}

// deletes are the partitions that a StopReplica request asked to delete, and not only to stop.
func deletes(req kmsg.Request) map[tp]bool {
	all := map[tp]bool{}
	if req, ok := req.(*kmsg.StopReplicaRequest); ok {
		for _, t := range req.Topics {
			for _, p := range t.PartitionStates {
				all[tp{t.Topic, p.Partition}] = p.Delete
			}
		}
	}
	return all
}

// stopped takes in that a replica is gone, when its topic is being deleted. One that couldn't go, because its log directory
// failed, is asked again when its broker comes back.
func (m *Machine) stopped(broker int32, k tp, code int16) {
	t := m.topics[k.topic]
	if t == nil || !t.deleting || code != 0 {
		return
	}
	r := replica{k.partition, broker}
	if _, asked := t.asked[r]; asked {
		t.gone[r] = struct{}{}
		m.dirty[k] = struct{}{}
	}
}

// logDirFailed asks a broker, with a LeaderAndIsr for all that it has, in which replicas' log directory nothing can be done.
func (m *Machine) logDirFailed(broker int32) []Effect {
	req := m.leaderAndISR(m.everything(), func(id int32, _ tp) bool { return id == broker })[broker]
	if req == nil {
		return nil
	}
	return []Effect{m.push(broker, req)}
}

// accepted takes in whether a replica's log directory is well.
func (m *Machine) accepted(broker int32, k tp, code int16) {
	p := m.partition(k)
	if p == nil {
		return
	}
	switch was := slices.Contains(p.offline, broker); {
	case code == kerr.KafkaStorageError.Code && !was:
		p.offline = append(p.offline, broker)
	case code == 0 && was:
		p.offline = keep(p.offline, func(id int32) bool { return id != broker })
	default:
		return
	}
	m.dirty[k] = struct{}{}
	m.tell(k, news{})
}
