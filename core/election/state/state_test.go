package state

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/election"
)

func lines(t require.TestingT, s *State) (all []string) {
	s.Dump(func(o Op) bool {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		all = append(all, string(text))
		return true
	})
	return all
}

func applyAll(t require.TestingT, s *State, ops []Op) {
	for i := range ops {
		require.NoError(t, s.Apply(&ops[i]))
	}
}

// TestFormat pins the JSON of each operation, which files hold.
func TestFormat(t *testing.T) {
	s := New()
	applyAll(t, s, []Op{{ClusterID: "c"}, {ControllerEpoch: 3}, {BrokerEpoch: 4}})
	ops, id, err := s.NewBrokerID()
	require.NoError(t, err)
	require.Equal(t, int32(1001), id)
	applyAll(t, s, ops)
	ops, block, err := s.ProducerIDs(1, 500)
	require.NoError(t, err)
	require.Equal(t, election.ProducerIDBlock{First: 500, Count: 1000}, block)
	applyAll(t, s, ops)
	ops, _ = s.CreateTopics([]election.NewTopic{{Name: "a", ID: election.TopicID{1}, Config: map[string]string{"k": "v"},
		Partitions: []election.Assignment{{Replicas: []int32{1, 2}, Adding: []int32{2}, Removing: []int32{1}}, {Replicas: []int32{2}}}}})
	applyAll(t, s, ops)
	ops, _ = s.UpdatePartitions([]election.PartitionUpdate{{Topic: "a", Partition: 1, State: election.PartitionState{
		Leader: 2, LeaderEpoch: 5, ISR: []int32{2}, ControllerEpoch: 3, Recovering: true, PartitionEpoch: -1}}})
	applyAll(t, s, ops)
	ops, _ = s.MarkDeleted([]string{"a"})
	applyAll(t, s, ops)
	ops, _ = s.SetConfigs([]election.Config{{Entity: election.Entity{Kind: election.BrokerEntity}, Values: map[string]string{"x": "y"}}})
	applyAll(t, s, ops)
	require.Equal(t, []string{
		`{"cluster_id":"c"}`, `{"controller_epoch":3}`, `{"broker_epoch":4}`, `{"last_broker_id":1001}`, `{"next_producer_id":1500}`, `{"config_version":2}`,
		`{"topic":{"name":"a","id":"AQAAAAAAAAAAAAAAAAAAAA","partitions":[{"replicas":[1,2],"adding":[2],"removing":[1]},{"replicas":[2]}]}}`,
		`{"state":{"topic":"a","partition":1,"leader":2,"leader_epoch":5,"isr":[2],"controller_epoch":3,"recovering":true,"partition_epoch":0}}`,
		`{"deleting":"a"}`,
		`{"config":{"kind":"topic","name":"a","values":{"k":"v"},"version":1}}`,
		`{"config":{"kind":"broker","name":"","values":{"x":"y"},"version":2}}`,
	}, lines(t, s))
	ops, _ = s.RemoveTopics([]string{"a"})
	require.Equal(t, []Op{{Removed: "a"}}, ops)
}

// TestRefused applies what doesn't fit; the state stays as it was.
func TestRefused(t *testing.T) {
	s := New()
	ops, _ := s.CreateTopics([]election.NewTopic{{Name: "a", ID: election.TopicID{1}, Partitions: make([]election.Assignment, 2)}})
	applyAll(t, s, append(ops, Op{ControllerEpoch: 5}))
	ops, _ = s.UpdatePartitions([]election.PartitionUpdate{{Topic: "a", State: election.PartitionState{PartitionEpoch: -1}}})
	applyAll(t, s, ops)
	before := lines(t, s)
	one := make([]AssignmentOp, 1)
	for name, o := range map[string]Op{
		"nothing":                       {},
		"an epoch that falls":           {ControllerEpoch: 4},
		"an epoch that stays":           {ControllerEpoch: 5},
		"a negative epoch":              {BrokerEpoch: -1},
		"a topic without a name":        {Topic: &TopicOp{ID: EncodeID(election.TopicID{2}), Partitions: one}},
		"a topic without an id":         {Topic: &TopicOp{Name: "b", Partitions: one}},
		"a topic with an id of zeros":   {Topic: &TopicOp{Name: "b", ID: EncodeID(election.TopicID{}), Partitions: one}},
		"a topic without partitions":    {Topic: &TopicOp{Name: "b", ID: EncodeID(election.TopicID{2})}},
		"a topic that loses partitions": {Topic: &TopicOp{Name: "a", ID: EncodeID(election.TopicID{1}), Partitions: one}},
		"a topic that changes its id":   {Topic: &TopicOp{Name: "a", ID: EncodeID(election.TopicID{2}), Partitions: make([]AssignmentOp, 2)}},
		"a state of no topic":           {State: &StateOp{Topic: "b"}},
		"a state of no partition":       {State: &StateOp{Topic: "a", Partition: 2}},
		"a state of a negative one":     {State: &StateOp{Topic: "a", Partition: -1}},
		"a partition epoch that stays":  {State: &StateOp{Topic: "a"}},
		"a negative partition epoch":    {State: &StateOp{Topic: "a", Partition: 1, PartitionEpoch: -1}},
		"a mark on nothing":             {Deleting: "b"},
		"a config of nothing":           {Config: &ConfigOp{Kind: "topic", Name: "b", Version: 1}},
		"a config of something odd":     {Config: &ConfigOp{Kind: "user", Name: "a", Version: 1}},
		"a config without version":      {Config: &ConfigOp{Kind: "topic", Name: "a"}},
	} {
		require.ErrorIs(t, s.Apply(&o), ErrOp, name)
		require.Equal(t, before, lines(t, s), name)
	}
}

// TestNothingLeft comes to the end of every number that only rises: what would begin anew is refused.
func TestNothingLeft(t *testing.T) {
	s := New()
	ops, _ := s.CreateTopics([]election.NewTopic{{Name: "a", ID: election.TopicID{1}, Partitions: make([]election.Assignment, 1)}})
	applyAll(t, s, append(ops, Op{ControllerEpoch: math.MaxInt32}, Op{BrokerEpoch: math.MaxInt64}, Op{LastBrokerID: math.MaxInt32},
		Op{NextProducerID: math.MaxInt64 - 5}, Op{ConfigVersion: math.MaxInt64}, Op{State: &StateOp{Topic: "a", PartitionEpoch: math.MaxInt32}}))
	_, _, err := s.NewControllerEpoch()
	require.ErrorIs(t, err, election.ErrUnavailable)
	_, _, err = s.NewBrokerEpoch()
	require.ErrorIs(t, err, election.ErrUnavailable)
	_, _, err = s.NewBrokerID()
	require.ErrorIs(t, err, election.ErrUnavailable)
	_, _, err = s.ProducerIDs(1, 0)
	require.ErrorIs(t, err, election.ErrUnavailable)
	ops, results := s.UpdatePartitions([]election.PartitionUpdate{{Topic: "a", State: election.PartitionState{PartitionEpoch: math.MaxInt32}}})
	require.ErrorIs(t, results[0].Err, election.ErrInvalid)
	require.Empty(t, ops)
	values := map[string]string{"k": "v"}
	ops, errs := s.SetConfigs([]election.Config{{Entity: election.Entity{Kind: election.BrokerEntity}, Values: values}})
	require.ErrorIs(t, errs[0], election.ErrInvalid)
	require.Empty(t, ops)
	ops, errs = s.CreateTopics([]election.NewTopic{{Name: "b", ID: election.TopicID{2}, Partitions: make([]election.Assignment, 1), Config: values}})
	require.ErrorIs(t, errs[0], election.ErrInvalid)
	require.Empty(t, ops)
}

// TestDump plays random writes: what is planned can be applied, and a dump leads to the same state.
func TestDump(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		name := rapid.SampledFrom([]string{"a", "b", "c", ""})
		numbers := rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 3)
		assignment := rapid.Custom(func(t *rapid.T) []election.Assignment {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) election.Assignment {
				return election.Assignment{Replicas: numbers.Draw(t, "replicas"), Adding: numbers.Draw(t, "adding")}
			}), 0, 3).Draw(t, "partitions")
		})
		id := rapid.Custom(func(t *rapid.T) election.TopicID { return election.TopicID{rapid.ByteRange(0, 2).Draw(t, "id")} })
		values := rapid.MapOfN(name, name, 0, 2)
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			var ops []Op
			switch rapid.IntRange(0, 8).Draw(t, "write") {
			case 0:
				ops, _ = s.CreateTopics([]election.NewTopic{
					{Name: name.Draw(t, "name"), ID: id.Draw(t, "id"), Partitions: assignment.Draw(t, "a"), Config: values.Draw(t, "config")},
					{Name: name.Draw(t, "name"), ID: id.Draw(t, "id"), Partitions: assignment.Draw(t, "a")}})
			case 1:
				ops, _ = s.SetAssignments([]election.TopicAssignment{
					{Topic: name.Draw(t, "name"), ID: id.Draw(t, "id"), Partitions: assignment.Draw(t, "a")},
					{Topic: name.Draw(t, "name"), ID: id.Draw(t, "id"), Partitions: assignment.Draw(t, "a")}})
			case 2:
				var updates []election.PartitionUpdate
				for range 3 {
					updates = append(updates, election.PartitionUpdate{Topic: name.Draw(t, "name"), Partition: rapid.Int32Range(-1, 3).Draw(t, "p"),
						State: election.PartitionState{ISR: numbers.Draw(t, "isr"), PartitionEpoch: rapid.Int32Range(-2, 3).Draw(t, "epoch")}})
				}
				ops, _ = s.UpdatePartitions(updates)
			case 3:
				ops, _ = s.MarkDeleted([]string{name.Draw(t, "name"), name.Draw(t, "name")})
			case 4:
				ops, _ = s.RemoveTopics([]string{name.Draw(t, "name")})
			case 5:
				ops = s.Unmark([]string{name.Draw(t, "name"), name.Draw(t, "name")})
			case 6:
				e := election.Entity{Kind: election.EntityKind(rapid.Int8Range(0, 3).Draw(t, "kind")), Name: name.Draw(t, "name")}
				ops, _ = s.SetConfigs([]election.Config{{Entity: e, Values: values.Draw(t, "config"), Version: s.Configs[e].Version}})
			case 7:
				ops, _, _ = s.ProducerIDs(rapid.Int32Range(-1, 1).Draw(t, "broker"), rapid.Int64Min(-1).Draw(t, "from"))
			case 8:
				ops, _, _ = s.Identify(name.Draw(t, "id"))
			}
			applyAll(t, s, ops)
		}
		again := New()
		s.Dump(func(o Op) bool {
			require.NoError(t, again.Apply(&o))
			return true
		})
		require.Equal(t, lines(t, s), lines(t, again))
		require.Equal(t, slices.Sorted(maps.Keys(s.Topics)), slices.Sorted(maps.Keys(again.Topics)))
	})
}
