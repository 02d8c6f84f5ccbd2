package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// WriteTxnMarkers (key 27, KIP-98): v0-1, from a coordinator of transactions to leaders
//
// Behaviour:
//   - Writes the markers that end transactions. The answer comes when all are acknowledged by the replicas in sync, or could
//     not be written. A marker may be asked for again without harm.
//   - Errors are only those that Apache Kafka's coordinator knows what to do with: see package txn.
//
// Versions:
//
//	v1: flexible
func (h *handlers) writeTxnMarkers(ctx context.Context, r *Request) Reply {
	r.Waiting()
	defer r.Resume()
	return r.Answer(h.Markers.Write(ctx, r.Body.(*kmsg.WriteTxnMarkersRequest)))
}
