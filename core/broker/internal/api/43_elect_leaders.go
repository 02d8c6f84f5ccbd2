package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
)

// ElectLeaders (key 43, KIP-183, KIP-460): v0-2
//
// Behaviour:
//   - Only the controller elects; others answer NOT_CONTROLLER.
//   - Makes the preferred replica leader where it isn't, or, with the unclean kind, any living replica where no leader is
//     left, which may lose records. Where neither is needed: ELECTION_NOT_NEEDED.
//   - Without a list it looks at all partitions, and answers for those that got a leader or should have.
//   - A client that isn't ready to wait gets REQUEST_TIMED_OUT, and nothing is elected.
//
// Versions:
//
//	v1: unclean elections, error code for all
//	v2: flexible
func (h *handlers) electLeaders(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.ElectLeadersRequest)
	resp := kmsg.NewPtrElectLeadersResponse()
	c := &controller.ElectLeaders{Unclean: req.ElectionType == 1}
	if req.Topics == nil {
		for _, t := range h.Cluster.Metadata.Snapshot().Topics() {
			for i := range t.Partitions {
				c.Partitions = append(c.Partitions, controller.PartitionID{Topic: t.Name, Partition: t.Partitions[i].Number})
			}
		}
	}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			c.Partitions = append(c.Partitions, controller.PartitionID{Topic: t.Topic, Partition: p})
		}
	}
	results := electionResults{resp: resp, at: map[string]int{}}
	err := h.checkElection(req)
	if err == nil && len(c.Partitions) > 0 {
		err = h.command(ctx, r, c)
	}
	resp.ErrorCode = code(err)
	if err != nil { // topics without partitions are answered too
		for _, t := range req.Topics {
			results.of(t.Topic)
		}
	}
	for i, id := range c.Partitions {
		result := err
		if err == nil {
			result = c.Results[i]
		}
		if req.Topics == nil && (err != nil || code(result) == kerr.ElectionNotNeeded.Code) {
			continue
		}
		out := results.of(id.Topic)
		out.Partitions = append(out.Partitions, kmsg.ElectLeadersResponseTopicPartition{
			Partition: id.Partition, ErrorCode: code(result), ErrorMessage: timeoutMessage(result)})
	}
	return r.Answer(resp)
}

func (h *handlers) checkElection(req *kmsg.ElectLeadersRequest) error {
	switch {
	case req.Topics != nil && len(req.Topics) == 0:
		return nil
	case req.TimeoutMillis <= 0:
		return timedOut()
	case req.ElectionType != 0 && req.ElectionType != 1:
		return refuse(kerr.InvalidRequest, "Unknown election type.")
	}
	return nil
}

// electionResults are the results by topic.
type electionResults struct {
	resp *kmsg.ElectLeadersResponse
	at   map[string]int // of a topic, its place in the response
}

// of finds or makes the place for a topic's results. It is valid until the next call.
func (r electionResults) of(topic string) *kmsg.ElectLeadersResponseTopic {
	i, ok := r.at[topic]
	if !ok {
		i = len(r.resp.Topics)
		r.at[topic] = i
		r.resp.Topics = append(r.resp.Topics, kmsg.ElectLeadersResponseTopic{Topic: topic})
	}
	return &r.resp.Topics[i]
}
