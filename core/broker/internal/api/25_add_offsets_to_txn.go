package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// AddOffsetsToTxn (key 25): v0-4
//
// Behaviour:
//   - Adds the partition that keeps the offsets of a group to the open transaction of a producer, or begins one, so that
//     TxnOffsetCommit may follow. Any group id is valid, also an empty one.
//   - Errors are those of AddPartitionsToTxn.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: PRODUCER_FENCED may come (KIP-588), INVALID_PRODUCER_EPOCH before
//	v3: flexible
//	v4: TRANSACTION_ABORTABLE may come (KIP-890); never here
func (h *handlers) addOffsetsToTxn(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.AddOffsetsToTxnRequest)
	resp := kmsg.NewPtrAddOffsetsToTxnResponse()
	err := h.Groups.Prepare(ctx)
	if err == nil {
		var shard int32
		if shard, err = h.Groups.ShardOf(req.Group); err == nil {
			err = h.Transactions.Add(req.TransactionalID, producerOf(req.ProducerID, req.ProducerEpoch),
				[]partition.ID{{Topic: h.Groups.TransactionTopic(), Partition: shard}})
		}
	}
	resp.ErrorCode = fencedCode(req.Version >= 2, err)
	return r.Answer(resp)
}
