package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterPartition (key 56, KIP-497): v0-3, from a leader to the controller
//
// Behaviour:
//   - Records other in-sync sets. The answer has for each partition the state that holds, or why not: see package controller.
//   - NOT_CONTROLLER; STALE_BROKER_EPOCH for any but the broker's registration.
//
// Versions:
//
//	v1: leader recovery state (KIP-704)
//	v2: topic ids; INELIGIBLE_REPLICA may be answered (KIP-841), OPERATION_NOT_ATTEMPTED before
//	v3: broker epochs of the replicas in sync (KIP-903), which aren't looked at
func (h *handlers) alterPartition(ctx context.Context, r *Request) Reply {
	resp, err := h.toController(ctx, r)
	if err != nil {
		failed := kmsg.NewPtrAlterPartitionResponse()
		failed.ErrorCode = code(err)
		return r.Answer(failed)
	}
	return r.Answer(resp)
}
