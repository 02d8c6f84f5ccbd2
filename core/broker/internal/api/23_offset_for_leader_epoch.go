package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetForLeaderEpoch (key 23): v0-4
//
// Behaviour:
//   - Gives the largest leader epoch not above the one asked for, and the offset where it ends; -1 and -1 when there is none
//     (KIP-101, KIP-279). Only the leader answers.
//   - From version 2 on the caller's own idea of the current epoch is checked (KIP-320).
//
// Versions:
//
//	v1: the epoch that was found, too (KIP-279); v2: current leader epoch, throttle time (KIP-320)
//	v3: replica id; v4: flexible
func (h *handlers) offsetForLeaderEpoch(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.OffsetForLeaderEpochRequest)
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for i := range req.Topics {
		t := &req.Topics[i]
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for _, q := range t.Partitions {
			rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition, rp.LeaderEpoch, rp.EndOffset = q.Partition, -1, -1
			current := int32(-1)
			if req.Version >= 2 {
				current = q.CurrentLeaderEpoch
			}
			p, err := h.find(t.Topic, [16]byte{}, false, q.Partition)
			if err == nil {
				rp.LeaderEpoch, rp.EndOffset, err = p.EndOffsetForEpoch(current, q.LeaderEpoch)
			}
			rp.ErrorCode = code(err)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return r.Answer(resp)
}
