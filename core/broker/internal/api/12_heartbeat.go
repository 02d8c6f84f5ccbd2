package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
)

// Heartbeat (key 12): v0-4
//
// Behaviour:
//   - Keeps the member's session alive; REBALANCE_IN_PROGRESS tells it to join again.
//   - While the coordinator loads, heartbeats are fine, whoever sends them.
//
// Versions:
//
//	v1: throttle time
//	v2: answered before throttling (KIP-219)
//	v3: static members: group instance id (KIP-345)
//	v4: flexible
func (h *handlers) heartbeat(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.HeartbeatRequest)
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = code(h.Groups.Heartbeat(req.Group, group.Member{ID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation}))
	return r.Answer(resp)
}
