package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// EndTxn (key 26): v0-4
//
// Behaviour:
//   - Decides to commit or abort the open transaction of a producer. When the answer comes that is stored, and will happen
//     whatever fails; the markers that let readers see it are written right after.
//   - What has been ended in the same way already is fine; in the other way, and when nothing was begun: INVALID_TXN_STATE.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: PRODUCER_FENCED may come (KIP-588), INVALID_PRODUCER_EPOCH before
//	v3: flexible
//	v4: TRANSACTION_ABORTABLE may come (KIP-890); never here
func (h *handlers) endTxn(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.EndTxnRequest)
	resp := kmsg.NewPtrEndTxnResponse()
	err := h.Transactions.End(req.TransactionalID, producerOf(req.ProducerID, req.ProducerEpoch), req.Commit)
	resp.ErrorCode = fencedCode(req.Version >= 2, err)
	return r.Answer(resp)
}
