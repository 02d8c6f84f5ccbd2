package api

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// OffsetFetch (key 9): v0-10
//
// Behaviour:
//   - A partition without a committed offset has offset -1 and no error, whether it exists or not, and whether the group does.
//   - A null list of topics asks for all partitions that have an offset.
//   - With "require stable", partitions that an open transaction commits to are UNSTABLE_OFFSET_COMMIT (KIP-447).
//   - Up to v7 a partition that is asked for twice is answered once, and topics without partitions are left out; later
//     versions answer as they were asked.
//   - Member id and epoch (v9) are for groups of KIP-848, of which there are none.
//   - Version 0 is Kafka's from before groups had coordinators, see oldGroup: no offset is UNKNOWN_TOPIC_OR_PARTITION, and there
//     is no metadata.
//
// Versions:
//
//	v1: offsets of the coordinator
//	v2: all topics; an error for the whole answer
//	v3: throttle time
//	v4: answered before throttling (KIP-219)
//	v5: leader epoch (KIP-320)
//	v6: flexible
//	v7: require stable (KIP-447)
//	v8: several groups (KIP-709)
//	v9: member id and epoch (KIP-848)
//	v10: topic ids (KIP-848)
func (h *handlers) offsetFetch(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.OffsetFetchRequest)
	resp := kmsg.NewPtrOffsetFetchResponse()
	switch {
	case req.Version == 0:
		h.fetchOld(ctx, req, resp)
	case req.Version < 8:
		h.fetchOne(req, resp)
	default:
		for i := range req.Groups {
			resp.Groups = append(resp.Groups, h.fetchGroup(req, &req.Groups[i]))
		}
	}
	return r.Answer(resp)
}

// wanted lists the partitions of a request's topics, each once.
func wanted(topics []kmsg.OffsetFetchRequestTopic) []group.TopicPartition {
	list := []group.TopicPartition{}
	seen := map[group.TopicPartition]bool{}
	for _, t := range topics {
		for _, p := range t.Partitions {
			if tp := (group.TopicPartition{Topic: t.Topic, Partition: p}); !seen[tp] {
				seen[tp] = true
				list = append(list, tp)
			}
		}
	}
	return list
}

// byTopic brings partitions of one topic together; those of a request are by and large so already.
func byTopic(list []group.Fetched) {
	slices.SortStableFunc(list, func(a, b group.Fetched) int { return strings.Compare(a.Topic, b.Topic) })
}

// fetchOne answers versions 1 to 7.
func (h *handlers) fetchOne(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	var partitions []group.TopicPartition
	if req.Topics != nil || req.Version < 2 {
		partitions = wanted(req.Topics)
	}
	list, err := h.Groups.Fetch(req.Group, partitions, req.RequireStable)
	if err != nil {
		resp.ErrorCode = code(err)
		if req.Version < 2 { // has no error but the partitions'
			for _, tp := range partitions {
				list = append(list, group.Fetched{TopicPartition: tp, Offset: noOffset(), Err: err})
			}
		}
	}
	fill(resp, list)
}

func noOffset() offsets.Offset { return offsets.Offset{Offset: -1, LeaderEpoch: -1} }

// fill puts offsets into the answer of versions 0 to 7.
func fill(resp *kmsg.OffsetFetchResponse, list []group.Fetched) {
	byTopic(list)
	for i := range list {
		f := &list[i]
		n := len(resp.Topics) - 1
		if n < 0 || resp.Topics[n].Topic != f.Topic {
			t := kmsg.NewOffsetFetchResponseTopic()
			t.Topic = f.Topic
			resp.Topics = append(resp.Topics, t)
			n++
		}
		p := kmsg.NewOffsetFetchResponseTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode = f.Partition, f.Offset.Offset, f.LeaderEpoch, &f.Metadata, code(f.Err)
		resp.Topics[n].Partitions = append(resp.Topics[n].Partitions, p)
	}
}

// fetchOld answers version 0.
func (h *handlers) fetchOld(ctx context.Context, req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	partitions := wanted(req.Topics)
	err := error(kerr.UnknownServerError) // no path in ZooKeeper
	var list []group.Fetched
	if req.Group != "" {
		if err = h.Groups.Prepare(ctx); err == nil {
			list, err = h.Groups.Fetch(oldGroup(req.Group), partitions, false)
		}
	}
	if err != nil {
		list = nil
		for _, tp := range partitions {
			list = append(list, group.Fetched{TopicPartition: tp, Offset: noOffset(), Err: err})
		}
	}
	for i := range list {
		f := &list[i]
		if f.Err == nil && (f.Offset == noOffset() || !h.hasPartition(f.Topic, f.Partition)) {
			f.Offset, f.Err = noOffset(), kerr.UnknownTopicOrPartition
		}
		f.Metadata = ""
	}
	fill(resp, list)
}

// fetchGroup answers for one group of version 8 and up.
func (h *handlers) fetchGroup(req *kmsg.OffsetFetchRequest, g *kmsg.OffsetFetchRequestGroup) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = g.Group
	if g.Topics == nil {
		list, err := h.Groups.Fetch(g.Group, nil, req.RequireStable)
		out.ErrorCode = code(err)
		byTopic(list)
		out.Topics = h.allTopics(req.Version, list)
		return out
	}
	var partitions []group.TopicPartition
	for i := range g.Topics {
		name, _ := h.fetchTopic(req.Version, &g.Topics[i])
		for _, p := range g.Topics[i].Partitions {
			partitions = append(partitions, group.TopicPartition{Topic: name, Partition: p})
		}
	}
	if partitions == nil {
		partitions = []group.TopicPartition{}
	}
	list, err := h.Groups.Fetch(g.Group, partitions, req.RequireStable)
	if err != nil {
		out.ErrorCode = code(err)
		return out
	}
	for i := range g.Topics {
		in := &g.Topics[i]
		t := kmsg.NewOffsetFetchResponseGroupTopic()
		t.Topic, t.TopicID = in.Topic, in.TopicID
		_, missing := h.fetchTopic(req.Version, in)
		for range in.Partitions {
			f := &list[0]
			list = list[1:]
			if missing != nil {
				f.Offset, f.Err = noOffset(), missing
			}
			t.Partitions = append(t.Partitions, fetched(f))
		}
		out.Topics = append(out.Topics, t)
	}
	return out
}

// fetchTopic is the topic's name, or the error of its partitions.
func (h *handlers) fetchTopic(version int16, t *kmsg.OffsetFetchRequestGroupTopic) (string, error) {
	if version < 10 {
		return t.Topic, nil
	}
	topic, ok := h.Cluster.Metadata.Snapshot().TopicByID(t.TopicID)
	if !ok {
		return "", kerr.UnknownTopicID
	}
	return topic.Name, nil
}

// allTopics lists offsets by topic. Where topics are told by id, those that don't exist any more can't be told.
func (h *handlers) allTopics(version int16, list []group.Fetched) (topics []kmsg.OffsetFetchResponseGroupTopic) {
	cluster := h.Cluster.Metadata.Snapshot()
	for i := range list {
		f := &list[i]
		known, exists := cluster.Topic(f.Topic)
		if version >= 10 && !exists {
			continue
		}
		n := len(topics) - 1
		if n < 0 || topics[n].Topic != f.Topic {
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			t.Topic = f.Topic
			if exists {
				t.TopicID = known.ID
			}
			topics = append(topics, t)
			n++
		}
		topics[n].Partitions = append(topics[n].Partitions, fetched(f))
	}
	return topics
}

func fetched(f *group.Fetched) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode = f.Partition, f.Offset.Offset, f.LeaderEpoch, &f.Metadata, code(f.Err)
	return p
}
