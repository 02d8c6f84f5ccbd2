package api

import (
	"context"
	"math"
	"os"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// ListOffsets (key 2): v0-11
//
// Behaviour:
//   - A timestamp gives the first record at or after it, below what the caller may see; -1 and -1 when there is none.
//   - Special timestamps: -1 latest, -2 earliest, -3 the record with the largest timestamp (v7, KIP-734), -4 the earliest here
//     (v8, KIP-405), -5 the latest in tiered storage (v9, KIP-1005), -6 the earliest not yet there (v11, KIP-1023). There is no tiered
//     storage: -4 is -2, and -5 and -6 give -1. Others, and those that the version doesn't have, are UNSUPPORTED_VERSION.
//   - A partition given twice is an INVALID_REQUEST (v1+). An isolation level that doesn't exist is an UNKNOWN_SERVER_ERROR.
//   - Replicas see up to the log end, and come through the listener of brokers, else the connection is closed; replica -2, for
//     debugging, may also ask a follower.
//   - Version 0 lists the offsets at which segments begin, newest first, that were last written before the timestamp.
//
// Versions:
//
//	v1: one offset and its timestamp (KIP-79); v2: isolation level (KIP-98); v3: answered before throttling (KIP-219)
//	v4: leader epochs (KIP-320); v5: OFFSET_NOT_AVAILABLE instead of LEADER_NOT_AVAILABLE (KIP-207)
//	v6: flexible; v7-9, v11: special timestamps, see above; v10: timeout, for reads from tiered storage (KIP-1075)
func (h *handlers) listOffsets(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.ListOffsetsRequest)
	if reply, ok := h.mayReplicate(r, req.ReplicaID); !ok {
		return reply
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	twice := partitionsGivenTwice(req)
	for i := range req.Topics {
		t := &req.Topics[i]
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for j := range t.Partitions {
			q := &t.Partitions[j]
			var rp kmsg.ListOffsetsResponseTopicPartition
			switch {
			case req.Version == 0:
				rp = h.oldOffsets(req, t.Topic, q)
			case twice[partition.ID{Topic: t.Topic, Partition: q.Partition}]:
				rp = kmsg.NewListOffsetsResponseTopicPartition()
				rp.ErrorCode = kerr.InvalidRequest.Code
			default:
				rp = h.listOffset(req, t.Topic, q)
			}
			rp.Partition = q.Partition
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return r.Answer(resp)
}

func partitionsGivenTwice(req *kmsg.ListOffsetsRequest) map[partition.ID]bool {
	var twice map[partition.ID]bool
	seen := map[partition.ID]bool{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			id := partition.ID{Topic: req.Topics[i].Topic, Partition: req.Topics[i].Partitions[j].Partition}
			if seen[id] && twice == nil {
				twice = map[partition.ID]bool{}
			}
			if seen[id] {
				twice[id] = true
			}
			seen[id] = true
		}
	}
	return twice
}

// specialSince is the version from which a special timestamp is known.
func specialSince(timestamp int64) (version int16, known bool) {
	switch timestamp {
	case partition.Latest, partition.Earliest:
		return 0, true
	case partition.MaxTimestamp:
		return 7, true
	case partition.EarliestLocal:
		return 8, true
	case partition.LatestTiered:
		return 9, true
	case earliestPendingUpload:
		return 11, true
	}
	return 0, timestamp >= 0
}

const earliestPendingUpload int64 = -6

func (h *handlers) listOffset(req *kmsg.ListOffsetsRequest, topic string, q *kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	rp := kmsg.NewListOffsetsResponseTopicPartition()
	p, err := h.find(topic, [16]byte{}, false, q.Partition)
	if err != nil {
		rp.ErrorCode = code(err)
		return rp
	}
	since, known := specialSince(q.Timestamp)
	isolation := partition.ReadUncommitted
	if req.Version >= 2 {
		isolation = partition.Isolation(req.IsolationLevel)
	}
	switch {
	case !known || req.Version < since:
		rp.ErrorCode = kerr.UnsupportedVersion.Code
		return rp
	case isolation != partition.ReadUncommitted && isolation != partition.ReadCommitted:
		rp.ErrorCode = unknownError
		return rp
	case q.Timestamp == earliestPendingUpload:
		q.Timestamp = partition.LatestTiered // there is no tiered storage: none
	}
	epoch := int32(-1)
	if req.Version >= 4 {
		epoch = q.CurrentLeaderEpoch
	}
	offset, timestamp, leaderEpoch, err := p.ListOffset(partition.ListOffset{Timestamp: q.Timestamp, Isolation: isolation, ReplicaID: req.ReplicaID, LeaderEpoch: epoch})
	if rp.ErrorCode = code(err); rp.ErrorCode == kerr.OffsetNotAvailable.Code && req.Version < 5 {
		rp.ErrorCode = kerr.LeaderNotAvailable.Code
	}
	rp.Offset, rp.Timestamp, rp.LeaderEpoch = offset, timestamp, leaderEpoch
	return rp
}

// oldOffsets answers version 0.
func (h *handlers) oldOffsets(req *kmsg.ListOffsetsRequest, topic string, q *kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	rp := kmsg.NewListOffsetsResponseTopicPartition()
	p, err := h.find(topic, [16]byte{}, false, q.Partition)
	switch {
	case err == nil && !p.IsLeader() && req.ReplicaID != partition.Debugging:
		err = partition.ErrNotLeader
	case err == nil && q.MaxNumOffsets < 0:
		err = kerr.UnknownServerError
	case err == nil && q.Timestamp < partition.Earliest:
		err = kerr.UnsupportedVersion
	}
	if err != nil {
		rp.ErrorCode = code(err)
		return rp
	}
	offsets := segmentOffsets(p, q.Timestamp)
	if req.ReplicaID < 0 {
		offsets = belowHighWatermark(offsets, p.Log().HighWatermark())
	}
	rp.OldStyleOffsets = offsets[:min(len(offsets), int(q.MaxNumOffsets))]
	return rp
}

// segmentOffsets lists where the segments begin that were last written at timestamp or before, newest first, led by the log
// end offset for the latest.
func segmentOffsets(p *partition.Partition, timestamp int64) []int64 {
	segments, start := p.Log().Segments(), p.Log().StartOffset()
	var offsets []int64
	if n := len(segments); n > 0 && segments[n-1].Bytes > 0 && (timestamp == partition.Latest || timestamp == math.MaxInt64) {
		offsets = append(offsets, p.Log().EndOffset())
	}
	for i := len(segments) - 1; i >= 0; i-- {
		s := &segments[i]
		switch {
		case timestamp == partition.Earliest && i > 0:
		case timestamp >= 0 && modified(s.Path) > timestamp:
		default:
			offsets = append(offsets, max(s.BaseOffset, start))
		}
	}
	return offsets
}

// modified is when a file was last written, in milliseconds; the file may be gone by now.
func modified(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return math.MaxInt64
	}
	return info.ModTime().UnixMilli()
}

// belowHighWatermark replaces the offsets above the high watermark by that.
func belowHighWatermark(offsets []int64, hw int64) []int64 {
	above := 0
	for above < len(offsets) && offsets[above] > hw {
		above++
	}
	if above == 0 {
		return offsets
	}
	return append([]int64{hw}, offsets[above:]...)
}
