package znode

import "fmt"

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

type partitionsNode struct {
	Version    int              `json:"version"`
	Partitions []TopicPartition `json:"partitions"`
}

// EncodePartitions writes what /admin/preferred_replica_election and the nodes below /isr_change_notification hold.
func EncodePartitions(partitions []TopicPartition) []byte {
	return encode(partitionsNode{1, append([]TopicPartition{}, partitions...)})
}

// DecodePartitions reads it. What can't be a partition is left out, and given in bad.
func DecodePartitions(data []byte) (partitions []TopicPartition, bad int, err error) {
	const what = "partitions"
	items, err := decodeItems(what, data)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range items {
		if p, ok := decodePartition(what, o); ok {
			partitions = append(partitions, p)
		} else {
			bad++
		}
	}
	return partitions, bad, nil
}

// Reassignment is the replicas that a partition is to have.
type Reassignment struct {
	TopicPartition
	Replicas []int32 `json:"replicas"`
}

type reassignNode struct {
	Version    int            `json:"version"`
	Partitions []Reassignment `json:"partitions"`
}

// EncodeReassignments writes what /admin/reassign_partitions holds.
func EncodeReassignments(all []Reassignment) []byte {
	return encode(reassignNode{1, append([]Reassignment{}, all...)})
}

// DecodeReassignments reads it. A partition that is named again takes the later replicas. What makes no sense is left out, and
// given in bad.
func DecodeReassignments(data []byte) (all []Reassignment, bad int, err error) {
	const what = "reassignment"
	items, err := decodeItems(what, data)
	if err != nil {
		return nil, 0, err
	}
	at := map[TopicPartition]int{}
	for _, o := range items {
		p, ok := decodePartition(what, o)
		replicas, err := member[[]int32](o, what, "replicas")
		for _, id := range replicas {
			ok = ok && id >= 0
		}
		if !ok || err != nil || len(replicas) == 0 {
			bad++
			continue
		}
		if i, again := at[p]; again {
			all[i].Replicas = replicas
			continue
		}
		at[p] = len(all)
		all = append(all, Reassignment{p, replicas})
	}
	return all, bad, nil
}

// decodeItems reads {"version":1,"partitions":[{…},…]}.
func decodeItems(what string, data []byte) ([]object, error) {
	o, err := decode(what, data)
	if err != nil {
		return nil, err
	}
	return member[[]object](o, what, "partitions")
}

func decodePartition(what string, o object) (p TopicPartition, ok bool) {
	topic, err := member[string](o, what, "topic")
	if err != nil {
		return p, false
	}
	n, err := member[int64](o, what, "partition")
	return TopicPartition{topic, int32(n)}, err == nil && topic != "" && nonNegative(n)
}

type dirEventNode struct {
	Version int   `json:"version"`
	Broker  int32 `json:"broker"`
	Event   int   `json:"event"`
}

// dirFailure is the one event that there is: a log directory failed.
const dirFailure = 1

// EncodeDirEvent writes what a node below /log_dir_event_notification holds.
func EncodeDirEvent(broker int32) []byte { return encode(dirEventNode{1, broker, dirFailure}) }

// DecodeDirEvent reads which broker it is about.
func DecodeDirEvent(data []byte) (broker int32, err error) {
	const what = "log directory event"
	o, err := decode(what, data)
	if err != nil {
		return 0, err
	}
	if broker, err = member[int32](o, what, "broker"); err == nil && broker < 0 {
		err = fmt.Errorf("%s: %w: broker %d", what, ErrMalformed, broker)
	}
	return broker, err
}
