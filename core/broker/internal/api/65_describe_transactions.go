package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeTransactions (key 65, KIP-664): v0
//
// Behaviour:
//   - Only the coordinator of a transactional id answers. An id that isn't known is TRANSACTIONAL_ID_NOT_FOUND, an empty one
//     INVALID_REQUEST.
//   - Partitions are those of the open transaction, or of the one that is being ended.
func (h *handlers) describeTransactions(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DescribeTransactionsRequest)
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	for _, id := range req.TransactionalIDs {
		out := kmsg.NewDescribeTransactionsResponseTransactionState()
		out.TransactionalID = id
		d, err := h.Transactions.Describe(id)
		if err != nil {
			out.ErrorCode = code(err)
			resp.TransactionStates = append(resp.TransactionStates, out)
			continue
		}
		out.State, out.TimeoutMillis, out.StartTimestamp = d.State.String(), int32(d.Timeout.Milliseconds()), d.Started
		out.ProducerID, out.ProducerEpoch = d.ProducerID, d.Epoch
		for _, p := range d.Partitions {
			n := len(out.Topics) - 1
			if n < 0 || out.Topics[n].Topic != p.Topic {
				t := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
				t.Topic = p.Topic
				out.Topics = append(out.Topics, t)
				n++
			}
			out.Topics[n].Partitions = append(out.Topics[n].Partitions, p.Partition)
		}
		resp.TransactionStates = append(resp.TransactionStates, out)
	}
	return r.Answer(resp)
}
