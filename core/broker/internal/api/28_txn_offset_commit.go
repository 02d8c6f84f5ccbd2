package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// TxnOffsetCommit (key 28): v0-4
//
// Behaviour:
//   - Stores offsets of a group that count when the producer's transaction commits, and are forgotten when it aborts.
//   - The group has to be part of the transaction, see AddOffsetsToTxn: else TRANSACTION_ABORTABLE. A producer that isn't the
//     current one is INVALID_PRODUCER_EPOCH. Once a group has offsets of a transaction only the producer is looked at, and not
//     the transactional id.
//   - Partitions that don't exist are refused, UNKNOWN_TOPIC_OR_PARTITION, and so is metadata that is too large,
//     OFFSET_METADATA_TOO_LARGE; all others have the one outcome of the commit, see package group.
//   - A null metadata is an empty one.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: leader epoch of the last record consumed (KIP-320); COORDINATOR_LOAD_IN_PROGRESS may come, COORDINATOR_NOT_AVAILABLE before
//	v3: flexible; member, generation and instance are checked (KIP-447)
//	v4: TRANSACTION_ABORTABLE may come (KIP-890), INVALID_TXN_STATE before
func (h *handlers) txnOffsetCommit(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.TxnOffsetCommitRequest)
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	c := group.TxnCommit{
		Member:   group.Member{ID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation},
		Producer: producerOf(req.ProducerID, req.ProducerEpoch),
		Offsets:  map[group.TopicPartition]offsets.Offset{},
	}
	if req.Version < 3 {
		c.Member = group.Member{Generation: -1}
	}
	now := h.Now().UnixMilli()
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewTxnOffsetCommitResponseTopic()
		out.Topic = t.Topic
		for j := range t.Partitions {
			p := &t.Partitions[j]
			result := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			result.Partition = p.Partition
			if h.hasPartition(t.Topic, p.Partition) {
				c.Offsets[group.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = toTxnCommit(req.Version, p, now)
			} else {
				result.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			out.Partitions = append(out.Partitions, result)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(c.Offsets) == 0 {
		return r.Answer(resp)
	}
	verify := func() error {
		shard, err := h.Groups.ShardOf(req.Group)
		if err != nil {
			return err
		}
		return h.Transactions.Verify(req.TransactionalID, c.Producer, partition.ID{Topic: h.Groups.TransactionTopic(), Partition: shard})
	}
	defer h.permitCommit(ctx, r, req, c.Producer)()
	tooLarge, err := h.Groups.TxnCommit(ctx, req.Group, c, verify)
	outcome := txnCommitCode(req.Version, err)
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			switch p := &t.Partitions[j]; {
			case p.ErrorCode != 0:
			case err == nil && tooLarge[group.TopicPartition{Topic: t.Topic, Partition: p.Partition}]:
				p.ErrorCode = code(group.ErrMetadataTooLarge)
			default:
				p.ErrorCode = outcome
			}
		}
	}
	return r.Answer(resp)
}

// permitCommit asks the coordinator of the transaction, when that is another broker, whether the group is part of it. What it
// says holds until release is called.
func (h *handlers) permitCommit(ctx context.Context, r *Request, req *kmsg.TxnOffsetCommitRequest, who offsets.Producer) (release func()) {
	shard, err := h.Groups.ShardOf(req.Group)
	if _, elsewhere := h.Transactions.Elsewhere(req.TransactionalID); err != nil || !elsewhere {
		return func() {}
	}
	to := partition.ID{Topic: h.Groups.TransactionTopic(), Partition: shard}
	r.Waiting()
	defer r.Resume()
	return h.Transactions.Permit(ctx, req.TransactionalID, who, []partition.ID{to})
}

func toTxnCommit(version int16, p *kmsg.TxnOffsetCommitRequestTopicPartition, now int64) offsets.Offset {
	o := offsets.Offset{Offset: p.Offset, LeaderEpoch: offsets.None, CommitTimestamp: now, ExpireTimestamp: offsets.None}
	if version >= 2 {
		o.LeaderEpoch = p.LeaderEpoch
	}
	if p.Metadata != nil {
		o.Metadata = *p.Metadata
	}
	return o
}

// txnCommitCode is what a client is told that only knows the answers of a group's coordinator.
func txnCommitCode(version int16, err error) int16 {
	c := abortableCode(version >= 4, fencedCode(false, err))
	if c == kerr.ConcurrentTransactions.Code {
		c = kerr.CoordinatorLoadInProgress.Code // of the transaction's coordinator: to be tried again, here
	}
	if c == kerr.CoordinatorLoadInProgress.Code && version < 2 {
		c = kerr.CoordinatorNotAvailable.Code // clients before 2.3 die of the former
	}
	return c
}
