package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
)

// ListPartitionReassignments (key 46, KIP-455): v0
//
// Behaviour:
//   - Lists the partitions that are moving, of those that are named or of all. Only the controller knows; others answer
//     NOT_CONTROLLER.
func (h *handlers) listPartitionReassignments(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.ListPartitionReassignmentsRequest)
	resp := kmsg.NewPtrListPartitionReassignmentsResponse()
	resp.ErrorMessage = kmsg.StringPtr("")
	c := &controller.ListReassignments{}
	if req.Topics != nil {
		c.Partitions = []controller.PartitionID{}
	}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			c.Partitions = append(c.Partitions, controller.PartitionID{Topic: t.Topic, Partition: p})
		}
	}
	if err := h.command(ctx, r, c); err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), message(err)
		return r.Answer(resp)
	}
	for _, o := range c.Ongoing {
		if last := len(resp.Topics) - 1; last < 0 || resp.Topics[last].Topic != o.Topic {
			resp.Topics = append(resp.Topics, kmsg.ListPartitionReassignmentsResponseTopic{Topic: o.Topic})
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, kmsg.ListPartitionReassignmentsResponseTopicPartition{Partition: o.Partition,
			Replicas: o.Assignment.Replicas, AddingReplicas: o.Assignment.Adding, RemovingReplicas: o.Assignment.Removing})
	}
	return r.Answer(resp)
}
