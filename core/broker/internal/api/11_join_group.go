package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
)

// JoinGroup (key 11): v0-9
//
// Behaviour:
//   - Waits until the rebalance is complete. A client that goes away meanwhile still counts as joined.
//   - All rules are those of package group; errors carry generation -1 and the member id of the request.
//
// Versions:
//
//	v1: a rebalance timeout beside the session timeout, which was both before (KIP-62)
//	v2: throttle time
//	v3: answered before throttling (KIP-219)
//	v4: new dynamic members are given an id first, MEMBER_ID_REQUIRED (KIP-394)
//	v5: static members: group instance id (KIP-345)
//	v6: flexible
//	v7: protocol type in the answer, null protocol in errors (KIP-559)
//	v8: reason (KIP-800), which is not used
//	v9: a static leader may be told to skip the assignment (KIP-814)
func (h *handlers) joinGroup(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.JoinGroupRequest)
	join := group.Join{
		MemberID: req.MemberID, InstanceID: req.InstanceID,
		RequireID: req.Version >= 4 && req.InstanceID == nil, CanSkip: req.Version >= 9,
		ClientID: r.ClientID(), ClientHost: "/" + r.RemoteHost(),
		Session: milliseconds(req.SessionTimeoutMillis), Rebalance: milliseconds(req.RebalanceTimeoutMillis),
		ProtocolType: req.ProtocolType,
	}
	if req.Version < 1 {
		join.Rebalance = join.Session
	}
	for _, p := range req.Protocols {
		join.Protocols = append(join.Protocols, group.Protocol{Name: p.Name, Metadata: p.Metadata})
	}
	r.Waiting()
	a := h.Groups.Join(ctx, req.Group, join)
	r.Resume()

	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.Generation, resp.MemberID, resp.LeaderID = code(a.Err), a.Generation, a.MemberID, a.Leader
	resp.Protocol, resp.SkipAssignment = a.Protocol, a.SkipAssignment
	if a.ProtocolType != "" {
		resp.ProtocolType = &a.ProtocolType
	}
	for _, m := range a.Members {
		resp.Members = append(resp.Members, kmsg.JoinGroupResponseMember{MemberID: m.ID, InstanceID: m.InstanceID, ProtocolMetadata: m.Metadata})
	}
	return r.Answer(resp)
}

func milliseconds(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }
