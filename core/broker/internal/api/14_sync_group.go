package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
)

// SyncGroup (key 14): v0-5
//
// Behaviour:
//   - Followers wait for the leader's assignment; the leader waits until it is stored.
//
// Versions:
//
//	v1: throttle time
//	v2: answered before throttling (KIP-219)
//	v3: static members: group instance id (KIP-345)
//	v4: flexible
//	v5: protocol type and name, which must be given and the group's own, else INCONSISTENT_GROUP_PROTOCOL (KIP-559)
func (h *handlers) syncGroup(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.SyncGroupRequest)
	resp := kmsg.NewPtrSyncGroupResponse()
	if req.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		resp.ErrorCode = code(group.ErrInconsistentProtocol)
		return r.Answer(resp)
	}
	sync := group.Sync{Member: group.Member{ID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation},
		ProtocolType: req.ProtocolType, Protocol: req.Protocol, Assignments: make(map[string][]byte, len(req.GroupAssignment))}
	for _, a := range req.GroupAssignment {
		sync.Assignments[a.MemberID] = a.MemberAssignment
	}
	r.Waiting()
	a := h.Groups.Sync(ctx, req.Group, sync)
	r.Resume()
	resp.ErrorCode, resp.MemberAssignment = code(a.Err), a.Assignment
	if a.Err == nil {
		resp.ProtocolType, resp.Protocol = &a.ProtocolType, a.Protocol
	}
	return r.Answer(resp)
}
