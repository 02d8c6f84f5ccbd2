package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// AddPartitionsToTxn (key 24): v0-5
//
// Behaviour:
//   - Adds partitions to the open transaction of a producer, or begins one. It is stored when the answer comes.
//   - All or nothing: with a partition that does not exist, UNKNOWN_TOPIC_OR_PARTITION, or that belongs to an internal topic and is
//     asked for by a client (up to v3), TOPIC_AUTHORIZATION_FAILED, all others are OPERATION_NOT_ATTEMPTED.
//   - While the last transaction is being ended: CONCURRENT_TRANSACTIONS, and the client tries again.
//   - Verify only (v4) asks whether partitions are part of the open transaction, TRANSACTION_ABORTABLE if not, and changes
//     nothing.
//   - An unknown transactional id, or one with another producer id, is INVALID_PRODUCER_ID_MAPPING.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: PRODUCER_FENCED may come (KIP-588), INVALID_PRODUCER_EPOCH before
//	v3: flexible
//	v4: several transactions, and verify only: for brokers (KIP-890)
//	v5: TRANSACTION_ABORTABLE may come (KIP-890)
func (h *handlers) addPartitionsToTxn(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.AddPartitionsToTxnRequest)
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	if req.Version < 4 {
		one := kmsg.NewAddPartitionsToTxnRequestTransaction()
		one.TransactionalID, one.ProducerID, one.ProducerEpoch = req.TransactionalID, req.ProducerID, req.ProducerEpoch
		for _, t := range req.Topics {
			one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
		for _, t := range h.addToTxn(req.Version, &one) {
			out := kmsg.AddPartitionsToTxnResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				out.Partitions = append(out.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return r.Answer(resp)
	}
	for i := range req.Transactions {
		in := &req.Transactions[i]
		out := kmsg.NewAddPartitionsToTxnResponseTransaction()
		out.TransactionalID = in.TransactionalID
		out.Topics = h.addToTxn(req.Version, in)
		resp.Transactions = append(resp.Transactions, out)
	}
	return r.Answer(resp)
}

// addToTxn adds partitions to one transaction, or verifies that they are in it.
func (h *handlers) addToTxn(version int16, in *kmsg.AddPartitionsToTxnRequestTransaction) []kmsg.AddPartitionsToTxnResponseTransactionTopic {
	var partitions []partition.ID
	refused := map[partition.ID]int16{}
	for _, t := range in.Topics {
		for _, number := range t.Partitions {
			id := partition.ID{Topic: t.Topic, Partition: number}
			partitions = append(partitions, id)
			switch {
			case version < 4 && internalTopic(t.Topic):
				refused[id] = kerr.TopicAuthorizationFailed.Code
			case !h.hasPartition(t.Topic, number):
				refused[id] = kerr.UnknownTopicOrPartition.Code
			}
		}
	}
	codes := make([]int16, len(partitions))
	who := producerOf(in.ProducerID, in.ProducerEpoch)
	var err error
	switch {
	case len(refused) > 0:
		for i, id := range partitions {
			codes[i] = kerr.OperationNotAttempted.Code
			if c, ok := refused[id]; ok {
				codes[i] = c
			}
		}
	case in.VerifyOnly:
		var errs []error
		if errs, err = h.Transactions.InTransaction(in.TransactionalID, who, partitions); err == nil {
			for i := range errs {
				codes[i] = code(errs[i])
			}
		}
	default:
		err = h.Transactions.Add(in.TransactionalID, who, partitions)
	}
	if err != nil {
		for i := range codes {
			codes[i] = fencedCode(version >= 2, err)
		}
	}
	topics := make([]kmsg.AddPartitionsToTxnResponseTransactionTopic, len(in.Topics))
	at := 0
	for i, t := range in.Topics {
		topics[i].Topic = t.Topic
		for _, number := range t.Partitions {
			topics[i].Partitions = append(topics[i].Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: number, ErrorCode: codes[at]})
			at++
		}
	}
	return topics
}
