package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// StopReplica (key 5): v0-4, from the controller
//
// Behaviour:
//   - Takes replicas out of service, and with delete their data. A replica that isn't here is stopped without error.
//   - Epochs are checked as in LeaderAndIsr; a leader epoch below the known one is FENCED_LEADER_EPOCH.
//
// Versions:
//
//	v1: broker epoch (KIP-380)
//	v2: flexible
//	v3: leader epoch, and delete, for each partition (KIP-570)
//	v4: whether the controller is one of KRaft (KIP-866)
func (h *handlers) stopReplica(_ context.Context, r *Request) Reply {
	return r.Answer(h.Control.StopReplica(r.Body.(*kmsg.StopReplicaRequest)))
}
