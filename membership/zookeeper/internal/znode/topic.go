package znode

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Topic is what /brokers/topics/T holds.
type Topic struct {
	ID         election.TopicID // zero when the node has none: from IBP below 2.8, and from tools of older days
	Partitions []election.Assignment
}

type topicNode struct {
	Version    int                `json:"version"`
	ID         string             `json:"topic_id,omitempty"`
	Partitions map[string][]int32 `json:"partitions"`
	Adding     map[string][]int32 `json:"adding_replicas"`
	Removing   map[string][]int32 `json:"removing_replicas"`
}

// EncodeTopic writes a topic, version 3.
func EncodeTopic(t Topic) []byte {
	n := topicNode{Version: 3, Partitions: make(map[string][]int32, len(t.Partitions)), Adding: map[string][]int32{}, Removing: map[string][]int32{}}
	if t.ID != (election.TopicID{}) {
		n.ID = FormatID(t.ID)
	}
	for i, a := range t.Partitions {
		key := strconv.Itoa(i)
		n.Partitions[key] = list(a.Replicas)
		if len(a.Adding) > 0 {
			n.Adding[key] = a.Adding
		}
		if len(a.Removing) > 0 {
			n.Removing[key] = a.Removing
		}
	}
	return encode(n)
}

// DecodeTopic reads a topic of versions 1 to 3. Its partitions are numbered without gaps.
func DecodeTopic(data []byte) (t Topic, err error) {
	const what = "topic"
	o, err := decode(what, data)
	if err != nil {
		return t, err
	}
	if o.has("topic_id") {
		text, err := member[string](o, what, "topic_id")
		if err != nil {
			return t, err
		}
		if t.ID, err = ParseID(text); err != nil {
			return t, err
		}
	}
	partitions, err := member[map[string][]int32](o, what, "partitions")
	if err != nil {
		return t, err
	}
	adding, err := optional[map[string][]int32](o, what, "adding_replicas")
	if err != nil {
		return t, err
	}
	removing, err := optional[map[string][]int32](o, what, "removing_replicas")
	if err != nil {
		return t, err
	}
	for i := range len(partitions) {
		key := strconv.Itoa(i)
		replicas, ok := partitions[key]
		if !ok {
			return Topic{}, fmt.Errorf("%s: %w: %d partitions, and none is %d", what, ErrMalformed, len(partitions), i)
		}
		if len(replicas) == 0 {
			return Topic{}, fmt.Errorf("%s: %w: partition %d has no replicas", what, ErrMalformed, i)
		}
		a := election.Assignment{Replicas: replicas, Adding: adding[key], Removing: removing[key]}
		for _, ids := range [][]int32{a.Replicas, a.Adding, a.Removing} {
			for _, id := range ids {
				if id < 0 {
					return Topic{}, fmt.Errorf("%s: %w: partition %d has a replica on broker %d", what, ErrMalformed, i, id)
				}
			}
		}
		t.Partitions = append(t.Partitions, a)
	}
	return t, nil
}

// FormatID writes an id as Kafka does: 22 characters of URL-safe base64.
func FormatID(id election.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID reads what FormatID writes.
func ParseID(text string) (id election.TopicID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%w: %q is no id", ErrMalformed, clip(text))
	}
	return election.TopicID(b), nil
}

type stateNode struct {
	Version         int     `json:"version"`
	Leader          int32   `json:"leader"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ControllerEpoch int32   `json:"controller_epoch"`
	ISR             []int32 `json:"isr"`
	Recovery        int     `json:"leader_recovery_state,omitempty"`
}

// EncodeState writes what /brokers/topics/T/partitions/P/state holds; the partition epoch is the node's version and isn't in it.
func EncodeState(s election.PartitionState) []byte {
	n := stateNode{Version: 1, Leader: s.Leader, LeaderEpoch: s.LeaderEpoch, ControllerEpoch: s.ControllerEpoch, ISR: list(s.ISR)}
	if s.Recovering {
		n.Recovery = 1
	}
	return encode(n)
}

// DecodeState reads it. version is the node's.
func DecodeState(data []byte, version int32) (s election.PartitionState, err error) {
	const what = "partition state"
	s.PartitionEpoch = version
	o, err := decode(what, data)
	if err != nil {
		return s, err
	}
	for _, m := range []struct {
		name string
		to   *int32
	}{{"leader", &s.Leader}, {"leader_epoch", &s.LeaderEpoch}, {"controller_epoch", &s.ControllerEpoch}} {
		if *m.to, err = member[int32](o, what, m.name); err != nil {
			return s, err
		}
	}
	if s.ISR, err = member[[]int32](o, what, "isr"); err != nil {
		return s, err
	}
	recovery, err := optional[int8](o, what, "leader_recovery_state")
	if err != nil {
		return s, err
	}
	s.Recovering = recovery == 1
	return s, nil
}
