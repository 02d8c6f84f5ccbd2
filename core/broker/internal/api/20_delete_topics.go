package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
)

// DeleteTopics (key 20): v0-6
//
// Behaviour:
//   - Only the controller deletes topics; others answer NOT_CONTROLLER.
//   - Each topic succeeds or fails by itself. A name that is given twice is answered twice; an id once, with
//     INVALID_REQUEST.
//   - The answer comes when this broker has forgotten the topics, or with REQUEST_TIMED_OUT when the client's time is over
//     (at once for a time of 0). They are deleted all the same; replicas on brokers that are down go when those come back.
//   - TOPIC_DELETION_DISABLED when delete.topic.enable is false.
//
// Versions:
//
//	v1: throttle time
//	v2: answered before throttling (KIP-219)
//	v3: TOPIC_DELETION_DISABLED (before: INVALID_REQUEST)
//	v4: flexible
//	v5: error message (KIP-599)
//	v6: by id (KIP-516)
func (h *handlers) deleteTopics(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DeleteTopicsRequest)
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.Topics = h.toDelete(req)
	c := &controller.DeleteTopics{}
	place := map[string]int{} // of each name in the command
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.ErrorCode != 0 {
			continue
		}
		if _, ok := place[*t.Topic]; !ok {
			place[*t.Topic] = len(c.Topics)
			c.Topics = append(c.Topics, *t.Topic)
		}
	}
	if len(c.Topics) == 0 {
		return r.Answer(resp)
	}
	before := h.Cluster.Metadata.Snapshot()
	err := h.command(ctx, r, c)
	done := func(name string, s *metadata.Snapshot) bool {
		if err != nil || c.Results[place[name]] != nil {
			return true
		}
		old, was := before.Topic(name)
		now, is := s.Topic(name)
		return !is || was && now.ID != old.ID // it may have been created again
	}
	s, _ := h.awaitCluster(ctx, r, req.TimeoutMillis, func(s *metadata.Snapshot) bool {
		for name := range place {
			if !done(name, s) {
				return false
			}
		}
		return true
	})
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.ErrorCode != 0 {
			continue
		}
		result := err
		switch {
		case result != nil:
		case c.Results[place[*t.Topic]] != nil:
			result = c.Results[place[*t.Topic]]
		case req.TimeoutMillis <= 0 || !done(*t.Topic, s):
			result = timedOut()
		}
		t.ErrorCode = code(result)
		if t.ErrorCode == kerr.TopicDeletionDisabled.Code && req.Version < 3 {
			t.ErrorCode = kerr.InvalidRequest.Code
		}
	}
	return r.Answer(resp)
}

// toDelete makes the results of a request, with names where there are any and errors where there are no topics.
func (h *handlers) toDelete(req *kmsg.DeleteTopicsRequest) []kmsg.DeleteTopicsResponseTopic {
	var all []kmsg.DeleteTopicsResponseTopic
	if req.Version < 6 {
		for _, name := range req.TopicNames {
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.Topic = &name
			all = append(all, out)
		}
		return all
	}
	s := h.Cluster.Metadata.Snapshot()
	count := map[[16]byte]int{}
	for _, in := range req.Topics {
		if in.Topic == nil {
			count[in.TopicID]++
		}
	}
	told := map[[16]byte]bool{}
	for _, in := range req.Topics {
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = in.Topic, in.TopicID
		var err error
		switch hasID := in.TopicID != ([16]byte{}); {
		case in.Topic == nil && !hasID:
			err = refuse(kerr.InvalidRequest, "Neither topic name nor id were specified.")
		case in.Topic != nil && hasID:
			err = refuse(kerr.InvalidRequest, "You may not specify both topic name and topic id.")
		case hasID && count[in.TopicID] > 1:
			if told[in.TopicID] {
				continue
			}
			told[in.TopicID] = true
			err = refuse(kerr.InvalidRequest, "The topic id is in the request more than once.")
		case hasID:
			t, ok := s.TopicByID(in.TopicID)
			if !ok {
				err = refuse(kerr.UnknownTopicID, "This server does not host this topic ID.")
				break
			}
			out.Topic = &t.Name
		}
		out.ErrorCode, out.ErrorMessage = code(err), message(err)
		all = append(all, out)
	}
	return all
}
