package acceptance

import (
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// coordinator waits until a group's coordinator is there.
func (c *conn) coordinator(group string) {
	c.t.Helper()
	eventually(c.t, func() bool {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey = group
		return ask[*kmsg.FindCoordinatorResponse](c, 3, req).ErrorCode == 0
	}, "a coordinator for %s", group)
	eventually(c.t, func() bool {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{group}
		return ask[*kmsg.DescribeGroupsResponse](c, 4, req).Groups[0].ErrorCode == 0
	}, "%s to be loaded", group)
}

// joinRequest is a request of a consumer of protocol "p".
func joinRequest(group, member string, sessionMs, rebalanceMs int32) *kmsg.JoinGroupRequest {
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "p", []byte("m")
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = sessionMs, rebalanceMs
	req.Protocols = append(req.Protocols, p)
	return req
}

// join joins as a new member of version 3 does, which waits for the group.
func (c *conn) join(group, member string, sessionMs, rebalanceMs int32) *kmsg.JoinGroupResponse {
	c.t.Helper()
	return ask[*kmsg.JoinGroupResponse](c, 3, joinRequest(group, member, sessionMs, rebalanceMs))
}

// sync brings the assignment: as the leader, that of the given members.
func (c *conn) sync(group, member string, generation int32, assign ...string) *kmsg.SyncGroupResponse {
	c.t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	for _, m := range assign {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = m, []byte("of "+m)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return ask[*kmsg.SyncGroupResponse](c, 2, req)
}

// heartbeat gives the error code of a heartbeat.
func (c *conn) heartbeat(group, member string, generation int32) int16 {
	c.t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	return ask[*kmsg.HeartbeatResponse](c, 2, req).ErrorCode
}

// leave gives the error code of a member's leave.
func (c *conn) leave(group, member string) int16 {
	c.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = group, member
	return ask[*kmsg.LeaveGroupResponse](c, 2, req).ErrorCode
}

// commit commits an offset of topic t, partition 0, and gives the error code.
func (c *conn) commit(version int16, group, member string, generation int32, offset int64) int16 {
	c.t.Helper()
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = offset
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.Partitions = "t", append(t.Partitions, p)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation, req.Topics = group, member, generation, append(req.Topics, t)
	return ask[*kmsg.OffsetCommitResponse](c, version, req).Topics[0].Partitions[0].ErrorCode
}

// committed is the committed offset of topic t, partition 0, -1 for none.
func (c *conn) committed(group string) int64 {
	c.t.Helper()
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic, t.Partitions = "t", []int32{0}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.Topics = group, append(req.Topics, t)
	p := ask[*kmsg.OffsetFetchResponse](c, 5, req).Topics[0].Partitions[0]
	require.Zero(c.t, p.ErrorCode)
	return p.Offset
}
