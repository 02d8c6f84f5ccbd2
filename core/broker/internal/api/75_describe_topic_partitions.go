package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
)

// DescribeTopicPartitions (key 75, KIP-966): v0
//
// Behaviour:
//   - Metadata page by page: topics by name, partitions by number, from a cursor on, at most as many partitions as the client
//     and max.request.partition.size.limit allow; then a cursor says where to go on.
//   - No topics are all topics. Topics are never created.
//   - Eligible leader replicas are not kept here: the lists are null.
func (h *handlers) describeTopicPartitions(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DescribeTopicPartitionsRequest)
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	s := h.Cluster.Metadata.Snapshot()
	var names []string
	for i := range req.Topics {
		names = append(names, req.Topics[i].Topic)
	}
	if len(names) == 0 {
		for _, t := range s.Topics() {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	left := 2000
	if broker, err := h.layers().BrokerConfig(); err == nil {
		left = int(broker.MaxRequestPartitionSizeLimit)
	}
	if req.ResponsePartitionLimit > 0 {
		left = min(left, int(req.ResponsePartitionLimit))
	}
	for _, name := range names {
		first := int32(0)
		if req.Cursor != nil {
			if name < req.Cursor.Topic {
				continue
			}
			if name == req.Cursor.Topic {
				first = req.Cursor.Partition
			}
		}
		if left <= 0 {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: first}
			break
		}
		out, next := topicPage(s, r.Listener(), name, first, left)
		left -= max(1, len(out.Partitions)) // a topic that is unknown counts too, so that every answer has an end
		resp.Topics = append(resp.Topics, out)
		if next >= 0 {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: next}
			break
		}
	}
	return r.Answer(resp)
}

// topicPage describes a topic's partitions from first on, at most limit; next is where the rest begins, -1 without one.
func topicPage(s *metadata.Snapshot, listener, name string, first int32, limit int) (out kmsg.DescribeTopicPartitionsResponseTopic, next int32) {
	out = kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.IsInternal = &name, controller.Internal(name)
	t, ok := s.Topic(name)
	if !ok {
		out.ErrorCode = kerr.UnknownTopicOrPartition.Code
		if err := controller.CheckTopicName(name); err != nil {
			out.ErrorCode = code(err)
		}
		return out, -1
	}
	out.TopicID, out.AuthorizedOperations = t.ID, topicOperations
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if p.Number < first {
			continue
		}
		if len(out.Partitions) == limit {
			return out, p.Number
		}
		o := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		o.Partition, o.LeaderEpoch, o.Replicas, o.ISR, o.OfflineReplicas = p.Number, p.LeaderEpoch, p.Replicas, p.ISR, p.Offline
		// Null is allowed, and Kafka's own admin client falls over it: without KIP-966 there are none, so the lists are empty.
		o.EligibleLeaderReplicas, o.LastKnownELR = []int32{}, []int32{}
		o.LeaderID, o.ErrorCode = leaderThrough(s, p, listener, true)
		out.Partitions = append(out.Partitions, o)
	}
	return out, -1
}
