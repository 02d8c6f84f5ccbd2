package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// NoLeader is the leader of a partition that has none.
const NoLeader int32 = -1

// Broker is a living broker.
type Broker struct {
	ID   int32
	Addr string // HOST:PORT of the listener that was asked
	Rack string // "" is none
}

// Partition is a partition as the cluster's metadata shows it.
type Partition struct {
	Topic    string
	Number   int32
	Leader   int32   // NoLeader when it has none
	Replicas []int32 // the preferred leader first
	ISR      []int32
}

// Name is topic-number, as people know it from directories and logs.
func (p Partition) Name() string { return p.Topic + "-" + strconv.Itoa(int(p.Number)) }

// Preferred is the broker that leads the partition when all is well, NoLeader when it has no replicas.
func (p Partition) Preferred() int32 {
	if len(p.Replicas) == 0 {
		return NoLeader
	}
	return p.Replicas[0]
}

// State is a cluster at one moment.
type State struct {
	ID         string
	Controller int32       // kadm's -1 when nobody is
	Brokers    []Broker    // by id
	Partitions []Partition // by topic and number, internal topics too
	Moving     []Move      // reassignments that are going on, by topic and number
}

// Move is a reassignment that is going on.
type Move struct {
	Topic            string
	Number           int32
	Adding, Removing []int32
}

// Name is topic-number.
func (m Move) Name() string { return m.Topic + "-" + strconv.Itoa(int(m.Number)) }

// Read reads the state of a cluster. Topics that are being deleted while it is read are left out.
func Read(ctx context.Context, admin *kadm.Client) (State, error) {
	m, err := admin.Metadata(ctx)
	if err != nil {
		return State{}, err
	}
	s := State{ID: m.Cluster, Controller: m.Controller}
	for _, b := range m.Brokers {
		one := Broker{ID: b.NodeID, Addr: b.Host + ":" + strconv.Itoa(int(b.Port))}
		if b.Rack != nil {
			one.Rack = *b.Rack
		}
		s.Brokers = append(s.Brokers, one)
	}
	for _, t := range m.Topics.Sorted() {
		if t.Err != nil && !errors.Is(t.Err, kerr.LeaderNotAvailable) {
			if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
				continue
			}
			return State{}, fmt.Errorf("topic %s: %w", t.Topic, t.Err)
		}
		for _, p := range t.Partitions.Sorted() {
			s.Partitions = append(s.Partitions, Partition{Topic: t.Topic, Number: p.Partition, Leader: p.Leader, Replicas: p.Replicas, ISR: p.ISR})
		}
	}
	s.Moving, err = moves(ctx, admin, s.Partitions)
	return s, err
}

// Moves are the reassignments that are going on. A cluster that doesn't know reassignments has none.
func Moves(ctx context.Context, admin *kadm.Client) ([]Move, error) {
	s, err := Read(ctx, admin)
	return s.Moving, err
}

func moves(ctx context.Context, admin *kadm.Client, of []Partition) ([]Move, error) {
	var set kadm.TopicsSet // of all: without any, the client doesn't ask
	for _, p := range of {
		set.Add(p.Topic, p.Number)
	}
	listed, err := admin.ListPartitionReassignments(ctx, set)
	if errors.Is(err, kerr.UnsupportedVersion) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list reassignments: %w", err)
	}
	var moves []Move
	for _, r := range listed.Sorted() {
		moves = append(moves, Move{Topic: r.Topic, Number: r.Partition, Adding: r.AddingReplicas, Removing: r.RemovingReplicas})
	}
	return moves, nil
}

// Broker finds a living broker.
func (s State) Broker(id int32) (Broker, bool) {
	for _, b := range s.Brokers {
		if b.ID == id {
			return b, true
		}
	}
	return Broker{}, false
}

// Topic are the partitions of one topic, none when there is no such topic.
func (s State) Topic(name string) []Partition {
	var of []Partition
	for _, p := range s.Partitions {
		if p.Topic == name {
			of = append(of, p)
		}
	}
	return of
}

// Topics are the names of all topics, in order.
func (s State) Topics() []string {
	names := map[string]bool{}
	for _, p := range s.Partitions {
		names[p.Topic] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Share is what one broker has of the cluster.
type Share struct {
	Broker   Broker
	Alive    bool
	Leads    int // partitions that it leads
	Prefers  int // partitions that it would lead when all is well
	Replicas int // partitions that it has a replica of
	Behind   int // replicas of them that aren't in sync
}

// Shares are the shares of all brokers, by id: those that live, and those that replicas are assigned to.
func (s State) Shares() []Share {
	shares := map[int32]*Share{}
	of := func(id int32) *Share {
		if shares[id] == nil {
			shares[id] = &Share{Broker: Broker{ID: id}}
		}
		return shares[id]
	}
	for _, b := range s.Brokers {
		of(b.ID).Broker, of(b.ID).Alive = b, true
	}
	for _, p := range s.Partitions {
		if p.Leader != NoLeader {
			of(p.Leader).Leads++
		}
		for i, r := range p.Replicas {
			share := of(r)
			share.Replicas++
			if i == 0 {
				share.Prefers++
			}
			if !slices.Contains(p.ISR, r) {
				share.Behind++
			}
		}
	}
	var list []Share
	for _, id := range slices.Sorted(maps.Keys(shares)) {
		list = append(list, *shares[id])
	}
	return list
}
