package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// OffsetCommit (key 8): v0-10
//
// Behaviour:
//   - Partitions that don't exist are refused, UNKNOWN_TOPIC_OR_PARTITION (UNKNOWN_TOPIC_ID from v10 on), and so is metadata that
//     is too large, OFFSET_METADATA_TOO_LARGE; all others have the one outcome of the commit, see package group.
//   - The answer waits until the offsets are stored.
//   - A partition that is given twice is answered once, and its last offset counts. Topics without partitions are left out.
//   - Offsets are not checked against the log, and may be negative. A null metadata is an empty one.
//   - Version 0 is Kafka's from before groups had coordinators: it is kept apart, see oldGroup.
//
// Versions:
//
//	v1: member id, generation, commit timestamp
//	v2: retention time instead of the timestamp
//	v3: throttle time
//	v4: answered before throttling (KIP-219)
//	v5: no retention time any more (KIP-211)
//	v6: leader epoch of the last record consumed (KIP-320)
//	v7: static members: group instance id (KIP-345)
//	v8: flexible
//	v9: the generation may be a member epoch (KIP-848); there are no such groups here
//	v10: topic ids (KIP-848)
func (h *handlers) offsetCommit(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.OffsetCommitRequest)
	c := group.Commit{
		Member:  group.Member{ID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation},
		Offsets: map[group.TopicPartition]offsets.Offset{},
	}
	a := newCommitAnswer(req.Version)
	now := h.Now().UnixMilli()
	for i := range req.Topics {
		t := &req.Topics[i]
		name, missing := h.topicOf(req.Version, t)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			tp := group.TopicPartition{Topic: name, Partition: p.Partition}
			at := a.add(t, tp)
			switch {
			case missing != nil:
				at.ErrorCode = missing.Code
			case !h.hasPartition(name, p.Partition):
				at.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				c.Offsets[tp] = toCommit(req, p, now)
			}
		}
	}
	id := req.Group
	if req.Version == 0 {
		if id == "" {
			return r.Answer(a.response(nil, kerr.UnknownServerError)) // no path in ZooKeeper
		}
		id = oldGroup(id)
		c.Member.Generation = -1
		if err := h.Groups.Prepare(ctx); err != nil {
			return r.Answer(a.response(nil, err))
		}
	}
	if len(c.Offsets) == 0 {
		return r.Answer(a.response(nil, nil))
	}
	tooLarge, err := h.Groups.Commit(ctx, id, c)
	return r.Answer(a.response(tooLarge, err))
}

// topicOf is the topic's name, or the error of its partitions.
func (h *handlers) topicOf(version int16, t *kmsg.OffsetCommitRequestTopic) (string, *kerr.Error) {
	if version < 10 {
		return t.Topic, nil
	}
	topic, ok := h.Cluster.Metadata.Snapshot().TopicByID(t.TopicID)
	if !ok {
		return "", kerr.UnknownTopicID
	}
	return topic.Name, nil
}

func toCommit(req *kmsg.OffsetCommitRequest, p *kmsg.OffsetCommitRequestTopicPartition, now int64) offsets.Offset {
	o := offsets.Offset{Offset: p.Offset, LeaderEpoch: offsets.None, CommitTimestamp: now, ExpireTimestamp: offsets.None}
	if req.Version >= 6 {
		o.LeaderEpoch = p.LeaderEpoch
	}
	if p.Metadata != nil {
		o.Metadata = *p.Metadata
	}
	if req.Version == 1 && p.Timestamp != -1 {
		o.CommitTimestamp = p.Timestamp
	}
	if req.Version >= 2 && req.Version <= 4 && req.RetentionTimeMillis != -1 {
		o.ExpireTimestamp = now + req.RetentionTimeMillis
	}
	return o
}

// commitAnswer gathers the answer, each partition once.
type commitAnswer struct {
	resp  *kmsg.OffsetCommitResponse
	names []string // of the topics in the answer
	once  bool
	tps   map[group.TopicPartition]bool
}

func newCommitAnswer(version int16) *commitAnswer {
	return &commitAnswer{resp: kmsg.NewPtrOffsetCommitResponse(), once: version > 0, tps: map[group.TopicPartition]bool{}}
}

// add makes room for a partition's error. It is valid until the next call.
func (a *commitAnswer) add(t *kmsg.OffsetCommitRequestTopic, tp group.TopicPartition) *kmsg.OffsetCommitResponseTopicPartition {
	if a.once && tp.Topic != "" && a.tps[tp] {
		return &kmsg.OffsetCommitResponseTopicPartition{}
	}
	a.tps[tp] = true
	n := len(a.resp.Topics) - 1
	if n < 0 || a.resp.Topics[n].Topic != t.Topic || a.resp.Topics[n].TopicID != t.TopicID {
		rt := kmsg.NewOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		a.resp.Topics = append(a.resp.Topics, rt)
		a.names = append(a.names, tp.Topic)
		n++
	}
	ps := &a.resp.Topics[n].Partitions
	*ps = append(*ps, kmsg.OffsetCommitResponseTopicPartition{Partition: tp.Partition})
	return &(*ps)[len(*ps)-1]
}

// response is the answer: partitions that have no error of their own have err.
func (a *commitAnswer) response(tooLarge map[group.TopicPartition]bool, err error) *kmsg.OffsetCommitResponse {
	for i := range a.resp.Topics {
		t := &a.resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			switch {
			case p.ErrorCode != 0:
			case tooLarge[group.TopicPartition{Topic: a.names[i], Partition: p.Partition}]:
				p.ErrorCode = code(group.ErrMetadataTooLarge)
			default:
				p.ErrorCode = code(err)
			}
		}
	}
	return a.resp
}
