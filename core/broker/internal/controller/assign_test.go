package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"
)

// TestAssignAsKafka compares with the two examples of Kafka's AdminUtils: five brokers without racks, six in three.
func TestAssignAsKafka(t *testing.T) {
	plain := []candidate{{4, ""}, {2, ""}, {0, ""}, {1, ""}, {3, ""}}
	racks := []candidate{{0, "rack1"}, {1, "rack3"}, {2, "rack3"}, {3, "rack2"}, {4, "rack2"}, {5, "rack1"}}
	for _, tc := range []struct {
		brokers []candidate
		want    string
	}{
		{plain, "[0 1 2] [1 2 3] [2 3 4] [3 4 0] [4 0 1] [0 2 3] [1 3 4] [2 4 0] [3 0 1] [4 1 2]"},
		{racks, "[0 3 1] [3 1 5] [1 5 4] [5 4 2] [4 2 0] [2 0 3] [0 4 2] [3 2 0]"},
	} {
		got, err := assign(tc.brokers, 0, len(strings.Fields(tc.want))/3, 3, 0, 0)
		require.NoError(t, err)
		var lists []string
		for _, a := range got {
			lists = append(lists, fmt.Sprint(a.Replicas))
		}
		require.Equal(t, tc.want, strings.Join(lists, " "))
	}
}

func TestAssignSpreads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var brokers []candidate
		withRacks := rapid.Bool().Draw(t, "racks")
		byRack := map[string]bool{}
		for i := range rapid.IntRange(1, 12).Draw(t, "brokers") {
			b := candidate{id: int32(i * 3)}
			if withRacks {
				b.rack = fmt.Sprintf("r%d", rapid.IntRange(0, 3).Draw(t, "rack"))
				byRack[b.rack] = true
			}
			brokers = append(brokers, b)
		}
		factor := rapid.IntRange(1, len(brokers)).Draw(t, "factor")
		first, n := rapid.IntRange(0, 20).Draw(t, "first"), rapid.IntRange(1, 50).Draw(t, "partitions")
		at := rapid.IntRange(0, len(brokers)-1)
		got, err := assign(brokers, first, n, factor, at.Draw(t, "start"), at.Draw(t, "shift"))
		require.NoError(t, err)
		require.Len(t, got, n)
		leads := map[int32]int{}
		for _, a := range got {
			require.Len(t, a.Replicas, factor)
			require.False(t, repeats(a.Replicas))
			leads[a.Replicas[0]]++
			used := map[string]bool{}
			for _, id := range a.Replicas {
				used[brokers[slices.IndexFunc(brokers, func(b candidate) bool { return b.id == id })].rack] = true
			}
			if withRacks {
				require.Len(t, used, min(factor, len(byRack)), "as many racks as can be")
			}
		}
		for _, b := range brokers {
			require.InDelta(t, float64(n)/float64(len(brokers)), leads[b.id], 1, "leaders")
		}
	})
}

func TestAssignRefuses(t *testing.T) {
	brokers := []candidate{{1, ""}}
	for _, tc := range []struct {
		n, factor int
		want      *kerr.Error
	}{{0, 1, kerr.InvalidPartitions}, {-2, 1, kerr.InvalidPartitions}, {1, 0, kerr.InvalidReplicationFactor}, {1, 2, kerr.InvalidReplicationFactor}, {1, -2, kerr.InvalidReplicationFactor}} {
		_, err := assign(brokers, 0, tc.n, tc.factor, 0, 0)
		require.ErrorIs(t, err, tc.want)
	}
	_, err := assign(nil, 0, 1, 1, 0, 0)
	require.ErrorIs(t, err, kerr.InvalidReplicationFactor, "nobody is alive")
}

// What one request may ask for has an end: not even to refuse it may it cost all memory, or hold the controller up.
func TestRequestsAreBounded(t *testing.T) {
	s := newSim(t, 0, 1)
	s.create("a", []int32{0})
	topics := func(counts ...int32) []error {
		c := &CreateTopics{ValidateOnly: true}
		for i, n := range counts {
			c.Topics = append(c.Topics, NewTopic{Name: fmt.Sprint("t", i), Partitions: n, ReplicationFactor: 1})
		}
		s.run(c)
		errs := make([]error, len(counts))
		for i := range errs {
			errs[i] = c.Results[i].Err
		}
		return errs
	}
	require.ErrorIs(t, topics(maxPartitions + 1)[0], kerr.InvalidPartitions)
	errs := topics(maxPartitions-2, 2, 1)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], kerr.InvalidPartitions, "all together are too many")
	grow := &CreatePartitions{ValidateOnly: true, Topics: []MorePartitions{{Topic: "a", Count: maxPartitions}, {Topic: "a", Count: 3}}}
	s.run(grow)
	require.NoError(t, grow.Results[0])
	require.ErrorIs(t, grow.Results[1], kerr.InvalidPartitions)

	many := make([]int32, maxReplicas+1)
	for i := range many {
		many[i] = int32(i)
	}
	byHand := func(replicas []int32) error {
		c := &CreateTopics{ValidateOnly: true, Topics: []NewTopic{{Name: "m", Partitions: -1, ReplicationFactor: -1, Manual: []ManualPartition{{0, replicas}}}}}
		s.run(c)
		return c.Results[0].Err
	}
	require.NoError(t, byHand(many[1:]))
	require.ErrorIs(t, byHand(many), kerr.InvalidReplicaAssignment)
	move := &AlterReassignments{Partitions: []Reassignment{{PartitionID{"a", 0}, many}}}
	s.run(move)
	require.ErrorContains(t, move.Results[0], "more than 1000")
}

// TestNames has the names of case A16: what passes never leads out of a directory, and fits one.
func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "A.b_c-9": true, "...": true, "-": true, strings.Repeat("a", 249): true,
		"": false, ".": false, "..": false, "../x": false, "a/b": false, "a b": false, "a\x00b": false, "bäd": false, strings.Repeat("a", 250): false, "a\n": false, "a\\b": false, "a:b": false,
	} {
		if err := CheckTopicName(name); ok {
			require.NoError(t, err, "%q", name)
		} else {
			require.ErrorIs(t, err, kerr.InvalidTopicException, "%q", name)
		}
	}
}
