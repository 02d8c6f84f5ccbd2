package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/record"
)

// A leader sends consumers to the in-sync follower of their rack that has what they want (KIP-392).
func TestConsumersAreSentToTheirRack(t *testing.T) {
	h := newHouse(t, func(d *Deps) { d.RackAware = true })
	h.racks = true
	h.topic("t", 1, self, other)
	for i := range 4 {
		_, err := h.partition("t", 0).Append(partition.Append{Batches: batch(t, fmt.Sprint(i)), Acks: 1})
		require.NoError(t, err)
	}
	c := connect(t, h.server)
	fetch := func(version int16, rack string, offset int64, change ...func(*kmsg.FetchRequest)) kmsg.FetchResponseTopicPartition {
		t.Helper()
		req := fetchOf("t", from(0, offset))
		req.Rack, req.MaxWaitMillis, req.MinBytes = rack, 60_000, 1
		for _, f := range change {
			f(req)
		}
		return call[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions[0]
	}
	replica := func(req *kmsg.FetchRequest) {
		req.ReplicaID, req.MaxWaitMillis = other, 0
		req.Topics[0].Partitions[0].LogStartOffset = 0
	}
	now := func(req *kmsg.FetchRequest) { req.MaxWaitMillis = 0 }

	require.EqualValues(t, -1, fetch(12, "rack-2", 0, now).PreferredReadReplica, "the follower hasn't fetched yet")
	require.EqualValues(t, -1, fetch(12, "", 3, replica).PreferredReadReplica)
	require.EqualValues(t, 3, fetch(12, "", 3, replica).HighWatermark)

	p := fetch(12, "rack-2", 1)
	require.EqualValues(t, other, p.PreferredReadReplica)
	require.Empty(t, p.RecordBatches)
	require.EqualValues(t, []int64{3, 3, 0}, []int64{p.HighWatermark, p.LastStableOffset, p.LogStartOffset})
	require.EqualValues(t, other, fetch(12, "rack-2", 3).PreferredReadReplica, "where the follower ends")
	require.EqualValues(t, -1, fetch(12, "rack-2", 4, now).PreferredReadReplica, "behind the follower")
	for _, rack := range []string{"", "rack-1", "rack-9"} {
		p := fetch(12, rack, 1)
		require.EqualValues(t, -1, p.PreferredReadReplica, rack)
		require.Equal(t, "1=1 2=2", records(t, nil, p.RecordBatches))
	}
	require.EqualValues(t, other, fetch(11, "rack-2", 1).PreferredReadReplica)
	require.Equal(t, "1=1 2=2", records(t, nil, fetch(10, "rack-2", 1).RecordBatches), "before racks")
	p = fetch(12, "rack-2", 1, func(req *kmsg.FetchRequest) { req.Topics[0].Partitions[0].CurrentLeaderEpoch = 99 })
	require.EqualValues(t, 75, p.ErrorCode)
	require.EqualValues(t, -1, p.PreferredReadReplica)

	// A session is told, too.
	req := fetchOf("t", from(0, 1))
	req.Rack, req.SessionEpoch = "rack-2", 0
	first := call[*kmsg.FetchResponse](c, 12, req)
	require.NotZero(t, first.SessionID)
	req.Topics, req.SessionID, req.SessionEpoch = nil, first.SessionID, 1
	require.EqualValues(t, other, call[*kmsg.FetchResponse](c, 12, req).Topics[0].Partitions[0].PreferredReadReplica)
}

// Without the property nobody is sent away.
func TestConsumersStayWithTheLeader(t *testing.T) {
	h := newHouse(t, nil)
	h.racks = true
	h.topic("t", 1, self, other)
	c := connect(t, h.server)
	req := fetchOf("t", from(0, 0))
	req.Rack = "rack-2"
	require.EqualValues(t, -1, call[*kmsg.FetchResponse](c, 12, req).Topics[0].Partitions[0].PreferredReadReplica)
}

// A follower serves consumers up to the high watermark that it knows of.
func TestFollowersServeConsumers(t *testing.T) {
	h := newHouse(t, nil)
	h.assign("t", 0, other, other, self)
	p := h.partition("t", 0)
	_, at, err := p.Following()
	require.NoError(t, err)
	b := batch(t, "a")
	at, err = p.AppendAsFollower(at, partition.Fetched{Batches: b, HighWatermark: 1})
	require.NoError(t, err)
	more := batch(t, "b")
	record.SetBaseOffset(more, 1)
	_, err = p.AppendAsFollower(at, partition.Fetched{Batches: more, HighWatermark: 1})
	require.NoError(t, err)

	c := connect(t, h.server)
	fetch := func(version int16, offset int64) kmsg.FetchResponseTopicPartition {
		return call[*kmsg.FetchResponse](c, version, fetchOf("t", from(0, offset))).Topics[0].Partitions[0]
	}
	require.Equal(t, "0=a", records(t, nil, fetch(11, 0).RecordBatches))
	require.EqualValues(t, 1, fetch(11, 0).HighWatermark)
	above := fetch(11, 2)
	require.Zero(t, above.ErrorCode, "between the high watermark and the end")
	require.Empty(t, above.RecordBatches)
	require.EqualValues(t, 1, fetch(11, 3).ErrorCode, "behind the end")
	require.EqualValues(t, 6, fetch(10, 0).ErrorCode, "older clients read from leaders")
}
