package api

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/producerid"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
)

// groupServer is a server of groups alone, for a cluster of one broker with a topic "t" of three partitions and "u" of one.
func groupServer(t *testing.T) *wire.Server {
	cache := metadata.NewCache(func() int64 { return 1 })
	update := kmsg.NewPtrUpdateMetadataRequest()
	update.Version, update.ControllerID, update.ControllerEpoch, update.BrokerEpoch = 8, 4, 1, 1
	update.LiveBrokers = []kmsg.UpdateMetadataRequestLiveBroker{{ID: 4, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
		{ListenerName: "PLAINTEXT", Host: "broker.example", Port: 1234}}}}
	add := func(topic string, id byte, partitions int32) {
		ts := kmsg.UpdateMetadataRequestTopicState{Topic: topic, TopicID: idOf(id)}
		for p := range partitions {
			ts.PartitionStates = append(ts.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{Partition: p, Leader: 4, Replicas: []int32{4}, ISR: []int32{4}})
		}
		update.TopicStates = append(update.TopicStates, ts)
	}
	add("t", 1, 3)
	add("u", 2, 1)
	add("groups", 3, offsetstest.Shards)
	add(txn.Topic, 4, 5)
	require.Zero(t, cache.Update(update).ErrorCode)

	store := offsetstest.NewStore(offsetstest.NewDisk())
	require.NoError(t, store.Start(t.Context()))
	m := group.New(group.Options{Store: store, Config: group.Config{MinSession: 6 * time.Second, MaxSession: time.Hour, MaxSize: 100, MaxMetadata: 4096,
		CommitTimeout: 5 * time.Second, Retention: time.Hour}})
	m.Start()
	for shard := range int32(offsetstest.Shards) {
		m.Lead(shard, 0)
	}
	require.Eventually(t, func() bool { _, err := m.List(); return err == nil }, time.Minute, time.Millisecond)
	t.Cleanup(func() {
		require.NoError(t, m.Stop(context.Background()))
		require.NoError(t, store.Stop(context.Background()))
	})
	ids := producerid.New(someIDs{}, 4, slog.New(slog.DiscardHandler))
	require.NoError(t, ids.Load(t.Context()))
	t.Cleanup(func() { require.NoError(t, ids.Stop(context.Background())) })
	return serve(t, Handlers(Deps{Cluster: &Cluster{BrokerID: 4, Metadata: cache}, Groups: m, ProducerIDs: ids,
		Transactions: someTransactions(t, ids, &groupMarkers{groups: m}, func(id partition.ID) bool { _, ok := cache.Snapshot().Topic(id.Topic); return ok })}))
}

// someTransactions is a coordinator of all transactional ids, whose log is kept in memory.
func someTransactions(t testing.TB, ids *producerid.IDs, markers txn.Markers, exists func(partition.ID) bool) *txn.Manager {
	m := txn.New(txn.Options{Config: txn.Config{MaxTimeout: 15 * time.Minute, AbortInterval: 10 * time.Second, Expiration: time.Hour, ExpirationCheck: time.Hour, Verify: true},
		Log: offsetstest.NewLog(5), NewID: ids.Next, Markers: markers, Now: time.Now,
		Leader: func(id partition.ID) (int32, bool) { return 4, exists(id) }})
	m.Start()
	require.NoError(t, m.Prepare(context.Background()))
	for shard := range int32(5) {
		m.Lead(shard, 0)
	}
	require.Eventually(t, func() bool { _, err := m.List(); return err == nil }, time.Minute, time.Millisecond)
	t.Cleanup(func() { require.NoError(t, m.Stop(context.Background())) })
	return m
}

// groupMarkers writes markers for groups, and says of all other partitions that they are written.
type groupMarkers struct{ groups *group.Manager }

func (e *groupMarkers) WriteTxnMarkers(ctx context.Context, _ int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for _, m := range req.Markers {
		out := kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.ProducerID}
		for _, t := range m.Topics {
			topic := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				if t.Topic == e.groups.TransactionTopic() {
					if err := e.groups.EndTransaction(ctx, p, producerOf(m.ProducerID, m.ProducerEpoch), m.Committed, m.CoordinatorEpoch); err != nil {
						return nil, err
					}
				}
				topic.Partitions = append(topic.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p})
			}
			out.Topics = append(out.Topics, topic)
		}
		resp.Markers = append(resp.Markers, out)
	}
	return resp, nil
}

func idOf(n byte) [16]byte { return [16]byte{15: n} }

type someIDs struct{}

func (someIDs) ProducerIDs(context.Context, int32, int64) (election.ProducerIDBlock, error) {
	return election.ProducerIDBlock{First: 4000, Count: 1000}, nil
}

// eachVersion runs a test for every version of a request that the server lists.
func eachVersion(t *testing.T, maximum int16, f func(t *testing.T, v int16)) {
	for v := range maximum + 1 {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) { f(t, v) })
	}
}

// joinRequest is a consumer's.
func groupJoin(groupID, memberID string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = groupID, memberID, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 10_000
	sub := kmsg.NewConsumerMemberMetadata()
	sub.Topics = []string{"t"}
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub.AppendTo(nil)}}
	return req
}

// TestGroupLife takes one member through its life, in every version of every request.
func TestGroupLife(t *testing.T) {
	s := groupServer(t)
	eachVersion(t, 9, func(t *testing.T, v int16) {
		c := connect(t, s)
		g := fmt.Sprintf("life-%d", v)
		join := call[*kmsg.JoinGroupResponse](c, v, groupJoin(g, ""))
		if v >= 4 {
			require.Equal(t, kerr.MemberIDRequired.Code, join.ErrorCode)
			require.EqualValues(t, -1, join.Generation)
			require.Equal(t, v >= 7, join.Protocol == nil)
			join = call[*kmsg.JoinGroupResponse](c, v, groupJoin(g, join.MemberID))
		}
		require.Zero(t, join.ErrorCode)
		require.EqualValues(t, 1, join.Generation)
		require.Regexp(t, `^test-[0-9a-f-]{36}$`, join.MemberID)
		require.Equal(t, join.MemberID, join.LeaderID)
		require.Len(t, join.Members, 1)
		require.Equal(t, v >= 7, join.ProtocolType != nil)

		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Group, sync.MemberID, sync.Generation = g, join.MemberID, 1
		sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: join.MemberID, MemberAssignment: []byte("all")}}
		if v >= 5 {
			require.Equal(t, kerr.InconsistentGroupProtocol.Code, call[*kmsg.SyncGroupResponse](c, 5, sync).ErrorCode)
		}
		sync.ProtocolType, sync.Protocol = pointer("consumer"), pointer("range")
		synced := call[*kmsg.SyncGroupResponse](c, min(v, 5), sync)
		require.Zero(t, synced.ErrorCode)
		require.Equal(t, "all", string(synced.MemberAssignment))

		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group, beat.MemberID, beat.Generation = g, join.MemberID, 1
		require.Zero(t, call[*kmsg.HeartbeatResponse](c, min(v, 4), beat).ErrorCode)
		beat.Generation = 2
		require.Equal(t, kerr.IllegalGeneration.Code, call[*kmsg.HeartbeatResponse](c, min(v, 4), beat).ErrorCode)

		describe := kmsg.NewPtrDescribeGroupsRequest()
		describe.Groups, describe.IncludeAuthorizedOperations = []string{g, "nobody's"}, true
		d := call[*kmsg.DescribeGroupsResponse](c, min(v, 6), describe)
		require.Equal(t, "Stable", d.Groups[0].State)
		require.Equal(t, "/127.0.0.1", d.Groups[0].Members[0].ClientHost)
		require.Equal(t, "test", d.Groups[0].Members[0].ClientID)
		require.Equal(t, "all", string(d.Groups[0].Members[0].MemberAssignment))
		require.Equal(t, "Dead", d.Groups[1].State)
		if v >= 3 {
			require.EqualValues(t, 328, d.Groups[0].AuthorizedOperations)
		}
		if v >= 6 {
			require.Equal(t, kerr.GroupIDNotFound.Code, d.Groups[1].ErrorCode)
			require.NotNil(t, d.Groups[1].ErrorMessage)
		} else {
			require.Zero(t, d.Groups[1].ErrorCode)
		}

		remove := kmsg.NewPtrDeleteGroupsRequest()
		remove.Groups = []string{g, g, "nobody's"}
		r := call[*kmsg.DeleteGroupsResponse](c, min(v, 3), remove)
		require.Len(t, r.Groups, 2, "named twice, deleted once")
		require.Equal(t, kerr.NonEmptyGroup.Code, r.Groups[0].ErrorCode)
		require.Equal(t, kerr.GroupIDNotFound.Code, r.Groups[1].ErrorCode)

		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = g, join.MemberID
		leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: join.MemberID}, {MemberID: "nobody"}}
		left := call[*kmsg.LeaveGroupResponse](c, min(v, 5), leave)
		require.Zero(t, left.ErrorCode)
		if v >= 3 {
			require.Zero(t, left.Members[0].ErrorCode)
			require.Equal(t, kerr.UnknownMemberID.Code, left.Members[1].ErrorCode)
		} else {
			require.Equal(t, kerr.UnknownMemberID.Code, call[*kmsg.LeaveGroupResponse](c, v, leave).ErrorCode)
		}
		list := kmsg.NewPtrListGroupsRequest()
		list.StatesFilter, list.TypesFilter = []string{"EMPTY", "NoSuchState"}, []string{"Classic"}
		l := call[*kmsg.ListGroupsResponse](c, min(v, 5), list)
		require.Len(t, l.Groups, 1)
		require.Equal(t, g, l.Groups[0].Group)
		list.StatesFilter = []string{"Stable"}
		if v >= 4 {
			require.Empty(t, call[*kmsg.ListGroupsResponse](c, min(v, 5), list).Groups)
		}
		r = call[*kmsg.DeleteGroupsResponse](c, min(v, 3), remove)
		require.Zero(t, r.Groups[0].ErrorCode)
	})
}

func groupCommit(groupID string, at int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = groupID, -1
	partition := func(n int32) kmsg.OffsetCommitRequestTopicPartition {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = n, at, 6, pointer("note")
		return p
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{
		{Topic: "t", TopicID: idOf(1), Partitions: []kmsg.OffsetCommitRequestTopicPartition{partition(0), partition(1), partition(9)}},
		{Topic: "none", TopicID: idOf(9), Partitions: []kmsg.OffsetCommitRequestTopicPartition{partition(0)}},
		{Topic: "u", TopicID: idOf(2)},
	}
	long := partition(2)
	long.Metadata = pointer(fmt.Sprintf("%4097d", 1))
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, long)
	return req
}

func groupOffsets(groupID string) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = groupID
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0, 2, 0}}, {Topic: "u"}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = groupID
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: idOf(1), Partitions: []int32{0, 2, 0}}, {Topic: "u", TopicID: idOf(2)}}
	req.Groups = []kmsg.OffsetFetchRequestGroup{g}
	return req
}

func TestOffsets(t *testing.T) {
	s := groupServer(t)
	c := connect(t, s)
	eachVersion(t, 10, func(t *testing.T, v int16) {
		g := fmt.Sprintf("offsets-%d", v)
		missing := kerr.UnknownTopicOrPartition.Code
		r := call[*kmsg.OffsetCommitResponse](c, v, groupCommit(g, 42))
		require.Len(t, r.Topics, 2, "no topics without partitions")
		for i, want := range []int16{0, 0, missing, kerr.OffsetMetadataTooLarge.Code} {
			require.Equal(t, want, r.Topics[0].Partitions[i].ErrorCode, "partition %d", i)
		}
		if v >= 10 {
			missing = kerr.UnknownTopicID.Code
			require.Equal(t, idOf(9), r.Topics[1].TopicID)
		}
		require.Equal(t, missing, r.Topics[1].Partitions[0].ErrorCode)

		f := call[*kmsg.OffsetFetchResponse](c, v, groupOffsets(g))
		if v < 8 {
			require.Zero(t, f.ErrorCode)
			require.Len(t, f.Topics, 1)
			require.Len(t, f.Topics[0].Partitions, 2)
			p := f.Topics[0].Partitions[0]
			require.EqualValues(t, 42, p.Offset)
			if v > 0 {
				require.Equal(t, "note", *p.Metadata)
			}
			none := f.Topics[0].Partitions[1]
			require.EqualValues(t, -1, none.Offset)
			if v == 0 {
				require.Equal(t, kerr.UnknownTopicOrPartition.Code, none.ErrorCode)
			} else {
				require.Zero(t, none.ErrorCode)
			}
			return
		}
		require.Len(t, f.Groups, 1)
		require.Len(t, f.Groups[0].Topics, 2, "as asked")
		require.Len(t, f.Groups[0].Topics[0].Partitions, 3)
		p := f.Groups[0].Topics[0].Partitions[2]
		require.EqualValues(t, 42, p.Offset)
		require.EqualValues(t, 6, p.LeaderEpoch)

		everything := groupOffsets(g)
		everything.Groups[0].Topics = nil
		f = call[*kmsg.OffsetFetchResponse](c, v, everything)
		require.Len(t, f.Groups[0].Topics, 1)
		require.Len(t, f.Groups[0].Topics[0].Partitions, 2)
		if v >= 10 {
			require.Equal(t, idOf(1), f.Groups[0].Topics[0].TopicID)
			unknown := groupOffsets(g)
			unknown.Groups[0].Topics[0].TopicID = idOf(9)
			f = call[*kmsg.OffsetFetchResponse](c, v, unknown)
			require.Equal(t, kerr.UnknownTopicID.Code, f.Groups[0].Topics[0].Partitions[0].ErrorCode)
		}
	})

	t.Run("version 0 is another world", func(t *testing.T) {
		call[*kmsg.OffsetCommitResponse](c, 0, groupCommit("old", 7))
		f := call[*kmsg.OffsetFetchResponse](c, 6, groupOffsets("old"))
		require.EqualValues(t, -1, f.Topics[0].Partitions[0].Offset)
		list := call[*kmsg.ListGroupsResponse](c, 5, kmsg.NewPtrListGroupsRequest())
		for _, g := range list.Groups {
			require.NotContains(t, g.Group, "old")
		}
		require.Equal(t, kerr.UnknownServerError.Code, call[*kmsg.OffsetCommitResponse](c, 0, groupCommit("", 7)).Topics[0].Partitions[0].ErrorCode)
	})

	t.Run("refused", func(t *testing.T) {
		req := groupCommit("refused", 1)
		req.Generation, req.MemberID = 5, "nobody"
		r := call[*kmsg.OffsetCommitResponse](c, 9, req)
		require.Equal(t, kerr.IllegalGeneration.Code, r.Topics[0].Partitions[0].ErrorCode)
		require.Equal(t, kerr.UnknownTopicOrPartition.Code, r.Topics[0].Partitions[2].ErrorCode, "keeps its own error")
	})

	t.Run("deleted", func(t *testing.T) {
		call[*kmsg.OffsetCommitResponse](c, 9, groupCommit("deleted", 1))
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = "deleted"
		req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 9}}}, {Topic: "u"}}
		r := call[*kmsg.OffsetDeleteResponse](c, 0, req)
		require.Zero(t, r.ErrorCode)
		require.Len(t, r.Topics, 1)
		require.Zero(t, r.Topics[0].Partitions[0].ErrorCode)
		require.Equal(t, kerr.UnknownTopicOrPartition.Code, r.Topics[0].Partitions[1].ErrorCode)
		f := call[*kmsg.OffsetFetchResponse](c, 6, groupOffsets("deleted"))
		require.EqualValues(t, -1, f.Topics[0].Partitions[0].Offset)
		req.Group = "nobody's"
		r = call[*kmsg.OffsetDeleteResponse](c, 0, req)
		require.Equal(t, kerr.GroupIDNotFound.Code, r.ErrorCode)
		require.Empty(t, r.Topics)
		req.Group = ""
		require.Equal(t, kerr.InvalidGroupID.Code, call[*kmsg.OffsetDeleteResponse](c, 0, req).ErrorCode)
	})
}

func TestFindCoordinator(t *testing.T) {
	c := connect(t, groupServer(t))
	eachVersion(t, 6, func(t *testing.T, v int16) {
		ask := func(kind int8, keys ...string) []kmsg.FindCoordinatorResponseCoordinator {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKeys = kind, keys
			if len(keys) > 0 {
				req.CoordinatorKey = keys[0]
			}
			r := call[*kmsg.FindCoordinatorResponse](c, v, req)
			if v < 4 {
				return []kmsg.FindCoordinatorResponseCoordinator{{Key: req.CoordinatorKey, NodeID: r.NodeID, Host: r.Host, Port: r.Port, ErrorCode: r.ErrorCode, ErrorMessage: r.ErrorMessage}}
			}
			return r.Coordinators
		}
		for _, key := range []string{"g", "", "a b/ü"} {
			got := ask(0, key)[0]
			require.Zero(t, got.ErrorCode)
			require.EqualValues(t, 4, got.NodeID)
			require.Equal(t, "broker.example", got.Host)
			require.EqualValues(t, 1234, got.Port)
		}
		if v == 0 {
			return
		}
		require.Zero(t, ask(1, "txn")[0].ErrorCode)
		bad := ask(9, "g")[0]
		require.Equal(t, kerr.InvalidRequest.Code, bad.ErrorCode)
		require.EqualValues(t, -1, bad.NodeID)
		require.NotEmpty(t, *bad.ErrorMessage)
		share := ask(2, "g:AAAAAAAAAAAAAAAAAAAAAA:0")[0].ErrorCode
		if v >= 6 {
			require.Equal(t, kerr.CoordinatorNotAvailable.Code, share)
		} else {
			require.Equal(t, kerr.InvalidRequest.Code, share)
		}
		if v >= 4 {
			require.Len(t, ask(0, "a", "a", ""), 3)
			require.Empty(t, ask(0))
		}
	})
}

// unprepared is a store that has no place for groups yet, however long it is waited for.
type unprepared struct {
	offsets.Store
	asked chan struct{}
}

func (s unprepared) Prepare(ctx context.Context) error {
	s.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// Who asks for a thousand coordinators waits once, and nobody goes on waiting for a client that has gone.
func TestFindCoordinatorOfAVanishedClientEnds(t *testing.T) {
	store := unprepared{asked: make(chan struct{}, 1000)}
	m := group.New(group.Options{Store: store})
	t.Cleanup(func() { require.NoError(t, m.Stop(context.Background())) })
	s := serve(t, Handlers(Deps{Cluster: &Cluster{Metadata: metadata.NewCache(func() int64 { return 1 })}, Groups: m}))
	c := connect(t, s)
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorKeys = 4, make([]string, 1000)
	c.send(req)
	<-store.asked
	c.Close()
	require.Eventually(t, func() bool { return s.Connections() == 0 }, time.Minute, 10*time.Millisecond)
	require.Empty(t, store.asked)
}

func TestInitProducerID(t *testing.T) {
	c := connect(t, groupServer(t))
	next := int64(4000)
	eachVersion(t, 5, func(t *testing.T, v int16) {
		ask := func(id *string, pid int64, epoch int16) *kmsg.InitProducerIDResponse {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = id, 60000, pid, epoch
			return call[*kmsg.InitProducerIDResponse](c, v, req)
		}
		r := ask(nil, -1, -1)
		require.Zero(t, r.ErrorCode)
		require.Equal(t, next, r.ProducerID)
		require.Zero(t, r.ProducerEpoch)
		next++
		require.Equal(t, kerr.InvalidRequest.Code, ask(pointer(""), -1, -1).ErrorCode)
		r = ask(pointer(fmt.Sprint("txn", v)), -1, -1)
		require.Zero(t, r.ErrorCode)
		require.Equal(t, next, r.ProducerID)
		require.Zero(t, r.ProducerEpoch)
		next++
		require.EqualValues(t, 1, ask(pointer(fmt.Sprint("txn", v)), -1, -1).ProducerEpoch, "the first is fenced")
		if v >= 3 {
			require.Equal(t, kerr.InvalidRequest.Code, ask(nil, 5, -1).ErrorCode)
			require.Equal(t, next, ask(nil, 5, 0).ProducerID, "a new id, whatever it was")
			next++
		}
	})
}

// TestInitProducerIDLoading: while a block of ids is on its way producers are told to try again, whether they have a
// transactional id or not.
func TestInitProducerIDLoading(t *testing.T) {
	blocks := make(heldIDs)
	ids := producerid.New(blocks, 4, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { require.NoError(t, ids.Stop(context.Background())) })
	c := connect(t, serve(t, Handlers(Deps{Cluster: &Cluster{BrokerID: 4, Metadata: metadata.NewCache(func() int64 { return 1 })}, Groups: new(group.Manager),
		ProducerIDs: ids, Transactions: someTransactions(t, ids, new(groupMarkers), func(partition.ID) bool { return true })})))
	ask := func(id *string) *kmsg.InitProducerIDResponse {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = id, 60000
		return call[*kmsg.InitProducerIDResponse](c, 4, req)
	}
	for _, id := range []*string{nil, pointer("txn")} {
		r := ask(id)
		require.Equal(t, kerr.CoordinatorLoadInProgress.Code, r.ErrorCode)
		require.EqualValues(t, -1, r.ProducerID)
		require.EqualValues(t, -1, r.ProducerEpoch)
	}
	close(blocks)
	require.NoError(t, ids.Load(t.Context()))
	for n, id := range []*string{nil, pointer("txn")} {
		r := ask(id)
		require.Zero(t, r.ErrorCode)
		require.EqualValues(t, 4000+n, r.ProducerID)
	}
}

// heldIDs gives a block once it is closed.
type heldIDs chan struct{}

func (h heldIDs) ProducerIDs(ctx context.Context, _ int32, _ int64) (election.ProducerIDBlock, error) {
	select {
	case <-h:
		return election.ProducerIDBlock{First: 4000, Count: 1000}, nil
	case <-ctx.Done():
		return election.ProducerIDBlock{}, ctx.Err()
	}
}

// TestVanishedJoiner: a client that closes its connection while it waits counts as joined, and frees the handler.
func TestVanishedJoiner(t *testing.T) {
	s := groupServer(t)
	first := connect(t, s)
	a := call[*kmsg.JoinGroupResponse](first, 3, groupJoin("g", ""))
	require.Zero(t, a.ErrorCode)
	second := connect(t, s)
	req := groupJoin("g", "")
	req.SetVersion(3)
	second.send(req)
	require.Eventually(t, func() bool {
		d := kmsg.NewPtrDescribeGroupsRequest()
		d.Groups = []string{"g"}
		return len(call[*kmsg.DescribeGroupsResponse](first, 5, d).Groups[0].Members) == 2
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, second.Close())
	again := call[*kmsg.JoinGroupResponse](first, 3, groupJoin("g", a.MemberID))
	require.Zero(t, again.ErrorCode)
	require.Len(t, again.Members, 2)
}

// TestErrors: each error of the group coordinator has its code, also when it wraps others.
func TestGroupErrorCodes(t *testing.T) {
	for err, want := range map[error]*kerr.Error{
		group.ErrInvalidGroupID: kerr.InvalidGroupID, group.ErrUnavailable: kerr.CoordinatorNotAvailable, group.ErrLoading: kerr.CoordinatorLoadInProgress,
		group.ErrNotCoordinator: kerr.NotCoordinator, group.ErrUnknownMember: kerr.UnknownMemberID, group.ErrFencedInstance: kerr.FencedInstanceID,
		group.ErrIllegalGeneration: kerr.IllegalGeneration, group.ErrInconsistentProtocol: kerr.InconsistentGroupProtocol,
		group.ErrInvalidSession: kerr.InvalidSessionTimeout, group.ErrMemberIDRequired: kerr.MemberIDRequired, group.ErrMaxSize: kerr.GroupMaxSizeReached,
		group.ErrRebalance: kerr.RebalanceInProgress, group.ErrNonEmpty: kerr.NonEmptyGroup, group.ErrGroupNotFound: kerr.GroupIDNotFound,
		group.ErrSubscribed: kerr.GroupSubscribedToTopic, group.ErrUnstable: kerr.UnstableOffsetCommit, group.ErrMetadataTooLarge: kerr.OffsetMetadataTooLarge,
		group.ErrCommitTooLarge: kerr.InvalidCommitOffsetSize, group.ErrTimedOut: kerr.RequestTimedOut, group.ErrUnknown: kerr.UnknownServerError,
	} {
		require.Equal(t, want.Code, code(err), "%v", err)
		require.Equal(t, want.Code, code(fmt.Errorf("%w: %w", err, context.DeadlineExceeded)), "%v", err)
	}
}
