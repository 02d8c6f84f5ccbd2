package api

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
)

const listOffsetsMax = 11

func offsetsOf(topic string, parts ...kmsg.ListOffsetsRequestTopicPartition) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: parts}}
	return req
}

func at(p int32, timestamp int64) kmsg.ListOffsetsRequestTopicPartition {
	out := kmsg.NewListOffsetsRequestTopicPartition()
	out.Partition, out.Timestamp, out.CurrentLeaderEpoch, out.MaxNumOffsets = p, timestamp, -1, 1
	return out
}

// stamped is a batch of one record with a timestamp.
func stamped(t testing.TB, timestamp int64) []byte {
	b := record.NewBuilder(record.Options{})
	require.NoError(t, b.Append(record.Record{Timestamp: timestamp, Key: []byte("k"), Value: []byte("v")}))
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

// TestListOffsets has four records with timestamps 2, 4, 6 and 8, in one segment and in four.
func TestListOffsets(t *testing.T) {
	h := newHouse(t, nil)
	tiny := log.DefaultConfig()
	tiny.SegmentBytes, tiny.RetentionMs = 100, -1
	h.configs["segments"] = tiny
	for _, topic := range []string{"t", "segments"} {
		h.topic(topic, 2)
		for _, ts := range []int64{2, 4, 6, 8} {
			h.put(topic, 0, stamped(t, ts))
		}
	}
	epoch := h.epoch
	require.Len(t, h.partition("segments", 0).Log().Segments(), 4)
	c := connect(t, h.server)
	for _, topic := range []string{"t", "segments"} {
		leader, _ := h.partition(topic, 0).Leader()
		require.Equal(t, self, leader)
		for _, tc := range []struct{ ask, offset, timestamp int64 }{
			{0, 0, 2}, {2, 0, 2}, {3, 1, 4}, {5, 2, 6}, {7, 3, 8}, {8, 3, 8}, {9, -1, -1}, {math.MaxInt64, -1, -1}, {-1, 4, -1}, {-2, 0, -1}, {-3, 3, 8}, {-4, 0, -1}, {-5, -1, -1}, {-6, -1, -1},
		} {
			for v := int16(1); v <= listOffsetsMax; v++ {
				p := call[*kmsg.ListOffsetsResponse](c, v, offsetsOf(topic, at(0, tc.ask))).Topics[0].Partitions[0]
				if since, _ := specialSince(tc.ask); v < since {
					require.Equal(t, kerr.UnsupportedVersion.Code, p.ErrorCode)
					continue
				}
				require.Zero(t, p.ErrorCode)
				require.Equal(t, [2]int64{tc.offset, tc.timestamp}, [2]int64{p.Offset, p.Timestamp}, "%s: %d", topic, tc.ask)
				if v >= 4 && tc.offset >= 0 {
					require.LessOrEqual(t, p.LeaderEpoch, epoch)
					require.Positive(t, p.LeaderEpoch)
				}
			}
		}
		for _, ask := range []int64{0, 5, -3} {
			p := call[*kmsg.ListOffsetsResponse](c, 7, offsetsOf(topic, at(1, ask))).Topics[0].Partitions[0]
			require.Equal(t, [3]int64{0, -1, -1}, [3]int64{int64(p.ErrorCode), p.Offset, p.Timestamp}, "an empty partition")
		}
	}
}

func TestListOffsetsErrors(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1)
	h.assign("elsewhere", 0, other, other)
	h.topic("waiting", 1, self, other) // a new leader that has heard nothing of its follower
	h.put0(t, "waiting")
	c := connect(t, h.server)
	stale := at(0, -1)
	stale.CurrentLeaderEpoch = 0
	isolated := offsetsOf("t", at(0, -1))
	isolated.IsolationLevel = 2
	for _, tc := range []struct {
		name string
		req  *kmsg.ListOffsetsRequest
		want func(version int16) int16
	}{
		{"unknown topic", offsetsOf("unknown", at(0, -1)), func(int16) int16 { return kerr.UnknownTopicOrPartition.Code }},
		{"unknown partition", offsetsOf("t", at(9, -1)), func(int16) int16 { return kerr.UnknownTopicOrPartition.Code }},
		{"elsewhere", offsetsOf("elsewhere", at(0, -1)), func(int16) int16 { return kerr.NotLeaderForPartition.Code }},
		{"special", offsetsOf("t", at(0, -7)), func(int16) int16 { return kerr.UnsupportedVersion.Code }},
		{"old epoch", offsetsOf("t", stale), func(v int16) int16 {
			if v < 4 {
				return 0
			}
			return kerr.FencedLeaderEpoch.Code
		}},
		{"isolation 2", isolated, func(v int16) int16 {
			if v < 2 {
				return 0
			}
			return unknownError
		}},
		{"twice", offsetsOf("t", at(0, -1), at(0, -2)), func(v int16) int16 {
			if v < 1 {
				return 0
			}
			return kerr.InvalidRequest.Code
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for v := range int16(listOffsetsMax + 1) {
				for _, p := range call[*kmsg.ListOffsetsResponse](c, v, tc.req).Topics[0].Partitions {
					require.Equal(t, tc.want(v), p.ErrorCode, "version %d", v)
					if p.ErrorCode != 0 {
						require.Equal(t, int64(-1), p.Timestamp)
					}
				}
			}
		})
	}
}

// put0 appends a record with acks=1.
func (h *house) put0(t testing.TB, topic string) {
	req := produceTo(topic, 0, batch(t, "x"))
	req.Acks = 1
	require.Zero(t, one(t, call[*kmsg.ProduceResponse](connect(t, h.server), 9, req)).ErrorCode)
}

// TestListOffsetsVersion0 lists the offsets where segments begin.
func TestListOffsetsVersion0(t *testing.T) {
	h := newHouse(t, nil)
	tiny := log.DefaultConfig()
	tiny.SegmentBytes = 100
	h.configs["t"] = tiny
	h.topic("t", 2)
	for range 3 {
		h.put("t", 0, batch(t, "x"))
	}
	c := connect(t, h.server)
	for _, tc := range []struct {
		partition int32
		timestamp int64
		n         int32
		want      []int64
	}{
		{0, -1, 1, []int64{3}}, {0, -1, 10, []int64{3, 2, 1, 0}}, {0, -1, 2, []int64{3, 2}}, {0, -1, 0, nil}, {0, -2, 10, []int64{0}},
		{0, 0, 10, nil}, {0, math.MaxInt64, 2, []int64{3, 2}}, {1, -1, 1, []int64{0}},
	} {
		p := at(tc.partition, tc.timestamp)
		p.MaxNumOffsets = tc.n
		got := call[*kmsg.ListOffsetsResponse](c, 0, offsetsOf("t", p)).Topics[0].Partitions[0]
		require.Zero(t, got.ErrorCode)
		require.Equal(t, fmt.Sprint(tc.want), fmt.Sprint(got.OldStyleOffsets), "%+v", tc)
	}
	bad := at(0, -1)
	bad.MaxNumOffsets = -1
	require.Equal(t, unknownError, call[*kmsg.ListOffsetsResponse](c, 0, offsetsOf("t", bad)).Topics[0].Partitions[0].ErrorCode)
	require.Equal(t, kerr.UnsupportedVersion.Code, call[*kmsg.ListOffsetsResponse](c, 0, offsetsOf("t", at(0, -3))).Topics[0].Partitions[0].ErrorCode)
}

func TestOffsetForLeaderEpoch(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1)
	h.put("t", 0, batch(t, "a"), batch(t, "b"))
	first := h.epoch
	h.assign("t", 0, self, self)
	h.put("t", 0, batch(t, "c"))
	c := connect(t, h.server)
	for _, tc := range []struct {
		topic        string
		current, ask int32
		code         int16
		epoch        int32
		end          int64
		since        int16
	}{
		{topic: "t", current: -1, ask: first, epoch: first, end: 2},
		{topic: "t", current: -1, ask: first + 1, epoch: first + 1, end: 3},
		{topic: "t", current: first + 1, ask: first, epoch: first, end: 2, since: 2},
		{topic: "t", current: -1, ask: first + 2, epoch: -1, end: -1},
		{topic: "t", current: first, ask: first, code: kerr.FencedLeaderEpoch.Code, epoch: -1, end: -1, since: 2},
		{topic: "t", current: 99, ask: first, code: kerr.UnknownLeaderEpoch.Code, epoch: -1, end: -1, since: 2},
		{topic: "unknown", current: -1, ask: first, code: kerr.UnknownTopicOrPartition.Code, epoch: -1, end: -1},
	} {
		for v := tc.since; v <= 4; v++ {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.CurrentLeaderEpoch, p.LeaderEpoch = tc.current, tc.ask
			req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: tc.topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
			got := call[*kmsg.OffsetForLeaderEpochResponse](c, v, req).Topics[0].Partitions[0]
			require.Equal(t, tc.code, got.ErrorCode, "%+v", tc)
			require.Equal(t, tc.end, got.EndOffset, "%+v", tc)
			if v >= 1 {
				require.Equal(t, tc.epoch, got.LeaderEpoch, "%+v", tc)
			}
		}
	}
}
