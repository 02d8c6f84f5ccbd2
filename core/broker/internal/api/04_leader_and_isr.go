package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// LeaderAndIsr (key 4): v0-7, from the controller
//
// Behaviour:
//   - Makes this broker leader or follower of its replicas. What it says is in force when the answer comes.
//   - STALE_CONTROLLER_EPOCH for a controller that has a successor, STALE_BROKER_EPOCH for one that speaks to an earlier
//     registration of this broker: nothing is done.
//   - Each partition has a result of its own: see package partition.
//
// Versions:
//
//	v1: whether a partition is new
//	v2: broker epoch (KIP-380); partitions by topic
//	v3: replicas that are being added and removed (KIP-455)
//	v4: flexible
//	v5: topic ids, also in the response (KIP-516)
//	v6: leader recovery state (KIP-704)
//	v7: whether the controller is one of KRaft (KIP-866)
func (h *handlers) leaderAndISR(_ context.Context, r *Request) Reply {
	return r.Answer(h.Control.LeaderAndISR(r.Body.(*kmsg.LeaderAndISRRequest)))
}
