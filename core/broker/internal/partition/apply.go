package partition

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errStale says that a push of the controller is older than what is known.
var errStale = errors.New("the controller's request is out of date")

// pushed is one partition of a LeaderAndIsr request, and what became of it.
type pushed struct {
	id      ID
	topicID [16]byte
	state   *kmsg.LeaderAndISRRequestTopicPartition
	fresh   *Partition // made for this request, not hosted before
	err     error
}

// ApplyLeaderAndISR takes the controller's word on who leads which partition. New replicas get a log; leadership changes
// are in force, and the hooks called, when it returns. Each partition succeeds or fails for itself (kafka-compat: a newer
// leader epoch is applied, an equal or older one answered as stale).
//
// The codes of the answer are those that Kafka's controller understands from a broker; no other mapping stands in here.
func (m *Manager) ApplyLeaderAndISR(req *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.admit(req.ControllerEpoch, req.BrokerEpoch); err != nil {
		resp.ErrorCode = pushCode(err)
		return resp
	}
	all := flattenPush(req)
	m.openLogs(all)
	m.update(func(h *hosted) {
		for i := range all {
			if p := all[i].fresh; p != nil {
				h.byID[p.id] = p
				if p.topicID != ([16]byte{}) {
					h.topics[p.topicID] = p.id.Topic
				}
			}
		}
	})
	for i := range all {
		if pp := &all[i]; pp.err == nil {
			pp.err = m.applyOne(pp, req.ControllerEpoch)
		}
	}
	answerPush(resp, all)
	return resp
}

// admit checks the two epochs that fence the controller's requests.
func (m *Manager) admit(controllerEpoch int32, brokerEpoch int64) error {
	if controllerEpoch < m.controllerEpoch {
		return errStale
	}
	if brokerEpoch >= 0 && brokerEpoch < m.o.BrokerEpoch() {
		return kerr.StaleBrokerEpoch
	}
	m.controllerEpoch = controllerEpoch
	return nil
}

func flattenPush(req *kmsg.LeaderAndISRRequest) []pushed {
	var all []pushed
	for i := range req.PartitionStates { // v0, v1
		s := &req.PartitionStates[i]
		all = append(all, pushed{id: ID{s.Topic, s.Partition}, state: s})
	}
	for i := range req.TopicStates {
		t := &req.TopicStates[i]
		for j := range t.PartitionStates {
			s := &t.PartitionStates[j]
			all = append(all, pushed{id: ID{t.Topic, s.Partition}, topicID: t.TopicID, state: s})
		}
	}
	return all
}

// openLogs makes a log for each partition that isn't hosted yet. It is done side by side: making a log is system calls that
// make files, and a request may bring thousands.
func (m *Manager) openLogs(all []pushed) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	seen := make(map[ID]bool, len(all))
	for i := range all {
		pp := &all[i]
		if p, err := m.Get(pp.id); err == nil {
			if pp.topicID != ([16]byte{}) && p.topicID != ([16]byte{}) && p.topicID != pp.topicID {
				pp.err = ErrInconsistentTopicID
			}
			continue
		}
		if !slices.Contains(pp.state.Replicas, m.o.BrokerID) {
			pp.err = ErrUnknownPartition
			continue
		}
		if seen[pp.id] {
			pp.err = errStale
			continue
		}
		seen[pp.id] = true
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			pp.fresh, pp.err = m.open(pp)
			<-slots
		}()
	}
	wg.Wait()
}

func (m *Manager) open(pp *pushed) (*Partition, error) {
	l, err := m.o.Logs.Open(pp.id.Topic, pp.id.Partition, pp.state.IsNew)
	if err == nil && pp.topicID != ([16]byte{}) {
		// On disk before the first record is: else data could be taken for that of another topic of the same name.
		err = l.SetTopicID(pp.topicID)
	}
	switch {
	case errors.Is(err, log.ErrTopicID):
		m.o.Logger.Error("the data belongs to another topic of the same name; move its directory away", "partition", pp.id.String(), "dir", l.Dir(), "err", err)
		return nil, ErrInconsistentTopicID
	case err != nil:
		m.o.Logger.Error("no log for a new replica", "partition", pp.id.String(), "err", err)
		return nil, fmt.Errorf("%w: %w", ErrOffline, err)
	}
	p := newPartition(pp.id, pp.topicID, l, &m.o)
	p.state.minISR = m.o.MinISR(pp.id.Topic)
	p.throttle(m.o.Throttled)
	return p, nil
}

func (m *Manager) applyOne(pp *pushed, controllerEpoch int32) error {
	p, err := m.Get(pp.id)
	if err != nil {
		return err
	}
	s := pp.state
	if !slices.Contains(s.Replicas, m.o.BrokerID) {
		return ErrUnknownPartition
	}
	// First: a controller that heard of a failed log dir asks, with what is known already, which replicas that concerns.
	if _, err := p.serving(-1); err != nil {
		return err
	}
	if _, epoch := p.Leader(); s.LeaderEpoch <= epoch {
		return errStale
	}
	leads, err := p.apply(Assignment{
		Leader:          s.Leader,
		LeaderEpoch:     s.LeaderEpoch,
		PartitionEpoch:  s.ZKVersion,
		ControllerEpoch: controllerEpoch,
		Replicas:        slices.Clone(s.Replicas),
		ISR:             slices.Clone(s.ISR),
		Adding:          slices.Clone(s.AddingReplicas),
		Removing:        slices.Clone(s.RemovingReplicas),
	})
	if err != nil {
		return err
	}
	switch {
	case leads && m.o.OnLeader != nil:
		m.o.OnLeader(p.id, s.LeaderEpoch)
	case !leads && m.o.OnFollower != nil:
		m.o.OnFollower(p.id, s.LeaderEpoch)
	}
	return nil
}

func answerPush(resp *kmsg.LeaderAndISRResponse, all []pushed) {
	byTopic := map[[16]byte]int{}
	for i := range all {
		pp := &all[i]
		a := kmsg.LeaderAndISRResponseTopicPartition{Topic: pp.id.Topic, Partition: pp.id.Partition, ErrorCode: pushCode(pp.err)}
		if resp.Version < 5 {
			resp.Partitions = append(resp.Partitions, a)
			continue
		}
		at, ok := byTopic[pp.topicID]
		if !ok {
			at = len(resp.Topics)
			byTopic[pp.topicID] = at
			resp.Topics = append(resp.Topics, kmsg.LeaderAndISRResponseTopic{TopicID: pp.topicID})
		}
		resp.Topics[at].Partitions = append(resp.Topics[at].Partitions, a)
	}
}

// deletedEpoch in a StopReplica request says that the topic is being deleted; noEpoch that the controller knows none.
const (
	noEpoch      int32 = -1
	deletedEpoch int32 = -2
)

// StopReplicas takes the controller's word that this broker shall not host replicas any more, or not for now; with delete
// their data goes, too. The hook OnRemoved is called for each.
func (m *Manager) StopReplicas(req *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse {
	resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.admit(req.ControllerEpoch, req.BrokerEpoch); err != nil {
		resp.ErrorCode = pushCode(err)
		return resp
	}
	var gone []ID
	stop := func(id ID, epoch int32, remove bool) {
		err := m.stopOne(id, epoch, remove)
		if err == nil {
			gone = append(gone, id)
		}
		resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: id.Topic, Partition: id.Partition, ErrorCode: pushCode(err)})
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		switch {
		case req.Version == 0:
			stop(ID{t.Topic, t.Partition}, noEpoch, req.DeletePartitions)
		case req.Version < 3:
			for _, n := range t.Partitions {
				stop(ID{t.Topic, n}, noEpoch, req.DeletePartitions)
			}
		default:
			for _, s := range t.PartitionStates {
				stop(ID{t.Topic, s.Partition}, s.LeaderEpoch, s.Delete)
			}
		}
	}
	m.leave(gone, func(h *hosted) {
		for _, id := range gone {
			delete(h.byID, id)
		}
		clear(h.topics)
		for id, p := range h.byID {
			if p.topicID != ([16]byte{}) {
				h.topics[p.topicID] = id.Topic
			}
		}
	})
	if m.o.OnRemoved != nil {
		for _, id := range gone {
			m.o.OnRemoved(id)
		}
	}
	return resp
}

func (m *Manager) stopOne(id ID, epoch int32, remove bool) error {
	if p, err := m.Get(id); err == nil {
		if _, known := p.Leader(); epoch != noEpoch && epoch != deletedEpoch && epoch < known {
			return ErrFencedLeaderEpoch
		}
		p.remove(ErrUnknownPartition)
	}
	if !remove {
		return nil
	}
	// Also without a replica in service: the data of one that was stopped before must go now.
	if err := m.o.Logs.Delete(id.Topic, id.Partition); err != nil {
		m.o.Logger.Error("can't delete a replica's log", "partition", id.String(), "err", err)
		return fmt.Errorf("%w: %w", ErrOffline, err)
	}
	return nil
}

// pushCode is Kafka's code for what a broker answers to its controller.
func pushCode(err error) int16 {
	var known *kerr.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &known):
		return known.Code
	case errors.Is(err, errStale):
		return kerr.StaleControllerEpoch.Code
	case errors.Is(err, ErrUnknownPartition):
		return kerr.UnknownTopicOrPartition.Code
	case errors.Is(err, ErrInconsistentTopicID):
		return kerr.InconsistentTopicID.Code
	case errors.Is(err, ErrFencedLeaderEpoch):
		return kerr.FencedLeaderEpoch.Code
	case errors.Is(err, ErrOffline):
		return kerr.KafkaStorageError.Code
	}
	return kerr.UnknownServerError.Code
}
