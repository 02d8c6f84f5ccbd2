package metadata

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/election"
)

// deletedLeader is the leader in an UpdateMetadata that says that the partition's topic is being deleted.
const deletedLeader int32 = -2

// Cache keeps the newest snapshot. Snapshot may be called from any goroutine and costs an atomic load; Update from any too,
// one at a time.
type Cache struct {
	current     atomic.Pointer[Snapshot]
	mu          sync.Mutex // held over an update
	changed     chan struct{}
	brokerEpoch func() int64
	lost        int64 // the epoch of a registration that was lost, when nothing was said to a later one yet; else the highest
}

// NewCache makes a cache that knows nothing. brokerEpoch gives the epoch that this broker is registered under, and -1
// while it isn't: requests of a controller that speaks to an earlier registration are refused.
func NewCache(brokerEpoch func() int64) *Cache {
	c := &Cache{brokerEpoch: brokerEpoch, changed: make(chan struct{}), lost: math.MaxInt64}
	c.current.Store(&Snapshot{controllerID: election.NoBroker, topics: map[string]*Topic{}, names: map[[16]byte]string{}})
	return c
}

// Snapshot is the cluster as of the last update.
func (c *Cache) Snapshot() *Snapshot { return c.current.Load() }

// Lost says that the broker's registration under an epoch is lost. What the controller says first to the next one is all that
// there is: topics that it doesn't speak of were deleted while nobody could tell this broker.
func (c *Cache) Lost(epoch int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = epoch
}

// Update applies a controller's push. The list of living brokers replaces the one before; partitions are added to those
// known, or replace them; a leader of -2 takes a partition away. It answers STALE_CONTROLLER_EPOCH to a controller that has
// a successor and STALE_BROKER_EPOCH to one that doesn't know of this broker's last registration, and then changes nothing.
//
// Versions below 5 name topics per partition, those below 7 have no topic ids, which then stay what they were.
func (c *Cache) Update(req *kmsg.UpdateMetadataRequest) *kmsg.UpdateMetadataResponse {
	resp := req.ResponseKind().(*kmsg.UpdateMetadataResponse)
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.current.Load()
	switch {
	case req.ControllerEpoch < old.controllerEpoch:
		resp.ErrorCode = kerr.StaleControllerEpoch.Code
		return resp
	case req.Version >= 5 && req.BrokerEpoch >= 0 && req.BrokerEpoch < c.brokerEpoch():
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		return resp
	}
	s := &Snapshot{controllerID: req.ControllerID, controllerEpoch: req.ControllerEpoch, brokers: liveBrokers(req),
		topics: old.topics, names: old.names, partitions: old.partitions}
	states := req.TopicStates
	if req.Version < 5 {
		states = byTopic(req.PartitionStates)
	}
	if req.Version >= 5 && req.BrokerEpoch > c.lost {
		c.lost = math.MaxInt64
		s.topics, s.names, s.partitions = map[string]*Topic{}, map[[16]byte]string{}, 0
	} else if len(states) > 0 {
		s.topics, s.names = maps.Clone(old.topics), maps.Clone(old.names)
	}
	for i := range states {
		s.merge(&states[i])
	}
	c.current.Store(s)
	close(c.changed)
	c.changed = make(chan struct{})
	return resp
}

// Await waits until want is true of a snapshot, and returns that; or the newest one, with ctx's error, when ctx ends first.
func (c *Cache) Await(ctx context.Context, want func(*Snapshot) bool) (*Snapshot, error) {
	for {
		c.mu.Lock()
		s, changed := c.current.Load(), c.changed
		c.mu.Unlock()
		if want(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// liveBrokers reads the brokers of a request. Version 0 has no endpoints: its host and port are the PLAINTEXT listener's.
func liveBrokers(req *kmsg.UpdateMetadataRequest) []Broker {
	brokers := make([]Broker, 0, len(req.LiveBrokers))
	for i := range req.LiveBrokers {
		l := &req.LiveBrokers[i]
		b := Broker{ID: l.ID}
		if l.Rack != nil {
			b.Rack = *l.Rack
		}
		for _, e := range l.Endpoints {
			name := e.ListenerName
			if req.Version < 3 {
				name = protocolName(e.SecurityProtocol)
			}
			b.Endpoints = append(b.Endpoints, election.Endpoint{Listener: name, Protocol: protocolName(e.SecurityProtocol), Host: e.Host, Port: e.Port})
		}
		if req.Version < 1 {
			b.Endpoints = []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: l.Host, Port: l.Port}}
		}
		brokers = append(brokers, b)
	}
	slices.SortFunc(brokers, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	return brokers
}

// protocols are Kafka's security protocols by their number on the wire.
func protocols() [4]string { return [4]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"} }

func protocolName(id int16) string {
	if names := protocols(); id >= 0 && int(id) < len(names) {
		return names[id]
	}
	return "PLAINTEXT"
}

// ProtocolID is the number of a security protocol on the wire, 0 (PLAINTEXT) when it is unknown.
func ProtocolID(name string) int16 {
	names := protocols()
	return int16(max(0, slices.Index(names[:], name)))
}

func byTopic(parts []kmsg.UpdateMetadataRequestTopicPartition) []kmsg.UpdateMetadataRequestTopicState {
	var states []kmsg.UpdateMetadataRequestTopicState
	at := map[string]int{}
	for i := range parts {
		n, ok := at[parts[i].Topic]
		if !ok {
			n = len(states)
			at[parts[i].Topic] = n
			states = append(states, kmsg.UpdateMetadataRequestTopicState{Topic: parts[i].Topic})
		}
		states[n].PartitionStates = append(states[n].PartitionStates, parts[i])
	}
	return states
}

// merge makes a topic's part of a request part of the snapshot, which isn't published yet.
func (s *Snapshot) merge(in *kmsg.UpdateMetadataRequestTopicState) {
	old := s.topics[in.Topic]
	t := &Topic{Name: in.Topic, ID: in.TopicID}
	if old != nil {
		if t.ID == ([16]byte{}) {
			t.ID = old.ID
		}
		if t.ID == old.ID {
			t.Partitions = slices.Clone(old.Partitions)
		}
		delete(s.names, old.ID)
		s.partitions -= len(old.Partitions)
	}
	for i := range in.PartitionStates {
		p := &in.PartitionStates[i]
		at, found := slices.BinarySearchFunc(t.Partitions, p.Partition, func(p Partition, n int32) int { return cmp.Compare(p.Number, n) })
		if p.Leader == deletedLeader {
			if found {
				t.Partitions = slices.Delete(t.Partitions, at, at+1)
			}
			continue
		}
		if !found {
			t.Partitions = slices.Insert(t.Partitions, at, Partition{})
		}
		t.Partitions[at] = Partition{Number: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.ZKVersion,
			Replicas: slices.Clone(p.Replicas), ISR: slices.Clone(p.ISR), Offline: slices.Clone(p.OfflineReplicas)}
	}
	if len(t.Partitions) == 0 {
		delete(s.topics, in.Topic)
		return
	}
	s.topics[in.Topic] = t
	if t.ID != ([16]byte{}) {
		s.names[t.ID] = in.Topic
	}
	s.partitions += len(t.Partitions)
}
