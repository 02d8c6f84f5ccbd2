package groups

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

func TestLag(t *testing.T) {
	for _, test := range []struct {
		name  string
		of    Offset
		lag   int64
		known bool
	}{
		{"behind", Offset{Committed: 3, End: 10}, 7, true},
		{"up to date", Offset{Committed: 10, End: 10}, 0, true},
		{"from the start", Offset{Committed: 0, End: 10}, 10, true},
		{"the log is shorter than the commit", Offset{Committed: 12, End: 10}, 0, true},
		{"nothing is committed", Offset{Committed: Unknown, End: 10}, 0, false},
		{"the end isn't known", Offset{Committed: 3, End: Unknown, Err: kerr.UnknownTopicOrPartition}, 0, false},
		{"the commit can't be read", Offset{Committed: 3, End: 10, Err: kerr.UnstableOffsetCommit}, 0, false},
	} {
		lag, known := test.of.Lag()
		assert.Equal(t, test.lag, lag, test.name)
		assert.Equal(t, test.known, known, test.name)
	}
}

func TestTotal(t *testing.T) {
	g := Group{Offsets: []Offset{
		{Committed: 3, End: 10}, {Committed: 12, End: 10}, {Committed: Unknown, End: 100}, {Committed: 3, End: Unknown, Err: kerr.NotLeaderForPartition},
		{Committed: 0, End: 5},
	}}
	assert.Equal(t, Total{Lag: 12, Partitions: 5, Uncommitted: 1, Unread: 1}, g.Total())
	assert.Equal(t, Total{}, Group{}.Total())
}

func TestOffsetsOfAGroup(t *testing.T) {
	g := Group{Members: []Member{
		{ID: "one", Assigned: map[string][]int32{"b": {1, 0}}},
		{ID: "two", Assigned: map[string][]int32{"b": {1}, "a": {2}}},
		{ID: "three"},
	}}
	type row struct {
		topic     string
		partition int32
		committed int64
		member    string
	}
	var rows []row
	for _, o := range g.offsets([]Offset{{Topic: "c", Committed: 5}, {Topic: "b", Partition: 1, Committed: 7}, {Topic: "b", Partition: 3, Committed: 9}}) {
		r := row{o.Topic, o.Partition, o.Committed, ""}
		if o.Member != nil {
			r.member = o.Member.ID
		}
		rows = append(rows, r)
	}
	assert.Equal(t, []row{{"a", 2, Unknown, "two"}, {"b", 0, Unknown, "one"}, {"b", 1, 7, "one"}, {"b", 3, 9, ""}, {"c", 0, 5, ""}}, rows)
}

func TestGroupsOfKIP848(t *testing.T) {
	instance := "i"
	var assigned kadm.TopicsSet
	assigned.Add("t", 4, 2)
	g := fromConsumer(kadm.DescribedConsumerGroup{
		Group: "g", State: "Stable", AssignorName: "uniform", Coordinator: kadm.BrokerDetail{NodeID: 7},
		Members: []kadm.ConsumerGroupMember{{MemberID: "m", InstanceID: &instance, ClientID: "c", ClientHost: "/h", Assignment: assigned}, {MemberID: "n"}},
	})
	assert.Equal(t, Group{
		Name: "g", State: "Stable", Type: "consumer", Protocol: "consumer", Assignor: "uniform", Coordinator: 7,
		Members: []Member{{ID: "m", Instance: "i", Client: "c", Host: "/h", Assigned: map[string][]int32{"t": {2, 4}}}, {ID: "n"}},
	}, g)
	for kind, want := range map[string]bool{"": true, "classic": true, "Consumer": true, "share": false, "streams": false} {
		assert.Equal(t, want, Consumes(kadm.ListedGroup{GroupType: kind}), kind)
	}
}

func TestListing(t *testing.T) {
	broken := errors.New("broken")
	offsets := kadm.ListedOffsets{
		"there": {0: {Offset: 5}, 1: {Offset: Unknown}, 2: {Offset: Unknown, Err: kerr.LeaderNotAvailable}},
		"gone":  {-1: {Partition: -1, Err: kerr.UnknownTopicOrPartition}},
	}
	for _, test := range []struct {
		topic     string
		partition int32
		all, some error // with answers of all brokers, and with those of some
	}{
		{"there", 0, nil, nil},
		{"there", 1, errUnlisted, errUnlisted},
		{"there", 2, kerr.LeaderNotAvailable, kerr.LeaderNotAvailable},
		{"there", 3, kerr.UnknownTopicOrPartition, broken},
		{"gone", 0, kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition},
		{"silent", 0, errUnlisted, broken},
	} {
		for err, want := range map[error]error{errUnlisted: test.all, broken: test.some} {
			offset, got := listing{offsets, err}.of(test.topic, test.partition)
			require.Equal(t, want, got, "%s-%d", test.topic, test.partition)
			if want == nil {
				assert.EqualValues(t, 5, offset)
			} else {
				assert.EqualValues(t, Unknown, offset)
			}
		}
	}
}

func TestListingNamesTheCause(t *testing.T) {
	asked := func(topic string, n int32) *kmsg.ListOffsetsRequest {
		return &kmsg.ListOffsetsRequest{Topics: []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Partition: n}}}}}
	}
	shards := &kadm.ShardErrors{Errs: []kadm.ShardError{
		{Req: &kmsg.MetadataRequest{}, Err: kerr.BrokerNotAvailable}, {Req: asked("t", 0), Err: kerr.LeaderNotAvailable}, {Req: asked("t", 1), Err: kerr.NotLeaderForPartition},
	}}
	l := listing{kadm.ListedOffsets{"t": {2: {Offset: 1}}}, shards}
	for n, want := range []error{kerr.LeaderNotAvailable, kerr.NotLeaderForPartition, nil, shards} {
		_, err := l.of("t", int32(n))
		assert.Equal(t, want, err, n)
	}
}

func TestSelect(t *testing.T) {
	three := kadm.PartitionDetails{0: {}, 1: {Partition: 1}, 2: {Partition: 2}}
	topics := kadm.TopicDetails{"a": {Topic: "a", Partitions: three}, "b": {Topic: "b", Partitions: three}}
	withGone := kadm.TopicDetails{"a": topics["a"], "gone": {Topic: "gone", Err: kerr.UnknownTopicOrPartition}}
	commit := func(topic string, n int32, at int64) Offset {
		return Offset{Topic: topic, Partition: n, Committed: at, End: Unknown}
	}
	for _, test := range []struct {
		name      string
		topics    kadm.TopicDetails
		committed []Offset
		asked     map[string][]int32
		of, gone  []Offset
		err       string
	}{
		{name: "all with a commit", topics: topics, committed: []Offset{commit("a", 1, 5), commit("b", 0, 6)}, of: []Offset{commit("a", 1, 5), commit("b", 0, 6)}},
		{
			name: "topic deleted, partitions deleted", topics: withGone, committed: []Offset{commit("a", 1, 5), commit("a", 3, 7), commit("gone", 0, 6), commit("unheard", 0, 6)},
			of: []Offset{commit("a", 1, 5)}, gone: []Offset{commit("a", 3, 7), commit("gone", 0, 6), commit("unheard", 0, 6)},
		},
		{
			name: "asked for", topics: topics, committed: []Offset{commit("b", 1, 5), commit("a", 0, 6)}, asked: map[string][]int32{"b": nil, "a": {2}},
			of: []Offset{commit("a", 2, Unknown), commit("b", 0, Unknown), commit("b", 1, 5), commit("b", 2, Unknown)},
		},
		{name: "asked for one that isn't there", topics: topics, asked: map[string][]int32{"b": {1, 3}}, err: "topic b has no partition 3, only 3 partitions"},
		{name: "asked for a deleted topic", topics: withGone, asked: map[string][]int32{"gone": nil}, err: "topic gone: UNKNOWN_TOPIC_OR_PARTITION"},
		{name: "asked for one that nobody mentions", topics: topics, asked: map[string][]int32{"a": nil, "unheard": nil}, err: "topic unheard: UNKNOWN_TOPIC_OR_PARTITION"},
		{name: "a topic that can't be read", topics: kadm.TopicDetails{"a": {Topic: "a", Err: kerr.TopicAuthorizationFailed}}, committed: []Offset{commit("a", 1, 5)}, err: "topic a: TOPIC_AUTHORIZATION_FAILED"},
		{name: "a commit that can't be read", topics: topics, committed: []Offset{{Topic: "a", Err: kerr.UnstableOffsetCommit}}, err: "what is committed in a-0 isn't known"},
	} {
		of, gone, err := Select(test.topics, test.committed, test.asked)
		assert.Equal(t, test.of, of, test.name)
		assert.Equal(t, test.gone, gone, test.name)
		if test.err == "" {
			assert.NoError(t, err, test.name)
		} else {
			assert.ErrorContains(t, err, test.err, test.name)
		}
	}
}

func TestPlan(t *testing.T) {
	log := Bound{Topic: "t", Committed: 20, Start: 10, End: 50, AtTime: 30}
	for _, test := range []struct {
		name     string
		target   Target
		bound    Bound
		to       int64
		adjusted bool
	}{
		{"start", Target{Kind: ToStart}, log, 10, false},
		{"end", Target{Kind: ToEnd}, log, 50, false},
		{"offset", Target{Kind: ToOffset, Count: 42}, log, 42, false},
		{"offset at the end", Target{Kind: ToOffset, Count: 50}, log, 50, false},
		{"offset before the log", Target{Kind: ToOffset, Count: 9}, log, 10, true},
		{"offset behind the log", Target{Kind: ToOffset, Count: math.MaxInt64}, log, 50, true},
		{"time", Target{Kind: ToTime}, log, 30, false},
		{"time, records deleted meanwhile", Target{Kind: ToTime}, Bound{Start: 35, End: 50, AtTime: 30}, 35, true},
		{"shift on", Target{Kind: ShiftBy, Count: 5}, log, 25, false},
		{"shift back", Target{Kind: ShiftBy, Count: -10}, log, 10, false},
		{"shift too far back", Target{Kind: ShiftBy, Count: -11}, log, 10, true},
		{"shift as far as numbers go", Target{Kind: ShiftBy, Count: math.MaxInt64}, log, 50, true},
		{"shift back as far as numbers go", Target{Kind: ShiftBy, Count: math.MinInt64}, log, 10, true},
		{"shift by nothing a commit behind the log", Target{Kind: ShiftBy}, Bound{Committed: 60, Start: 10, End: 50}, 50, true},
		{"without a commit", Target{Kind: ToStart}, Bound{Committed: Unknown, Start: 10, End: 50}, 10, false},
	} {
		moves, err := test.target.Plan([]Bound{test.bound})
		require.NoError(t, err, test.name)
		assert.Equal(t, []Move{{test.bound, test.to, test.adjusted}}, moves, test.name)
	}
	moves, err := Target{Kind: ShiftBy, Count: 1}.Plan([]Bound{log, {Topic: "t", Partition: 3, Committed: Unknown, End: 5}})
	require.ErrorContains(t, err, "t-3 has no committed offset")
	assert.Nil(t, moves, "all or none")
}

func TestPlansStayInTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bound{
			Committed: rapid.Int64Min(0).Draw(t, "committed"),
			Start:     rapid.Int64Range(0, 1<<40).Draw(t, "start"),
			AtTime:    rapid.Int64Min(0).Draw(t, "at"),
		}
		b.End = b.Start + rapid.Int64Range(0, 1<<40).Draw(t, "size")
		target := Target{Kind: rapid.SampledFrom([]Kind{ToStart, ToEnd, ToOffset, ToTime, ShiftBy}).Draw(t, "kind"), Count: rapid.Int64().Draw(t, "count")}
		moves, err := target.Plan([]Bound{b})
		require.NoError(t, err)
		require.GreaterOrEqual(t, moves[0].To, b.Start)
		require.LessOrEqual(t, moves[0].To, b.End)
	})
}
