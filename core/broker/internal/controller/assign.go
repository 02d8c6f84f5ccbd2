package controller

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/election"
)

// candidate is a broker that may get replicas.
type candidate struct {
	id   int32
	rack string
}

// assign spreads partitions first to first+n-1 over brokers as Kafka does: leaders round robin from a start, the other
// replicas of a partition shifted by a distance that grows with each round, racks alternating when every broker names one.
//
// start and shift are where to begin, 0 to len(brokers)-1; the caller draws them, or continues those of a topic that grows.
func assign(brokers []candidate, first, n int, factor int, start, shift int) ([]election.Assignment, error) {
	if n <= 0 {
		return nil, refuse(kerr.InvalidPartitions, "Number of partitions must be larger than 0")
	}
	if factor <= 0 {
		return nil, refuse(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0")
	}
	if factor > len(brokers) {
		return nil, refuse(kerr.InvalidReplicationFactor, "Replication factor: %d larger than available brokers: %d", factor, len(brokers))
	}
	order, racks := arrange(brokers)
	all := make([]election.Assignment, 0, n)
	for p := first; p < first+n; p++ {
		if p > 0 && p%len(order) == 0 {
			shift++
		}
		leader := (p + start) % len(order)
		replicas := []int32{order[leader].id}
		usedRacks := map[string]bool{order[leader].rack: true}
		for step := 0; len(replicas) < factor; step++ {
			b := order[follower(leader, shift*max(racks, 1), step, len(order))]
			if slices.Contains(replicas, b.id) || racks > 1 && usedRacks[b.rack] && len(usedRacks) < racks {
				continue // each rack gets one before any gets two
			}
			replicas = append(replicas, b.id)
			usedRacks[b.rack] = true
		}
		all = append(all, election.Assignment{Replicas: replicas})
	}
	return all, nil
}

// follower is the place of a partition's next replica: never the leader's, and each other place once in len-1 steps.
func follower(leader, shift, step, brokers int) int {
	if brokers == 1 {
		return 0
	}
	return (leader + 1 + (shift+step)%(brokers-1)) % brokers
}

// arrange orders brokers by id, or, when each has a rack, with racks alternating. It returns the number of racks, 0 when they
// don't count.
func arrange(brokers []candidate) ([]candidate, int) {
	order := slices.Clone(brokers)
	slices.SortFunc(order, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	byRack := map[string][]candidate{}
	var racks []string
	for _, b := range order {
		if b.rack == "" {
			return order, 0
		}
		if byRack[b.rack] == nil {
			racks = append(racks, b.rack)
		}
		byRack[b.rack] = append(byRack[b.rack], b)
	}
	slices.Sort(racks)
	for i, n := 0, 0; n < len(order); i++ {
		rack := racks[i%len(racks)]
		if turn := i / len(racks); turn < len(byRack[rack]) {
			order[n] = byRack[rack][turn]
			n++
		}
	}
	return order, len(racks)
}

// maxReplicas bounds the replicas of a partition, where somebody lists them: they are compared with one another.
const maxReplicas = 1000

// checkManual checks an assignment that somebody made by hand, for partitions that begin with first. Brokers needn't be
// alive, or exist: their partitions have no leader until they come.
func checkManual(first int, assignments [][]int32) ([]election.Assignment, error) {
	all := make([]election.Assignment, 0, len(assignments))
	for i, replicas := range assignments {
		if len(replicas) != len(assignments[0]) {
			return nil, refuse(kerr.InvalidReplicaAssignment, "All partitions should have the same number of replicas")
		}
		if len(replicas) > maxReplicas {
			return nil, refuse(kerr.InvalidReplicaAssignment, "Partition %d has %d replicas, more than %d", first+i, len(replicas), maxReplicas)
		}
		for at, id := range replicas {
			if slices.Contains(replicas[:at], id) {
				return nil, refuse(kerr.InvalidReplicaAssignment, "Duplicate replica assignment found: partition %d has broker %d twice", first+i, id)
			}
		}
		all = append(all, election.Assignment{Replicas: slices.Clone(replicas)})
	}
	return all, nil
}
