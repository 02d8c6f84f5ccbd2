package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// UpdateMetadata (key 6): v0-8, from the controller
//
// Behaviour:
//   - Replaces what this broker knows of the living brokers, and of the partitions that are in the request. Other partitions
//     stay as they were; a leader of -2 takes one away.
//   - Epochs are checked as in LeaderAndIsr.
//
// Versions:
//
//	v1: security protocols of endpoints
//	v2: racks
//	v3: names of listeners (KIP-103)
//	v4: offline replicas (KIP-112)
//	v5: broker epoch (KIP-380); partitions by topic
//	v6: flexible
//	v7: topic ids (KIP-516)
//	v8: whether the controller is one of KRaft (KIP-866)
func (h *handlers) updateMetadata(_ context.Context, r *Request) Reply {
	return r.Answer(h.Control.UpdateMetadata(r.Body.(*kmsg.UpdateMetadataRequest)))
}
