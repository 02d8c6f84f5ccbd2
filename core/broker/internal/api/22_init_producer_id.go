package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
)

// InitProducerId (key 22): v0-5
//
// Behaviour:
//   - An idempotent producer (no transactional id) is given an id that nobody had before, with epoch 0, whatever id and epoch it
//     had.
//   - COORDINATOR_LOAD_IN_PROGRESS while a block of ids is being fetched: a broker that has just started gives it to the first
//     who asks, as Kafka does.
//   - An empty transactional id, and a producer id without epoch or the reverse, are INVALID_REQUEST.
//   - A producer with a transactional id gets its id, and an epoch that fences everybody who had one before. A transaction that
//     is open is aborted first: CONCURRENT_TRANSACTIONS, and the producer asks again. A timeout that isn't above 0, or is above
//     transaction.max.timeout.ms, is INVALID_TRANSACTION_TIMEOUT.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: flexible
//	v3: producer id and epoch, to go on after an error (KIP-360)
//	v4: PRODUCER_FENCED may be answered (KIP-588), INVALID_PRODUCER_EPOCH before
//	v5: TRANSACTION_ABORTABLE may be answered (KIP-890); never here
func (h *handlers) initProducerID(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.InitProducerIDRequest)
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	switch {
	case req.TransactionalID != nil && *req.TransactionalID == "",
		req.Version >= 3 && (req.ProducerID == -1) != (req.ProducerEpoch == -1):
		resp.ErrorCode = kerr.InvalidRequest.Code
	case req.TransactionalID != nil && h.Transactions == nil:
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
	case req.TransactionalID != nil:
		in := txn.Init{Timeout: time.Duration(req.TransactionTimeoutMillis) * time.Millisecond}
		if req.Version >= 3 && req.ProducerID != -1 {
			was := producerOf(req.ProducerID, req.ProducerEpoch)
			in.Expected = &was
		}
		p, err := h.Transactions.Init(*req.TransactionalID, in)
		resp.ProducerID, resp.ProducerEpoch, resp.ErrorCode = p.ID, p.Epoch, fencedCode(req.Version >= 4, err)
	default:
		id, err := h.ProducerIDs.Next()
		if resp.ErrorCode = code(err); err == nil {
			resp.ProducerID, resp.ProducerEpoch = id, 0
		}
	}
	return r.Answer(resp)
}
