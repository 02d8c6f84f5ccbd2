package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
)

// LeaveGroup (key 13): v0-5
//
// Behaviour:
//   - Each member leaves, or not, by itself. A static member may be named by its instance id alone.
//
// Versions:
//
//	v1: throttle time
//	v2: answered before throttling (KIP-219)
//	v3: several members, with instance ids, and an error for each (KIP-345); before, the one member's error is the answer's
//	v4: flexible
//	v5: reason (KIP-800), which is not used
func (h *handlers) leaveGroup(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.LeaveGroupRequest)
	resp := kmsg.NewPtrLeaveGroupResponse()
	leaving := make([]group.Leaving, 0, len(req.Members)+1)
	if req.Version < 3 {
		leaving = append(leaving, group.Leaving{MemberID: req.MemberID})
	} else {
		for _, m := range req.Members {
			leaving = append(leaving, group.Leaving{MemberID: m.MemberID, InstanceID: m.InstanceID})
		}
	}
	errs, err := h.Groups.Leave(req.Group, leaving)
	resp.ErrorCode = code(err)
	for i, err := range errs {
		if req.Version < 3 {
			resp.ErrorCode = code(err)
			break
		}
		m := kmsg.NewLeaveGroupResponseMember()
		m.MemberID, m.InstanceID, m.ErrorCode = leaving[i].MemberID, leaving[i].InstanceID, code(err)
		resp.Members = append(resp.Members, m)
	}
	return r.Answer(resp)
}
