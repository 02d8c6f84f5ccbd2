package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ControlledShutdown (key 7): v0-3, from a broker to the controller
//
// Behaviour:
//   - A broker is about to stop. Partitions that it leads get other leaders, where replicas in sync are, and it leaves the
//     in-sync sets of the others. The answer lists what it still leads though others have replicas: it asks again.
//   - NOT_CONTROLLER; BROKER_NOT_AVAILABLE for a broker that isn't registered; STALE_BROKER_EPOCH for an earlier registration.
//
// Versions:
//
//	v0: its header has no client id
//	v2: broker epoch (KIP-380)
//	v3: flexible
func (h *handlers) controlledShutdown(ctx context.Context, r *Request) Reply {
	resp, err := h.toController(ctx, r)
	if err != nil {
		failed := kmsg.NewPtrControlledShutdownResponse()
		failed.ErrorCode = code(err)
		return r.Answer(failed)
	}
	return r.Answer(resp)
}
