package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// Metadata (key 3): v0-13
//
// Behaviour:
//   - Brokers are those that can be reached through a listener of the name that the client came through, with their address
//     there.
//   - No list of topics asks for all (v0: an empty one). A topic that is asked for twice is answered once.
//   - A topic that is unknown is created, when the client and auto.create.topics.enable allow it; the answer is
//     LEADER_NOT_AVAILABLE, and the client asks again.
//   - A partition without a leader has LEADER_NOT_AVAILABLE; one whose leader has no such listener LISTENER_NOT_FOUND (before
//     v6 LEADER_NOT_AVAILABLE).
//   - One topic by id makes the request one by ids: names in it are not looked at. Ids before v12, and neither name nor
//     id, spoil the whole request.
//
// Versions:
//
//	v1: null for all topics; rack, controller, internal
//	v2: cluster id
//	v3: throttle time
//	v4: whether topics may be created
//	v5: offline replicas (KIP-112)
//	v6: answered before throttling (KIP-219); LISTENER_NOT_FOUND
//	v7: leader epochs (KIP-320)
//	v8: authorized operations (KIP-430)
//	v9: flexible
//	v10: topic ids in the response (KIP-516)
//	v11: no operations of the cluster any more (KIP-700)
//	v12: topic ids in the request
//	v13: an error code for all, for clients that must bootstrap again (KIP-1102); here always 0
func (h *handlers) metadata(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.MetadataRequest)
	resp := kmsg.NewPtrMetadataResponse()
	resp.ControllerID = -1
	if err := checkMetadata(req); err != nil {
		for _, t := range req.Topics {
			out := kmsg.NewMetadataResponseTopic()
			out.ErrorCode, out.TopicID, out.Topic = code(err), t.TopicID, t.Topic
			if out.Topic == nil {
				out.Topic = kmsg.StringPtr("")
			}
			resp.Topics = append(resp.Topics, out)
		}
		return r.Answer(resp)
	}
	s := h.Cluster.Metadata.Snapshot()
	if all := req.Topics == nil || req.Version == 0 && len(req.Topics) == 0; all {
		for _, t := range s.Topics() {
			resp.Topics = append(resp.Topics, h.describeTopic(s, r, req, t))
		}
	} else {
		resp.Topics = h.namedTopics(ctx, s, r, req)
	}
	for _, b := range s.Brokers() {
		if host, port, ok := b.Endpoint(r.Listener()); ok {
			out := kmsg.MetadataResponseBroker{NodeID: b.ID, Host: host, Port: port}
			if b.Rack != "" {
				out.Rack = &b.Rack
			}
			resp.Brokers = append(resp.Brokers, out)
		}
	}
	resp.ClusterID = &h.Cluster.ClusterID
	resp.ControllerID, _ = s.Controller()
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	return r.Answer(resp)
}

// checkMetadata finds what spoils a whole request.
func checkMetadata(req *kmsg.MetadataRequest) error {
	byID := slices.ContainsFunc(req.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.TopicID != [16]byte{} })
	nameless := slices.ContainsFunc(req.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.Topic == nil && t.TopicID == [16]byte{} })
	switch {
	case req.Version < 12 && (byID || nameless):
		return kerr.InvalidRequest
	case nameless && !byID:
		return kerr.UnknownServerError // what Kafka 3.9 says
	}
	return nil
}

// namedTopics answers for the topics that a request names.
func (h *handlers) namedTopics(ctx context.Context, s *metadata.Snapshot, r *Request, req *kmsg.MetadataRequest) []kmsg.MetadataResponseTopic {
	topics := make([]kmsg.MetadataResponseTopic, 0, len(req.Topics))
	var unknown []string
	names, ids := map[string]bool{}, map[[16]byte]bool{}
	byID := slices.ContainsFunc(req.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.TopicID != [16]byte{} })
	for _, in := range req.Topics {
		if byID {
			if in.TopicID == ([16]byte{}) || ids[in.TopicID] {
				continue
			}
			ids[in.TopicID] = true
			if t, ok := s.TopicByID(in.TopicID); ok {
				topics = append(topics, h.describeTopic(s, r, req, t))
				continue
			}
			out := kmsg.NewMetadataResponseTopic()
			out.ErrorCode, out.TopicID = kerr.UnknownTopicID.Code, in.TopicID
			topics = append(topics, out)
			continue
		}
		if names[*in.Topic] {
			continue
		}
		names[*in.Topic] = true
		if t, ok := s.Topic(*in.Topic); ok {
			topics = append(topics, h.describeTopic(s, r, req, t))
		} else {
			unknown = append(unknown, *in.Topic)
		}
	}
	return append(topics, h.unknownTopics(ctx, r, req, unknown)...)
}

// unknownTopics answers for topics that aren't there, and creates those that may be created.
func (h *handlers) unknownTopics(ctx context.Context, r *Request, req *kmsg.MetadataRequest, names []string) []kmsg.MetadataResponseTopic {
	allowed := req.Version < 4 || req.AllowAutoTopicCreation
	if allowed && len(names) > 0 {
		enabled, _, _ := h.Cluster.Configs.Layers().Get("auto.create.topics.enable")
		allowed = enabled == "true"
	}
	topics := make([]kmsg.MetadataResponseTopic, 0, len(names))
	var create []controller.NewTopic
	var at []int // of each topic to create, its place in topics
	for _, name := range names {
		out := kmsg.NewMetadataResponseTopic()
		out.Topic, out.IsInternal = kmsg.StringPtr(name), controller.Internal(name)
		out.ErrorCode = kerr.UnknownTopicOrPartition.Code
		if err := controller.CheckTopicName(name); err != nil {
			out.ErrorCode = code(err)
		} else if allowed {
			out.ErrorCode = kerr.LeaderNotAvailable.Code
			create = append(create, h.autoTopic(name))
			at = append(at, len(topics))
		}
		topics = append(topics, out)
	}
	if len(create) == 0 {
		return topics
	}
	r.Waiting()
	results, err := h.Cluster.CreateTopics(ctx, create)
	r.Resume()
	if err != nil {
		return topics // the client asks again
	}
	for i, err := range results {
		if err == nil || code(err) == kerr.TopicAlreadyExists.Code {
			continue
		}
		topics[at[i]].ErrorCode = code(err)
	}
	return topics
}

// autoTopic is a topic as a client's interest in it creates it.
func (h *handlers) autoTopic(name string) controller.NewTopic {
	if controller.Internal(name) {
		return controller.InternalTopic(name, h.Cluster.Configs.Layers())
	}
	return controller.NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1}
}

// describeTopic says what is known of a topic.
func (h *handlers) describeTopic(s *metadata.Snapshot, r *Request, req *kmsg.MetadataRequest, t *metadata.Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, controller.Internal(t.Name)
	if req.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = topicOperations
	}
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i := range t.Partitions {
		p := &t.Partitions[i]
		o := kmsg.NewMetadataResponseTopicPartition()
		o.Partition, o.LeaderEpoch = p.Number, p.LeaderEpoch
		o.Replicas, o.ISR, o.OfflineReplicas = p.Replicas, p.ISR, p.Offline
		o.Leader, o.ErrorCode = leaderThrough(s, p, r.Listener(), req.Version >= 6)
		if req.Version == 0 && o.ErrorCode == 0 && len(p.Offline) > 0 {
			// Version 0 has no place for replicas that can't be reached.
			there := func(id int32) bool { return !slices.Contains(p.Offline, id) }
			o.Replicas, o.ISR, o.ErrorCode = only(p.Replicas, there), only(p.ISR, there), kerr.ReplicaNotAvailable.Code
		}
		out.Partitions[i] = o
	}
	return out
}

func only(ids []int32, want func(int32) bool) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !want(id) })
}

// leaderThrough is a partition's leader, if it can be reached through a listener, or -1 and why not.
func leaderThrough(s *metadata.Snapshot, p *metadata.Partition, listener string, precise bool) (int32, int16) {
	b, ok := s.Broker(p.Leader)
	if p.Leader < 0 || !ok {
		return metadata.NoLeader, kerr.LeaderNotAvailable.Code
	}
	if _, _, ok := b.Endpoint(listener); ok {
		return p.Leader, 0
	}
	if precise {
		return metadata.NoLeader, kerr.ListenerNotFound.Code
	}
	return metadata.NoLeader, kerr.LeaderNotAvailable.Code
}

// layers are the broker's properties as they hold now.
func (h *handlers) layers() kafka.Layers { return h.Cluster.Configs.Layers() }
