package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
)

// admin is a broker that has a cluster of its own, and no logs.
type admin struct {
	mem    *electiontest.Memory
	member election.Coordination
	deps   Deps
	server *wire.Server
}

// newAdmin starts broker 1 with listeners PLAINTEXT and INTERNAL; change may change what its handlers work with.
func newAdmin(t testing.TB, static kafka.Values, change func(*Deps)) *admin {
	ctx := context.Background()
	a := &admin{mem: electiontest.NewMemory()}
	a.member = a.mem.Member()
	require.NoError(t, a.member.Start(ctx))
	r, err := a.member.Membership().Register(ctx, election.Broker{ID: 1, Rack: "r1", Endpoints: []election.Endpoint{
		{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "outside", Port: 9092}, {Listener: "INTERNAL", Protocol: "PLAINTEXT", Host: "inside", Port: 9093}}})
	require.NoError(t, err)
	cache := metadata.NewCache(r.Epoch)
	configs := metadata.NewConfigs(metadata.ConfigOptions{Metadata: a.member.Metadata(), BrokerID: 1, Static: static})
	require.NoError(t, configs.Start(ctx))
	var ids atomic.Int32
	c := controller.New(controller.Options{
		Rules: controller.Rules{BrokerID: 1, InterBroker: "INTERNAL", Partitions: 2, ReplicationFactor: 1, DeleteTopics: static["delete.topic.enable"] != "false",
			Unclean: func(string) bool { return false }, CheckConfig: func(values map[string]string) error { return configs.Layers().CheckTopic(values) },
			Draw: func(int) int { return 0 }, NewID: func() election.TopicID { return election.TopicID{1, byte(ids.Add(1))} }},
		Election: a.member.Election(), Membership: a.member.Membership(), Metadata: a.member.Metadata(), Requests: a.member.Requests(),
		Pusher: &acceptingBroker{cache},
	})
	require.NoError(t, c.Start(ctx))
	t.Cleanup(func() {
		require.NoError(t, c.Stop(ctx))
		require.NoError(t, configs.Stop(ctx))
		require.NoError(t, a.member.Stop(ctx))
	})
	select {
	case <-c.Ready():
	case <-time.After(time.Minute):
		require.Fail(t, "no controller")
	}
	a.deps = Deps{Cluster: &Cluster{BrokerID: 1, ClusterID: "cluster", Metadata: cache, Configs: configs, Controller: c, Coordination: a.member,
		CreateTopics: createsHere(c)}}
	if change != nil {
		change(&a.deps)
	}
	a.server, err = wire.New(wire.Options{Handler: Handlers(a.deps), Listeners: []wire.Listener{
		{Name: "PLAINTEXT", Address: "127.0.0.1:0"}, {Name: "INTERNAL", Address: "127.0.0.1:0"}}})
	require.NoError(t, err)
	require.NoError(t, a.server.Listen(ctx))
	require.NoError(t, a.server.Start())
	t.Cleanup(func() { require.NoError(t, a.server.Stop(ctx)) })
	return a
}

// createsHere creates topics as the broker that is controller does.
func createsHere(c *controller.Controller) func(context.Context, []controller.NewTopic) ([]error, error) {
	return func(ctx context.Context, topics []controller.NewTopic) ([]error, error) {
		command := &controller.CreateTopics{Topics: topics}
		if err := c.Do(ctx, command); err != nil {
			return nil, err
		}
		results := make([]error, len(topics))
		for i := range results {
			results[i] = command.Results[i].Err
		}
		return results, nil
	}
}

// acceptingBroker is a pusher to a single broker, which does whatever it is told.
type acceptingBroker struct{ *metadata.Cache }

func (b *acceptingBroker) Push(_ int32, _ int64, req kmsg.Request) kmsg.Response {
	switch req := req.(type) {
	case *kmsg.UpdateMetadataRequest:
		return b.Update(req)
	case *kmsg.LeaderAndISRRequest:
		return acceptLeaders(req)
	case *kmsg.StopReplicaRequest:
		return acceptStops(req)
	}
	return nil
}

func (b *acceptingBroker) Drop() {}

func acceptLeaders(req *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	return req.ResponseKind().(*kmsg.LeaderAndISRResponse)
}

func acceptStops(req *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse {
	resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
	for _, topic := range req.Topics {
		for _, p := range topic.PartitionStates {
			resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: topic.Topic, Partition: p.Partition})
		}
	}
	return resp
}

// newTopic is a topic of a CreateTopics request.
func createOf(name string, partitions int32, factor int16, settings ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor
	for i := 0; i+1 < len(settings); i += 2 {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: settings[i], Value: &settings[i+1]})
	}
	return t
}

func create(c *client, version int16, topics ...kmsg.CreateTopicsRequestTopic) []kmsg.CreateTopicsResponseTopic {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 5000, topics
	return call[*kmsg.CreateTopicsResponse](c, version, req).Topics
}

func remove(c *client, version int16, names ...string) []int16 {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.TopicNames = 5000, names
	for _, n := range names {
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &n})
	}
	var codes []int16
	for _, t := range call[*kmsg.DeleteTopicsResponse](c, version, req).Topics {
		codes = append(codes, t.ErrorCode)
	}
	return codes
}

func describeTopics(c *client, version int16, names ...string) *kmsg.MetadataResponse {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, n := range names {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &n})
	}
	return call[*kmsg.MetadataResponse](c, version, req)
}

// TestTopicNames is case A16: what can't be a topic, and the longest name that can.
func TestTopicNames(t *testing.T) {
	c := connect(t, newAdmin(t, nil, nil).server)
	longest := strings.Repeat("a", 249)
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a b", "a\x00b", "bäd", longest + "a"} {
		require.Equal(t, int16(17), create(c, 7, createOf(name, 1, 1))[0].ErrorCode, "%q", name)
		require.Equal(t, int16(17), describeTopics(c, 12, name).Topics[0].ErrorCode, "%q", name)
	}
	for range 2 { // it can come again
		require.Zero(t, create(c, 7, createOf(longest, 1, 1))[0].ErrorCode)
		require.Zero(t, describeTopics(c, 12, longest).Topics[0].ErrorCode)
		require.Equal(t, []int16{0}, remove(c, 6, longest))
		require.Equal(t, int16(3), describeTopics(c, 12, longest).Topics[0].ErrorCode)
	}
}

// TestCreateTopicsArguments is case A17, in all versions.
func TestCreateTopicsArguments(t *testing.T) {
	by := func(parts ...kmsg.CreateTopicsRequestTopicReplicaAssignment) kmsg.CreateTopicsRequestTopic {
		topic := createOf("a", -1, -1)
		topic.ReplicaAssignment = parts
		return topic
	}
	part := func(n int32, replicas ...int32) kmsg.CreateTopicsRequestTopicReplicaAssignment {
		return kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: n, Replicas: replicas}
	}
	both := by(part(0, 1))
	both.NumPartitions = 1
	null := createOf("a", 1, 1, "retention.ms", "1")
	null.Configs[0].Value = nil
	cases := []struct {
		what  string
		topic kmsg.CreateTopicsRequestTopic
		code  int16
	}{
		{"no partitions", createOf("a", 0, 1), 37}, {"-2 partitions", createOf("a", -2, 1), 37}, {"no replicas", createOf("a", 1, 0), 38},
		{"more replicas than brokers", createOf("a", 1, 3), 38}, {"counts and assignment", both, 42}, {"a gap", by(part(0, 1), part(2, 1)), 39},
		{"a broker twice", by(part(0, 1, 1)), 39}, {"uneven", by(part(0, 1), part(1, 1, 2)), 39}, {"a negative partition", by(part(-1, 1)), -1},
		{"it exists", createOf("there", 1, 1), 36}, {"it differs in dots only", createOf("with_dot", 1, 1), 17},
		{"an unknown setting", createOf("a", 1, 1, "no.such", "1"), 40}, {"a bad setting", createOf("a", 1, 1, "retention.ms", "soon"), 40},
		{"a setting without value", null, 40}, {"settings that don't fit", createOf("a", 1, 1, "min.compaction.lag.ms", "9", "max.compaction.lag.ms", "1"), 40},
	}
	c := connect(t, newAdmin(t, nil, nil).server)
	require.Zero(t, create(c, 7, createOf("there", 1, 1))[0].ErrorCode)
	require.Zero(t, create(c, 7, createOf("with.dot", 1, 1))[0].ErrorCode)
	for v := range int16(8) {
		for _, tc := range cases {
			got := create(c, v, tc.topic, createOf("good", 3, 1, "retention.ms", "5", "retention.ms", "7"))
			require.Equal(t, tc.code, got[0].ErrorCode, "version %d: %s", v, tc.what)
			if v >= 1 {
				require.Equal(t, tc.code != -1, got[0].ErrorMessage != nil, "version %d: %s", v, tc.what)
			}
			require.Zero(t, got[1].ErrorCode, "one bad topic must not fail the others")
			if v >= 5 {
				require.Equal(t, int32(3), got[1].NumPartitions)
				at := slices.IndexFunc(got[1].Configs, func(c kmsg.CreateTopicsResponseTopicConfig) bool { return c.Name == "retention.ms" })
				require.Equal(t, "7", *got[1].Configs[at].Value, "the last one counts")
				require.Equal(t, int8(1), got[1].Configs[at].Source)
				require.Empty(t, got[0].Configs)
			}
			require.Equal(t, []int16{0}, remove(c, min(v, 6), "good"))
			require.Equal(t, int16(3), describeTopics(c, 9, "a").Topics[0].ErrorCode)
		}
		got := create(c, v, createOf("a", 1, 1), createOf("b", 1, 1), createOf("a", 1, 1))
		require.Equal(t, []int16{42, 0, 42}, []int16{got[0].ErrorCode, got[1].ErrorCode, got[2].ErrorCode}, "one name twice")
		require.Equal(t, []int16{0, 3}, remove(c, min(v, 6), "b", "a"))
		require.Zero(t, create(c, v, createOf("d", -1, -1))[0].ErrorCode)
		require.Len(t, describeTopics(c, 9, "d").Topics[0].Partitions, 2, "num.partitions")
		remove(c, 6, "d")
		if v >= 1 {
			req := kmsg.NewPtrCreateTopicsRequest()
			req.ValidateOnly, req.Topics = true, []kmsg.CreateTopicsRequestTopic{createOf("a", 1, 1), createOf("there", 1, 1)}
			dry := call[*kmsg.CreateTopicsResponse](c, v, req).Topics
			require.Equal(t, []int16{0, 36}, []int16{dry[0].ErrorCode, dry[1].ErrorCode})
			require.Equal(t, int16(3), describeTopics(c, 9, "a").Topics[0].ErrorCode, "only validated")
		}
	}
}

// TestTimeouts asks for what takes longer than the client waits.
func TestTimeouts(t *testing.T) {
	c := connect(t, newAdmin(t, nil, nil).server)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 0, []kmsg.CreateTopicsRequestTopic{createOf("a", 1, 1)}
	require.Equal(t, int16(7), call[*kmsg.CreateTopicsResponse](c, 7, req).Topics[0].ErrorCode)
	require.Zero(t, describeTopics(c, 9, "a").Topics[0].ErrorCode, "it is created all the same")

	absent := createOf("b", -1, -1) // a broker that may come one day
	absent.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: []int32{77}}}
	req.TimeoutMillis, req.Topics = 30, []kmsg.CreateTopicsRequestTopic{absent}
	require.Equal(t, int16(7), call[*kmsg.CreateTopicsResponse](c, 7, req).Topics[0].ErrorCode)

	more := kmsg.NewPtrCreatePartitionsRequest()
	more.TimeoutMillis, more.Topics = 0, []kmsg.CreatePartitionsRequestTopic{{Topic: "a", Count: 4}}
	require.Equal(t, int16(7), call[*kmsg.CreatePartitionsResponse](c, 3, more).Topics[0].ErrorCode)
	require.Len(t, describeTopics(c, 9, "a").Topics[0].Partitions, 4)

	del := kmsg.NewPtrDeleteTopicsRequest()
	del.TimeoutMillis, del.TopicNames = 0, []string{"a"}
	require.Equal(t, int16(7), call[*kmsg.DeleteTopicsResponse](c, 5, del).Topics[0].ErrorCode)
	require.Equal(t, int16(3), describeTopics(c, 9, "a").Topics[0].ErrorCode)
}

func TestDeleteTopics(t *testing.T) {
	a := newAdmin(t, nil, nil)
	c := connect(t, a.server)
	for _, name := range []string{"a", "b", "c", "d"} {
		create(c, 7, createOf(name, 1, 1))
	}
	require.Equal(t, []int16{0, 3, 0}, remove(c, 1, "a", "nothing", "a"))
	id := describeTopics(c, 12, "b").Topics[0].TopicID
	name := "c"
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 5000
	req.Topics = []kmsg.DeleteTopicsRequestTopic{{}, {Topic: &name, TopicID: id}, {TopicID: [16]byte{9}}, {TopicID: id}, {Topic: &name}, {TopicID: [16]byte{8}}, {TopicID: [16]byte{8}}}
	var codes []int16
	got := call[*kmsg.DeleteTopicsResponse](c, 6, req).Topics
	for _, t := range got {
		codes = append(codes, t.ErrorCode)
	}
	require.Equal(t, []int16{42, 42, 100, 0, 0, 42}, codes)
	require.Equal(t, "b", *got[3].Topic, "a topic by id is answered with its name")
	require.Len(t, describeTopics(c, 12).Topics, 1)

	disabled := connect(t, newAdmin(t, kafka.Values{"delete.topic.enable": "false"}, nil).server)
	create(disabled, 7, createOf("a", 1, 1))
	require.Equal(t, []int16{73}, remove(disabled, 6, "a"))
	require.Equal(t, []int16{42}, remove(disabled, 2, "a"), "before version 3")
}

// TestAdvertised is the part of case A29 that Metadata answers for: each client gets the addresses of its own listener.
func TestAdvertised(t *testing.T) {
	a := newAdmin(t, nil, nil)
	create(connect(t, a.server), 7, createOf("a", 1, 1))
	outside := connect(t, a.server)
	inside := *outside
	conn, err := dial(t, a.server, "INTERNAL")
	require.NoError(t, err)
	inside.Conn = conn
	for v := range int16(14) {
		for host, c := range map[string]*client{"outside": outside, "inside": &inside} {
			resp := describeTopics(c, v, "a")
			require.Len(t, resp.Brokers, 1)
			require.Equal(t, host, resp.Brokers[0].Host, "version %d", v)
			require.Equal(t, int32(1), resp.Topics[0].Partitions[0].Leader)
			if v >= 1 {
				require.Equal(t, "r1", *resp.Brokers[0].Rack)
				require.Equal(t, int32(1), resp.ControllerID)
			}
			if v >= 2 {
				require.Equal(t, "cluster", *resp.ClusterID)
			}
		}
	}
	// A leader that doesn't have the listener.
	_, err = a.member.Membership().Register(t.Context(), election.Broker{ID: 2, Endpoints: []election.Endpoint{{Listener: "INTERNAL", Protocol: "PLAINTEXT", Host: "two", Port: 1}}})
	require.NoError(t, err)
	byHand := createOf("b", -1, -1)
	byHand.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: []int32{2}}}
	require.Eventually(t, func() bool { // until the controller has seen it
		create(outside, 7, byHand)
		got := describeTopics(outside, 6, "b").Topics[0]
		return len(got.Partitions) == 1 && got.Partitions[0].ErrorCode == 72
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, int16(5), describeTopics(outside, 5, "b").Topics[0].Partitions[0].ErrorCode)
	require.Len(t, describeTopics(outside, 5, "b").Brokers, 1)
	require.Zero(t, describeTopics(&inside, 6, "b").Topics[0].Partitions[0].ErrorCode)
	require.Len(t, describeTopics(&inside, 5, "b").Brokers, 2)
}

func TestMetadataByID(t *testing.T) {
	c := connect(t, newAdmin(t, nil, nil).server)
	create(c, 7, createOf("a", 1, 1), createOf("b", 1, 1))
	id := describeTopics(c, 12, "a").Topics[0].TopicID
	name := "b"
	ask := func(version int16, topics ...kmsg.MetadataRequestTopic) (codes []int16, brokers int) {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = topics
		resp := call[*kmsg.MetadataResponse](c, version, req)
		for _, t := range resp.Topics {
			codes = append(codes, t.ErrorCode)
		}
		return codes, len(resp.Brokers)
	}
	byID, unknown, byName, nothing := kmsg.MetadataRequestTopic{TopicID: id}, kmsg.MetadataRequestTopic{TopicID: [16]byte{9}}, kmsg.MetadataRequestTopic{Topic: &name}, kmsg.MetadataRequestTopic{}
	for _, tc := range []struct {
		version int16
		topics  []kmsg.MetadataRequestTopic
		codes   []int16
		brokers int
	}{
		{10, []kmsg.MetadataRequestTopic{byID, byName}, []int16{42, 42}, 0},
		{11, []kmsg.MetadataRequestTopic{nothing}, []int16{42}, 0},
		{12, []kmsg.MetadataRequestTopic{nothing}, []int16{-1}, 0},
		{12, []kmsg.MetadataRequestTopic{byID, byID, byName}, []int16{0}, 1},
		{13, []kmsg.MetadataRequestTopic{unknown}, []int16{100}, 1},
		{12, []kmsg.MetadataRequestTopic{byName, byName}, []int16{0}, 1},
		{12, []kmsg.MetadataRequestTopic{}, nil, 1},
		{12, nil, []int16{0, 0}, 1},
	} {
		codes, brokers := ask(tc.version, tc.topics...)
		if tc.topics != nil && len(tc.topics) == 0 {
			req := kmsg.NewPtrMetadataRequest()
			req.Topics = tc.topics
			codes = nil
			require.Empty(t, call[*kmsg.MetadataResponse](c, tc.version, req).Topics)
		}
		require.Equal(t, tc.codes, codes, "%+v", tc)
		require.Equal(t, tc.brokers, brokers, "%+v", tc)
	}
}

func TestAutoCreation(t *testing.T) {
	for enabled, want := range map[string]int16{"true": 5, "false": 3} {
		c := connect(t, newAdmin(t, kafka.Values{"auto.create.topics.enable": enabled, "offsets.topic.num.partitions": "4"}, nil).server)
		name, bad, internal := "a", "b d", controller.OffsetsTopic
		for _, v := range []int16{0, 3, 4, 13} {
			req := kmsg.NewPtrMetadataRequest()
			req.AllowAutoTopicCreation = true
			req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}, {Topic: &bad}, {Topic: &internal}}
			var codes []int16
			for _, t := range call[*kmsg.MetadataResponse](c, v, req).Topics {
				codes = append(codes, t.ErrorCode)
			}
			require.Equal(t, []int16{want, 17, want}, codes, "version %d", v)
			if enabled == "false" {
				require.Equal(t, int16(3), describeTopics(c, 9, name).Topics[0].ErrorCode)
				continue
			}
			require.Len(t, describeTopics(c, 9, name).Topics[0].Partitions, 2)
			got := describeTopics(c, 9, internal).Topics[0]
			require.Len(t, got.Partitions, 4)
			require.True(t, got.IsInternal)
			remove(c, 6, name, internal)
		}
	}
}

func TestCreatePartitions(t *testing.T) {
	c := connect(t, newAdmin(t, nil, nil).server)
	create(c, 7, createOf("a", 2, 1), createOf("b", 2, 1))
	by := func(lists ...[]int32) (as []kmsg.CreatePartitionsRequestTopicAssignment) {
		for _, l := range lists {
			as = append(as, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: l})
		}
		return as
	}
	for v := range int16(4) {
		for what, tc := range map[string]struct {
			topic kmsg.CreatePartitionsRequestTopic
			code  int16
		}{
			"same": {kmsg.CreatePartitionsRequestTopic{Topic: "a", Count: 2}, 37}, "fewer": {kmsg.CreatePartitionsRequestTopic{Topic: "a", Count: 1}, 37},
			"huge": {kmsg.CreatePartitionsRequestTopic{Topic: "a", Count: 1<<31 - 1}, 37}, "unknown": {kmsg.CreatePartitionsRequestTopic{Topic: "x", Count: 9}, 3},
			"too few lists": {kmsg.CreatePartitionsRequestTopic{Topic: "a", Count: 4, Assignment: by([]int32{1})}, 39},
			"dead broker":   {kmsg.CreatePartitionsRequestTopic{Topic: "a", Count: 3, Assignment: by([]int32{9})}, 39},
			"no broker":     {kmsg.CreatePartitionsRequestTopic{Topic: "a", Count: 3, Assignment: by([]int32{})}, 39},
			"broker twice":  {kmsg.CreatePartitionsRequestTopic{Topic: "a", Count: 3, Assignment: by([]int32{1, 1})}, 39},
		} {
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.TimeoutMillis, req.Topics = 5000, []kmsg.CreatePartitionsRequestTopic{tc.topic}
			got := call[*kmsg.CreatePartitionsResponse](c, v, req).Topics
			require.Equal(t, tc.code, got[0].ErrorCode, what)
			require.NotNil(t, got[0].ErrorMessage, what)
		}
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.TimeoutMillis, req.Topics = 5000, []kmsg.CreatePartitionsRequestTopic{{Topic: "a", Count: 3}, {Topic: "a", Count: 4}}
		got := call[*kmsg.CreatePartitionsResponse](c, v, req).Topics
		require.Len(t, got, 1)
		require.Equal(t, int16(42), got[0].ErrorCode)
	}
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis, req.Topics = 5000, []kmsg.CreatePartitionsRequestTopic{{Topic: "a", Count: 4, Assignment: by([]int32{1}, []int32{1})}, {Topic: "b", Count: 3}}
	for _, dry := range []bool{true, false} {
		req.ValidateOnly = dry
		for _, got := range call[*kmsg.CreatePartitionsResponse](c, 3, req).Topics {
			require.Zero(t, got.ErrorCode)
		}
		topics := describeTopics(c, 9, "a", "b").Topics
		want := map[bool][2]int{true: {2, 2}, false: {4, 3}}[dry]
		require.Equal(t, want, [2]int{len(topics[0].Partitions), len(topics[1].Partitions)})
	}
}

// TestNotController asks a broker that isn't.
func TestNotController(t *testing.T) {
	a := newAdmin(t, nil, nil)
	c := connect(t, a.server)
	create(c, 7, createOf("a", 1, 1))
	require.NoError(t, a.deps.Cluster.Controller.Stop(t.Context()))
	require.Equal(t, int16(41), create(c, 7, createOf("b", 1, 1))[0].ErrorCode)
	require.Equal(t, []int16{41}, remove(c, 6, "a"))
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.TimeoutMillis = 1000
	require.Equal(t, int16(41), call[*kmsg.ElectLeadersResponse](c, 2, elect).ErrorCode)
	require.Equal(t, int16(41), call[*kmsg.ListPartitionReassignmentsResponse](c, 0, kmsg.NewPtrListPartitionReassignmentsRequest()).ErrorCode)
	require.Zero(t, describeTopics(c, 12, "a").Topics[0].ErrorCode, "what is known is known")
}

func TestElectLeadersAndReassignments(t *testing.T) {
	c := connect(t, newAdmin(t, nil, nil).server)
	create(c, 7, createOf("a", 1, 1))
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.TimeoutMillis = 1000
	require.Empty(t, call[*kmsg.ElectLeadersResponse](c, 2, elect).Topics, "nothing to do anywhere")
	elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "a", Partitions: []int32{0, 7}}, {Topic: "x", Partitions: []int32{0}}}
	resp := call[*kmsg.ElectLeadersResponse](c, 2, elect)
	require.Equal(t, []int16{84, 3}, []int16{resp.Topics[0].Partitions[0].ErrorCode, resp.Topics[0].Partitions[1].ErrorCode})
	require.Equal(t, int16(3), resp.Topics[1].Partitions[0].ErrorCode)
	elect.ElectionType = 9
	require.Equal(t, int16(42), call[*kmsg.ElectLeadersResponse](c, 2, elect).ErrorCode)

	move := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	parts := []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: 0, Replicas: []int32{1}}, {Partition: 7, Replicas: []int32{1}}}
	move.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: "a", Partitions: parts}}
	moved := call[*kmsg.AlterPartitionAssignmentsResponse](c, 1, move)
	require.Zero(t, moved.ErrorCode)
	require.Equal(t, []int16{0, 3}, []int16{moved.Topics[0].Partitions[0].ErrorCode, moved.Topics[0].Partitions[1].ErrorCode})
	parts[0].Replicas = nil
	require.Equal(t, int16(85), call[*kmsg.AlterPartitionAssignmentsResponse](c, 0, move).Topics[0].Partitions[0].ErrorCode)
	require.Empty(t, call[*kmsg.ListPartitionReassignmentsResponse](c, 0, kmsg.NewPtrListPartitionReassignmentsRequest()).Topics)
}

func TestDescribeCluster(t *testing.T) {
	c := connect(t, newAdmin(t, nil, nil).server)
	for v := range int16(3) {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.IncludeClusterAuthorizedOperations = true
		resp := call[*kmsg.DescribeClusterResponse](c, v, req)
		require.Zero(t, resp.ErrorCode)
		require.Equal(t, "outside", resp.Brokers[0].Host)
		require.Equal(t, int32(1), resp.ControllerID)
		require.Equal(t, clusterOperations, resp.ClusterAuthorizedOperations)
		if v > 0 {
			for kind, code := range map[int8]int16{0: 115, 2: 114, 3: 115} {
				req.EndpointType = kind
				require.Equal(t, code, call[*kmsg.DescribeClusterResponse](c, v, req).ErrorCode)
			}
		}
	}
}

// TestDescribeTopicPartitions reads the same topics page by page, with pages of every size.
func TestDescribeTopicPartitions(t *testing.T) {
	c := connect(t, newAdmin(t, nil, nil).server)
	create(c, 7, createOf("b", 5, 1), createOf("a", 3, 1), createOf("c", 1, 1))
	for limit := int32(1); limit < 12; limit++ {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit = limit
		var seen []string
		for pages := 0; ; pages++ {
			require.Less(t, pages, 20)
			resp := call[*kmsg.DescribeTopicPartitionsResponse](c, 0, req)
			n := int32(0)
			for _, topic := range resp.Topics {
				for _, p := range topic.Partitions {
					require.Equal(t, int32(1), p.LeaderID)
					seen = append(seen, *topic.Topic+string(rune('0'+p.Partition)))
					n++
				}
			}
			require.LessOrEqual(t, n, limit)
			if resp.NextCursor == nil {
				break
			}
			req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: resp.NextCursor.Topic, Partition: resp.NextCursor.Partition}
		}
		require.Equal(t, []string{"a0", "a1", "a2", "b0", "b1", "b2", "b3", "b4", "c0"}, seen, "limit %d", limit)
	}
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "x"}, {Topic: "a"}, {Topic: "a"}, {Topic: "b d"}}
	req.ResponsePartitionLimit = 100
	resp := call[*kmsg.DescribeTopicPartitionsResponse](c, 0, req)
	require.Equal(t, []int16{0, 17, 3}, []int16{resp.Topics[0].ErrorCode, resp.Topics[1].ErrorCode, resp.Topics[2].ErrorCode})
}

type someDirs []LogDir

func (d someDirs) LogDirs() []LogDir { return slices.Clone(d) }

func TestLogDirs(t *testing.T) {
	dirs := someDirs{{Path: "/one", Total: 9, Usable: 5, Replicas: []LogDirReplica{{Topic: "b", Size: 3}, {Topic: "a", Partition: 1, Size: 2, Lag: 1}, {Topic: "a", Size: 1}}},
		{Path: "/two", Err: errors.New("gone")}, {Path: "/three"}}
	c := connect(t, newAdmin(t, nil, func(d *Deps) { d.LogDirs = dirs }).server)
	for v := range int16(6) {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		resp := call[*kmsg.DescribeLogDirsResponse](c, v, req)
		require.Equal(t, []int16{0, 56, 0}, []int16{resp.Dirs[0].ErrorCode, resp.Dirs[1].ErrorCode, resp.Dirs[2].ErrorCode})
		require.Len(t, resp.Dirs[0].Topics, 2)
		require.Equal(t, []int64{1, 2}, []int64{resp.Dirs[0].Topics[0].Partitions[0].Size, resp.Dirs[0].Topics[0].Partitions[1].Size})
		if v >= 4 {
			require.Equal(t, int64(5), resp.Dirs[0].UsableBytes)
		}
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "a", Partitions: []int32{1, 9}}, {Topic: "b"}}
		require.Len(t, call[*kmsg.DescribeLogDirsResponse](c, v, req).Dirs[0].Topics, 1)
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{}
		require.Empty(t, call[*kmsg.DescribeLogDirsResponse](c, v, req).Dirs[0].Topics)
	}
	for dir, codes := range map[string][2]int16{"/one": {0, 9}, "/one/": {0, 9}, "/two": {56, 56}, "/three": {35, 9}, "/four": {57, 57}, "one": {57, 57}} {
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: dir, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: "a", Partitions: []int32{0, 9}}}}}
		got := call[*kmsg.AlterReplicaLogDirsResponse](c, 2, req).Topics[0].Partitions
		require.Equal(t, codes, [2]int16{got[0].ErrorCode, got[1].ErrorCode}, dir)
	}
}
