// Package metadata is what a broker knows about its cluster: which brokers are alive and where, which topics there are, who
// leads which partition, who is controller; and the configurations of topics and brokers.
//
// The controller pushes the first part in UpdateMetadata requests; [Cache] keeps it in immutable [Snapshot]s, which requests
// read without a lock. The second part is read from the coordination, by [Configs].
//
// What isn't its business: deciding any of it (package controller), hosting replicas (package partition), and answering
// Metadata requests (package api).
package metadata

import (
	"cmp"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// NoLeader is the leader of a partition that has none.
const NoLeader int32 = -1

// Partition is what a broker knows about one partition. Its slices are shared: nobody changes them.
type Partition struct {
	Number         int32
	Leader         int32 // NoLeader when it has none
	LeaderEpoch    int32
	PartitionEpoch int32
	Replicas       []int32
	ISR            []int32
	Offline        []int32 // replicas that can't be reached, or whose log directory failed
}

// Topic is what a broker knows about one topic.
type Topic struct {
	Name       string
	ID         [16]byte
	Partitions []Partition // by ascending number; without gaps once the controller has told everything
}

// Partition finds a partition by number.
func (t *Topic) Partition(number int32) (*Partition, bool) {
	if number >= 0 && int(number) < len(t.Partitions) && t.Partitions[number].Number == number {
		return &t.Partitions[number], true
	}
	i, ok := slices.BinarySearchFunc(t.Partitions, number, func(p Partition, n int32) int { return cmp.Compare(p.Number, n) })
	if !ok {
		return nil, false
	}
	return &t.Partitions[i], true
}

// Broker is a living broker.
type Broker struct {
	ID        int32
	Rack      string // empty when it has none
	Endpoints []election.Endpoint
}

// Endpoint finds where the broker is reached through a listener.
func (b *Broker) Endpoint(listener string) (host string, port int32, ok bool) {
	for i := range b.Endpoints {
		if b.Endpoints[i].Listener == listener {
			return b.Endpoints[i].Host, b.Endpoints[i].Port, true
		}
	}
	return "", -1, false
}

// Snapshot is the cluster as of one moment. It never changes.
type Snapshot struct {
	controllerID    int32
	controllerEpoch int32
	brokers         []Broker // by id
	topics          map[string]*Topic
	names           map[[16]byte]string
	partitions      int
}

// Controller is the controller's broker id, NoBroker when none was heard of, and its epoch.
func (s *Snapshot) Controller() (id, epoch int32) { return s.controllerID, s.controllerEpoch }

// Brokers lists the living brokers by ascending id. The slice is shared.
func (s *Snapshot) Brokers() []Broker { return s.brokers }

// Broker finds a living broker.
func (s *Snapshot) Broker(id int32) (*Broker, bool) {
	i, ok := slices.BinarySearchFunc(s.brokers, id, func(b Broker, id int32) int { return cmp.Compare(b.ID, id) })
	if !ok {
		return nil, false
	}
	return &s.brokers[i], true
}

// Topic finds a topic by name.
func (s *Snapshot) Topic(name string) (*Topic, bool) {
	t, ok := s.topics[name]
	return t, ok
}

// TopicByID finds a topic by id.
func (s *Snapshot) TopicByID(id [16]byte) (*Topic, bool) {
	t, ok := s.topics[s.names[id]]
	return t, ok
}

// Topics lists all topics by ascending name. It makes the list anew.
func (s *Snapshot) Topics() []*Topic {
	list := make([]*Topic, 0, len(s.topics))
	for _, t := range s.topics {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Topic) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Gone lists the topics of an earlier snapshot that aren't there any more, or are others of the same name.
func (s *Snapshot) Gone(before *Snapshot) []string {
	var gone []string
	for name, old := range before.topics {
		if now, ok := s.topics[name]; !ok || now != old && now.ID != old.ID {
			gone = append(gone, name)
		}
	}
	return gone
}

// Counts says how many topics and partitions there are.
func (s *Snapshot) Counts() (topics, partitions int) { return len(s.topics), s.partitions }
