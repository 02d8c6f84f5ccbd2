package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
)

// AlterPartitionReassignments (key 45, KIP-455): v0-1
//
// Behaviour:
//   - Only the controller moves partitions; others answer NOT_CONTROLLER.
//   - Each partition begins to move to its target, or, without replicas, goes back to where it comes from. It has arrived when
//     all of the target are in sync; ListPartitionReassignments says what is on its way.
//   - Replicas that are new must be on living brokers.
//
// Versions:
//
//	v1: whether the number of replicas may change (KIP-860)
func (h *handlers) alterPartitionAssignments(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.AlterPartitionAssignmentsRequest)
	resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	resp.ErrorMessage = kmsg.StringPtr("")
	c := &controller.AlterReassignments{SameFactor: req.Version >= 1 && !req.AllowReplicationFactorChange}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			c.Partitions = append(c.Partitions, controller.Reassignment{
				PartitionID: controller.PartitionID{Topic: t.Topic, Partition: p.Partition}, Replicas: p.Replicas})
		}
	}
	if len(c.Partitions) == 0 {
		return r.Answer(resp)
	}
	if err := h.command(ctx, r, c); err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), message(err)
		return r.Answer(resp)
	}
	n := 0
	for _, t := range req.Topics {
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			err := c.Results[n]
			n++
			out.Partitions = append(out.Partitions, kmsg.AlterPartitionAssignmentsResponseTopicPartition{
				Partition: p.Partition, ErrorCode: code(err), ErrorMessage: message(err)})
		}
		if len(out.Partitions) > 0 {
			resp.Topics = append(resp.Topics, out)
		}
	}
	return r.Answer(resp)
}
