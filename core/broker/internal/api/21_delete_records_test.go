package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/log"
)

func deleteOf(topic string, timeout int32, parts ...kmsg.DeleteRecordsRequestTopicPartition) *kmsg.DeleteRecordsRequest {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = timeout
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: parts}}
	return req
}

func upTo(p int32, offset int64) kmsg.DeleteRecordsRequestTopicPartition {
	return kmsg.DeleteRecordsRequestTopicPartition{Partition: p, Offset: offset}
}

func TestDeleteRecords(t *testing.T) {
	h := newHouse(t, nil)
	compacted := log.DefaultConfig()
	compacted.Compact, compacted.Delete = true, false
	h.configs["compacted"] = compacted
	for _, topic := range []string{"compacted", offsetsTopic} {
		h.topic(topic, 1)
	}
	h.assign("elsewhere", 0, other, other)
	for v := int16(0); v <= 2; v++ {
		topic := fmt.Sprint("t", v)
		h.topic(topic, 2)
		for range 5 {
			h.put(topic, 0, batch(t, "a", "b"))
		}
		c := connect(t, h.server)
		for _, tc := range []struct {
			topic string
			part  kmsg.DeleteRecordsRequestTopicPartition
			code  *kerr.Error
			low   int64
		}{
			{topic, upTo(0, 0), nil, 0}, {topic, upTo(0, 3), nil, 3}, {topic, upTo(0, 1), nil, 3}, {topic, upTo(0, 11), kerr.OffsetOutOfRange, -1},
			{topic, upTo(0, -2), kerr.OffsetOutOfRange, -1}, {topic, upTo(0, -1), nil, 10}, {topic, upTo(1, -1), nil, 0},
			{topic, upTo(9, 0), kerr.UnknownTopicOrPartition, -1}, {"unknown", upTo(0, 0), kerr.UnknownTopicOrPartition, -1},
			{"elsewhere", upTo(0, 0), kerr.NotLeaderForPartition, -1}, {"compacted", upTo(0, 0), kerr.PolicyViolation, -1},
			{offsetsTopic, upTo(0, 0), kerr.InvalidTopicException, -1},
		} {
			p := call[*kmsg.DeleteRecordsResponse](c, v, deleteOf(tc.topic, 1000, tc.part)).Topics[0].Partitions[0]
			if tc.code != nil {
				require.Equal(t, tc.code.Code, p.ErrorCode, "%+v", tc)
			} else {
				require.Zero(t, p.ErrorCode, "%+v", tc)
			}
			require.Equal(t, tc.low, p.LowWatermark, "%+v", tc)
		}
		_, lines := fetchLines(t, c, 11, fetchOf(topic, from(0, 9)))
		require.Equal(t, []string{topic + "-0 1 -1"}, lines)
	}
	c := connect(t, h.server)
	h.put("t0", 0, batch(t, "a", "b", "c"))
	resp := call[*kmsg.DeleteRecordsResponse](c, 2, deleteOf("t0", 1000, upTo(0, 11), upTo(9, 0), upTo(0, 12)))
	require.Len(t, resp.Topics, 1)
	require.Len(t, resp.Topics[0].Partitions, 2)
	require.Equal(t, int64(12), resp.Topics[0].Partitions[0].LowWatermark, "the last one counts")
}

func TestDeleteRecordsWaitsForReplicas(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1, self, other)
	h.put0(t, "t")
	h.put0(t, "t")
	follow := func(offset, start int64) {
		_, err := h.partition("t", 0).Read(partition.Read{Offset: offset, MaxBytes: 1 << 20, ReplicaID: other, ReplicaStart: start, LeaderEpoch: -1, LastFetchedEpoch: -1})
		require.NoError(t, err)
	}
	follow(2, 0)
	p := call[*kmsg.DeleteRecordsResponse](connect(t, h.server), 2, deleteOf("t", 50, upTo(0, 1))).Topics[0].Partitions[0]
	require.Equal(t, kerr.RequestTimedOut.Code, p.ErrorCode)
	require.Equal(t, int64(1), h.partition("t", 0).Log().StartOffset())

	c := connect(t, h.server)
	req := deleteOf("t", 20_000, upTo(0, 2))
	req.Version = 2
	corr := c.send(req)
	require.Eventually(t, func() bool { return h.partition("t", 0).Log().StartOffset() == 2 }, time.Minute, time.Millisecond)
	time.Sleep(50 * time.Millisecond) // the request waits by now
	follow(2, 2)
	p = c.receive(corr, req).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
	require.Zero(t, p.ErrorCode)
	require.Equal(t, int64(2), p.LowWatermark)
}
