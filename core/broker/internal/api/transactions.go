package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
)

// addTransactions adds the requests of the transaction coordinator to the table.
func (h *handlers) addTransactions(t *Table) {
	t.add(kmsg.AddPartitionsToTxn, 0, 5, h.addPartitionsToTxn)
	t.add(kmsg.AddOffsetsToTxn, 0, 4, h.addOffsetsToTxn)
	t.add(kmsg.EndTxn, 0, 4, h.endTxn)
	t.add(kmsg.TxnOffsetCommit, 0, 4, h.txnOffsetCommit)
	t.add(kmsg.DescribeTransactions, 0, 0, h.describeTransactions)
	t.add(kmsg.ListTransactions, 0, 1, h.listTransactions)
}

// fencedCode is a code for versions that may not know PRODUCER_FENCED (KIP-588): INVALID_PRODUCER_EPOCH in its place.
func fencedCode(known bool, err error) int16 {
	c := code(err)
	if c == kerr.ProducerFenced.Code && !known {
		return kerr.InvalidProducerEpoch.Code
	}
	return c
}

// abortableCode is a code for versions that may not know TRANSACTION_ABORTABLE (KIP-890): INVALID_TXN_STATE in its place.
func abortableCode(known bool, c int16) int16 {
	if c == kerr.TransactionAbortable.Code && !known {
		return kerr.InvalidTxnState.Code
	}
	return c
}

func producerOf(id int64, epoch int16) txn.Producer { return txn.Producer{ID: id, Epoch: epoch} }
