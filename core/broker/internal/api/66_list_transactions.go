package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
)

// ListTransactions (key 66, KIP-664): v0-1
//
// Behaviour:
//   - Lists the transactional ids that this broker coordinates, also those that have no transaction open. Filters are by state,
//     producer id and age; those that are empty let everything through. States that don't exist are named in the answer.
//   - COORDINATOR_LOAD_IN_PROGRESS while not all are known.
//
// Versions:
//
//	v1: only transactions that began longer ago than a duration (KIP-994); an id that never began one counts as very old
func (h *handlers) listTransactions(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.ListTransactionsRequest)
	resp := kmsg.NewPtrListTransactionsResponse()
	for _, s := range req.StateFilters {
		if !transactionState(s) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, s)
		}
	}
	list, err := h.Transactions.List()
	resp.ErrorCode = code(err)
	now := h.Now().UnixMilli()
	for _, d := range list {
		switch {
		case len(req.StateFilters) > 0 && !slices.Contains(req.StateFilters, d.State.String()):
		case len(req.ProducerIDFilters) > 0 && !slices.Contains(req.ProducerIDFilters, d.ProducerID):
		case req.Version >= 1 && req.DurationFilterMillis >= 0 && now-d.Started <= req.DurationFilterMillis:
		default:
			s := kmsg.NewListTransactionsResponseTransactionState()
			s.TransactionalID, s.ProducerID, s.TransactionState = d.ID, d.ProducerID, d.State.String()
			resp.TransactionStates = append(resp.TransactionStates, s)
		}
	}
	return r.Answer(resp)
}

// transactionState says whether Kafka has a state of that name. PrepareEpochFence it never shows.
func transactionState(name string) bool {
	for s := txn.Empty; s <= txn.Dead; s++ {
		if s.String() == name {
			return true
		}
	}
	return name == "PrepareEpochFence"
}
