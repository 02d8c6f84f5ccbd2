package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
)

// OffsetDelete (key 47): v0 (KIP-496)
//
// Behaviour:
//   - Removes a group's offsets for partitions that exist, of topics that the group does not read (GROUP_SUBSCRIBED_TO_TOPIC).
//   - A group with members must be a consumer group, else it isn't known what it reads: NON_EMPTY_GROUP.
//   - Partitions without an offset are fine. An error of the group is the answer's, without topics.
func (h *handlers) offsetDelete(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.OffsetDeleteRequest)
	resp := kmsg.NewPtrOffsetDeleteResponse()
	var partitions []group.TopicPartition
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			if h.hasPartition(t.Topic, p.Partition) {
				partitions = append(partitions, group.TopicPartition{Topic: t.Topic, Partition: p.Partition})
			}
		}
	}
	refused, err := h.Groups.DeleteOffsets(ctx, req.Group, partitions)
	if err != nil {
		resp.ErrorCode = code(err)
		return r.Answer(resp)
	}
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetDeleteResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetDeleteResponseTopicPartition()
			rp.Partition = p.Partition
			switch {
			case refused[group.TopicPartition{Topic: t.Topic, Partition: p.Partition}]:
				rp.ErrorCode = code(group.ErrSubscribed)
			case !h.hasPartition(t.Topic, p.Partition):
				rp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		if len(rt.Partitions) > 0 {
			resp.Topics = append(resp.Topics, rt)
		}
	}
	return r.Answer(resp)
}
