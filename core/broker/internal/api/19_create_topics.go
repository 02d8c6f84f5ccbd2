package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// CreateTopics (key 19): v0-7
//
// Behaviour:
//   - Only the controller creates topics; others answer NOT_CONTROLLER.
//   - Each topic succeeds or fails by itself. One that is named twice fails both times.
//   - -1 partitions or replicas are the broker's defaults; both must be -1 when replicas are assigned by hand. Brokers of
//     such an assignment needn't be alive, but for the time being their partitions have no leader.
//   - The answer comes when all partitions have a leader, here, or with REQUEST_TIMED_OUT when the client's time is over
//     (at once for a time of 0). The topic is created all the same.
//   - A setting that is given twice counts the last time; one without a value is an INVALID_CONFIG.
//
// Versions:
//
//	v1: validate only; error message
//	v2: throttle time
//	v3: answered before throttling (KIP-219)
//	v4: defaults by -1 (KIP-464); older versions may use them too
//	v5: flexible; the topic's counts and configuration (KIP-525)
//	v6: may be throttled by quota (KIP-599)
//	v7: topic id (KIP-516)
func (h *handlers) createTopics(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.CreateTopicsRequest)
	resp := kmsg.NewPtrCreateTopicsResponse()
	twice := duplicates(req.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	c := &controller.CreateTopics{ValidateOnly: req.ValidateOnly}
	at := make([]int, 0, len(req.Topics)) // of each topic of the command, its place in the response
	for i := range req.Topics {
		in := &req.Topics[i]
		out := kmsg.NewCreateTopicsResponseTopic()
		out.Topic, out.Configs = in.Topic, []kmsg.CreateTopicsResponseTopicConfig{}
		topic, err := h.newTopic(in)
		switch {
		case twice[in.Topic]:
			fail(&out, refuse(kerr.InvalidRequest, "Create topics request from client contains multiple entries for the topic "+in.Topic))
		case err != nil:
			fail(&out, err)
		default:
			c.Topics = append(c.Topics, topic)
			at = append(at, i)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(c.Topics) == 0 {
		return r.Answer(resp)
	}
	err := h.command(ctx, r, c)
	for n, i := range at {
		if err != nil {
			fail(&resp.Topics[i], err)
		} else {
			h.created(&resp.Topics[i], &c.Topics[n], &c.Results[n])
		}
	}
	if !req.ValidateOnly {
		h.awaitCreated(ctx, r, req, resp)
	}
	return r.Answer(resp)
}

func fail(out *kmsg.CreateTopicsResponseTopic, err error) {
	out.ErrorCode, out.ErrorMessage = code(err), timeoutMessage(err)
	out.NumPartitions, out.ReplicationFactor = -1, -1
	out.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
}

// newTopic reads a topic of a request.
func (h *handlers) newTopic(in *kmsg.CreateTopicsRequestTopic) (controller.NewTopic, error) {
	t := controller.NewTopic{Name: in.Topic, Partitions: in.NumPartitions, ReplicationFactor: in.ReplicationFactor}
	for _, a := range in.ReplicaAssignment {
		t.Manual = append(t.Manual, controller.ManualPartition{Partition: a.Partition, Replicas: a.Replicas})
	}
	values := map[string]string{}
	for _, c := range in.Configs {
		if c.Value == nil {
			return t, refuse(kerr.InvalidConfig, "Null value not supported for topic configs: "+c.Name)
		}
		values[c.Name] = *c.Value
	}
	settings := make([]kafka.Setting, 0, len(values))
	for name, value := range values {
		settings = append(settings, kafka.Setting{Name: name, Value: &value})
	}
	if t.Config = values; len(values) > 0 {
		if canonical, err := h.layers().ChangeTopic(settings); err == nil {
			t.Config = canonical // else the controller says what is wrong, after what it finds first
		}
	}
	return t, nil
}

// created says how a topic was created, or would be.
func (h *handlers) created(out *kmsg.CreateTopicsResponseTopic, in *controller.NewTopic, result *controller.CreatedTopic) {
	if result.Err != nil {
		fail(out, result.Err)
		return
	}
	out.TopicID, out.NumPartitions, out.ReplicationFactor = result.ID, result.Partitions, result.ReplicationFactor
	for _, e := range h.layers().DescribeTopic(in.Config) {
		out.Configs = append(out.Configs, kmsg.CreateTopicsResponseTopicConfig{Name: e.Name, Value: e.Value,
			ReadOnly: e.ReadOnly, Source: int8(e.Source), IsSensitive: e.Sensitive})
	}
}

// awaitCreated waits until the topics of a response can be used, and says of which that isn't so in time.
func (h *handlers) awaitCreated(ctx context.Context, r *Request, req *kmsg.CreateTopicsRequest, resp *kmsg.CreateTopicsResponse) {
	ready := func(t *kmsg.CreateTopicsResponseTopic, s *metadata.Snapshot) bool {
		return t.ErrorCode != 0 || led(s, t.Topic, t.NumPartitions)
	}
	s, _ := h.awaitCluster(ctx, r, req.TimeoutMillis, func(s *metadata.Snapshot) bool {
		for i := range resp.Topics {
			if !ready(&resp.Topics[i], s) {
				return false
			}
		}
		return true
	})
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.ErrorCode == 0 && (req.TimeoutMillis <= 0 || !ready(t, s)) {
			fail(t, timedOut())
		}
	}
}
