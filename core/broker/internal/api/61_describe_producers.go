package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// DescribeProducers (key 61, KIP-664): v0
//
// Behaviour:
//   - Lists the idempotent and transactional producers that a partition's log remembers. Only the leader answers.
func (h *handlers) describeProducers(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DescribeProducersRequest)
	resp := kmsg.NewPtrDescribeProducersResponse()
	for i := range req.Topics {
		in := &req.Topics[i]
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = in.Topic
		for _, number := range in.Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = number
			if err := h.producers(in.Topic, &p); err != nil {
				p.ErrorCode, p.ErrorMessage = code(err), message(err)
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return r.Answer(resp)
}

func (h *handlers) producers(topic string, out *kmsg.DescribeProducersResponseTopicPartition) error {
	if err := controller.CheckTopicName(topic); err != nil {
		return err
	}
	t, ok := h.Cluster.Metadata.Snapshot().Topic(topic)
	if !ok {
		return refuse(kerr.UnknownTopicOrPartition, "This server does not host this topic-partition.")
	}
	if _, ok := t.Partition(out.Partition); !ok {
		out.ErrorCode = kerr.UnknownTopicOrPartition.Code // without a message, as in Kafka
		return nil
	}
	p, err := h.Partitions.Get(partition.ID{Topic: topic, Partition: out.Partition})
	if err != nil {
		return err
	}
	if !p.IsLeader() {
		return kerr.NotLeaderForPartition
	}
	for _, s := range p.Producers() {
		out.ActiveProducers = append(out.ActiveProducers, kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
			ProducerID: s.ProducerID, ProducerEpoch: int32(s.Epoch), LastSequence: s.LastSequence, LastTimestamp: s.LastTimestamp,
			CoordinatorEpoch: s.CoordinatorEpoch, CurrentTxnStartOffset: s.TxnStartOffset})
	}
	return nil
}
