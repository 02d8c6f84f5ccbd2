package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
)

// CreatePartitions (key 37): v0-3
//
// Behaviour:
//   - Only the controller adds partitions; others answer NOT_CONTROLLER.
//   - Each topic succeeds or fails by itself. One that is named twice is answered once, with INVALID_REQUEST.
//   - Count is how many partitions the topic is to have in all, above what it has. Brokers of an assignment must be alive.
//   - The answer comes when all partitions have a leader, here, or with REQUEST_TIMED_OUT when the client's time is over
//     (at once for a time of 0). They are made all the same.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: flexible
//	v3: may be throttled by quota (KIP-599)
func (h *handlers) createPartitions(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.CreatePartitionsRequest)
	resp := kmsg.NewPtrCreatePartitionsResponse()
	twice := duplicates(req.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic })
	told := map[string]bool{}
	c := &controller.CreatePartitions{ValidateOnly: req.ValidateOnly}
	var at []int
	for i := range req.Topics {
		in := &req.Topics[i]
		if told[in.Topic] {
			continue
		}
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = in.Topic
		if twice[in.Topic] {
			told[in.Topic] = true
			err := refuse(kerr.InvalidRequest, "Duplicate topic in request.")
			out.ErrorCode, out.ErrorMessage = code(err), message(err)
		} else {
			more := controller.MorePartitions{Topic: in.Topic, Count: in.Count}
			if in.Assignment != nil {
				more.Manual = make([][]int32, len(in.Assignment))
				for n := range in.Assignment {
					more.Manual[n] = in.Assignment[n].Replicas
				}
			}
			c.Topics = append(c.Topics, more)
			at = append(at, len(resp.Topics))
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(c.Topics) == 0 {
		return r.Answer(resp)
	}
	err := h.command(ctx, r, c)
	ready := func(n int, s *metadata.Snapshot) bool {
		return err != nil || c.Results[n] != nil || led(s, c.Topics[n].Topic, c.Topics[n].Count)
	}
	s, waited := h.Cluster.Metadata.Snapshot(), true
	if !req.ValidateOnly {
		waited = req.TimeoutMillis > 0
		s, _ = h.awaitCluster(ctx, r, req.TimeoutMillis, func(s *metadata.Snapshot) bool {
			for n := range c.Topics {
				if !ready(n, s) {
					return false
				}
			}
			return true
		})
	}
	for n, i := range at {
		result := err
		switch {
		case result != nil:
		case c.Results[n] != nil:
			result = c.Results[n]
		case !req.ValidateOnly && (!waited || !ready(n, s)):
			result = timedOut()
		}
		resp.Topics[i].ErrorCode, resp.Topics[i].ErrorMessage = code(result), timeoutMessage(result)
	}
	return r.Answer(resp)
}
