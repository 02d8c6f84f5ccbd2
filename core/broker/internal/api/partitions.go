package api

import (
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// Topics that clients don't write to.
const (
	offsetsTopic      = "__consumer_offsets"
	transactionsTopic = "__transaction_state"
)

func internalTopic(name string) bool { return name == offsetsTopic || name == transactionsTopic }

// snapshot is what this broker knows of its cluster, nil when it knows none.
func (h *handlers) snapshot() *metadata.Snapshot {
	if h.Cluster == nil || h.Cluster.Metadata == nil {
		return nil
	}
	return h.Cluster.Metadata.Snapshot()
}

// find looks a partition up, by its topic's name or, when that is empty and byID is set, by its id. The name may be borrowed.
//
// A partition that this broker does not host, but that it knows to exist, is partition.ErrNotLeader.
func (h *handlers) find(name string, id [16]byte, byID bool, number int32) (*partition.Partition, error) {
	var p *partition.Partition
	var err error
	if byID {
		p, err = h.Partitions.ByTopicID(id, number)
	} else {
		p, err = h.Partitions.Get(partition.ID{Topic: name, Partition: number})
	}
	if err == nil {
		return p, nil
	}
	s := h.snapshot()
	if s == nil {
		return nil, err
	}
	var t *metadata.Topic
	var known bool
	if byID {
		t, known = s.TopicByID(id)
		if known && err == partition.ErrUnknownTopicID {
			err = partition.ErrUnknownPartition
		}
	} else {
		t, known = s.Topic(name)
	}
	if known {
		if _, exists := t.Partition(number); exists {
			return nil, partition.ErrNotLeader
		}
	}
	return nil, err
}

// leaders collects where the leaders are that a response names (KIP-951).
type leaders struct {
	nodes []endpoint
}

// of says who leads a partition, for a client of the listener, and remembers where that broker is. p may be nil, and then name
// or id say which topic it is. -1 when nobody leads, or nobody knows.
func (l *leaders) of(h *handlers, listener string, p *partition.Partition, name string, id [16]byte, number int32) (leader, epoch int32) {
	s := h.snapshot()
	if s == nil {
		return -1, -1
	}
	if p != nil {
		leader, epoch = p.Leader()
	} else {
		t, ok := s.Topic(name)
		if !ok {
			t, ok = s.TopicByID(id)
		}
		if !ok {
			return -1, -1
		}
		known, ok := t.Partition(number)
		if !ok {
			return -1, -1
		}
		leader, epoch = known.Leader, known.LeaderEpoch
	}
	b, alive := s.Broker(leader)
	if !alive {
		return -1, -1
	}
	host, port, ok := b.Endpoint(listener)
	if !ok {
		return -1, -1
	}
	for i := range l.nodes {
		if l.nodes[i].id == leader {
			return leader, epoch
		}
	}
	l.nodes = append(l.nodes, endpoint{id: leader, host: host, port: port, rack: b.Rack})
	return leader, epoch
}
