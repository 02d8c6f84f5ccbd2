package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/election"
)

// AllocateProducerIds (key 67, KIP-730): v0, from a broker to the controller
//
// Behaviour:
//   - Gives a block of producer ids that nobody had before. Barnabas's own brokers take theirs from the coordination; this is
//     for brokers of Apache Kafka in the same cluster.
//   - NOT_CONTROLLER; BROKER_ID_NOT_REGISTERED; STALE_BROKER_EPOCH for any but the broker's registration.
func (h *handlers) allocateProducerIDs(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.AllocateProducerIDsRequest)
	resp := kmsg.NewPtrAllocateProducerIDsResponse()
	resp.ProducerIDStart = -1
	r.Waiting()
	defer r.Resume()
	block, err := h.producerIDBlock(ctx, req.BrokerID, req.BrokerEpoch)
	if resp.ErrorCode = code(err); err == nil {
		resp.ProducerIDStart, resp.ProducerIDLen = block.First, block.Count
	}
	return r.Answer(resp)
}

func (h *handlers) producerIDBlock(ctx context.Context, broker int32, epoch int64) (election.ProducerIDBlock, error) {
	if !h.Cluster.Controller.Active() {
		return election.ProducerIDBlock{}, kerr.NotController
	}
	alive, err := h.Cluster.Coordination.Membership().Brokers(ctx)
	if err != nil {
		return election.ProducerIDBlock{}, err
	}
	for _, b := range alive {
		switch {
		case b.ID != broker:
		case b.Epoch != epoch:
			return election.ProducerIDBlock{}, kerr.StaleBrokerEpoch
		default:
			return h.Cluster.Coordination.Metadata().ProducerIDs(ctx, broker, 0)
		}
	}
	return election.ProducerIDBlock{}, kerr.BrokerIDNotRegistered
}
