package api

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func sampleFetch(version int16) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = version
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 3, 500, 1, 1<<20
	req.IsolationLevel, req.SessionID, req.SessionEpoch = 1, 77, 5
	req.Rack = "rack"
	if version >= fetchFlexible {
		req.ClusterID = kmsg.StringPtr("cluster")
	}
	if version >= fetchReplicaTag {
		req.ReplicaState.ID, req.ReplicaState.Epoch = 4, 9
	}
	part := func(n int32) kmsg.FetchRequestTopicPartition {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.FetchOffset, p.LastFetchedEpoch, p.LogStartOffset, p.PartitionMaxBytes = n, 2, 1<<40, 1, 8, 1<<19
		if version >= 17 {
			p.ReplicaDirectoryID = [16]byte{5}
		}
		if version >= 18 {
			p.HighWatermark = 12
		}
		return p
	}
	req.Topics = []kmsg.FetchRequestTopic{
		{Topic: "one", TopicID: [16]byte{1}, Partitions: []kmsg.FetchRequestTopicPartition{part(0), part(-5)}},
		{Topic: "two", TopicID: [16]byte{2}},
		{Topic: "", TopicID: [16]byte{3}, Partitions: []kmsg.FetchRequestTopicPartition{part(1)}},
	}
	req.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "gone", TopicID: [16]byte{4}, Partitions: []int32{1, 2, 3}}, {}}
	return req
}

// plain takes out of a request what its version doesn't have, but kmsg would encode.
func plainFetch(req *kmsg.FetchRequest) {
	if req.Version < fetchReplicaTag {
		req.ReplicaState = kmsg.NewFetchRequest().ReplicaState
	}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			p := &req.Topics[i].Partitions[j]
			if req.Version < 17 {
				p.ReplicaDirectoryID = [16]byte{}
			}
			if req.Version < 18 {
				p.HighWatermark = kmsg.NewFetchRequestTopicPartition().HighWatermark
			}
		}
	}
}

func requireSameFetch(t *testing.T, want *kmsg.FetchRequest, got *fetchRequest) {
	t.Helper()
	replica := want.ReplicaID
	if want.Version >= fetchReplicaTag {
		replica = want.ReplicaState.ID
	}
	require.Equal(t, replica, got.replicaID)
	require.Equal(t, []int32{want.MaxWaitMillis, want.MinBytes, want.MaxBytes, int32(want.IsolationLevel), want.SessionID, want.SessionEpoch},
		[]int32{got.maxWaitMs, got.minBytes, got.maxBytes, int32(got.isolation), got.sessionID, got.sessionEpoch})
	require.Equal(t, want.Rack, string(got.rack))
	require.Len(t, got.topics, len(want.Topics))
	for i, wt := range want.Topics {
		gt := got.topics[i]
		require.Equal(t, wt.Topic, string(gt.name))
		require.Equal(t, wt.TopicID, gt.id)
		require.Len(t, wt.Partitions, gt.to-gt.from)
		for j, wp := range wt.Partitions {
			require.Equal(t, fetchPartition{partition: wp.Partition, leaderEpoch: wp.CurrentLeaderEpoch, offset: wp.FetchOffset,
				lastFetchedEpoch: wp.LastFetchedEpoch, logStart: wp.LogStartOffset, maxBytes: wp.PartitionMaxBytes}, got.partitions[gt.from+j])
		}
	}
	var forgotten []forgottenPartition
	for _, f := range want.ForgottenTopics {
		for _, p := range f.Partitions {
			forgotten = append(forgotten, forgottenPartition{[]byte(f.Topic), f.TopicID, p})
		}
	}
	require.Len(t, got.forgotten, len(forgotten))
	for i := range forgotten {
		require.Equal(t, forgotten[i].partition, got.forgotten[i].partition)
		require.Equal(t, forgotten[i].id, got.forgotten[i].id)
		require.Equal(t, string(forgotten[i].name), string(got.forgotten[i].name))
	}
}

func TestFetchDecode(t *testing.T) {
	var q fetchRequest
	for v := range int16(fetchMax + 1) {
		body := sampleFetch(v).AppendTo(nil)
		want := kmsg.NewPtrFetchRequest()
		want.Version = v
		require.NoError(t, want.ReadFrom(body))
		require.NoError(t, q.decode(v, body))
		requireSameFetch(t, want, &q)
		for n := range body {
			require.Error(t, q.decode(v, body[:n]), "version %d cut to %d bytes", v, n)
		}
		require.NoError(t, q.decode(v, append(body, 1, 2, 3)), "bytes behind the body")
	}
}

func TestFetchTagsBeforeTheirVersion(t *testing.T) {
	var q fetchRequest
	for _, tc := range []struct {
		from   int16
		change func(*kmsg.FetchRequest)
	}{
		{15, func(r *kmsg.FetchRequest) { r.ReplicaState.ID = 7 }},
		{17, func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].ReplicaDirectoryID = [16]byte{1} }},
		{18, func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].HighWatermark = 4 }},
	} {
		for v := int16(fetchFlexible); v <= fetchMax; v++ {
			req := sampleFetch(v)
			tc.change(req)
			require.Equal(t, v >= tc.from, q.decode(v, req.AppendTo(nil)) == nil, "version %d", v)
		}
	}
}

func encodeFetch(resp *kmsg.FetchResponse) []byte {
	v := resp.Version
	out := appendFetchHead(nil, v, resp.ErrorCode, resp.SessionID, len(resp.Topics))
	for _, t := range resp.Topics {
		out = appendFetchTopic(out, v, t.Topic, t.TopicID, len(t.Partitions))
		for _, p := range t.Partitions {
			r := fetchResult{partition: p.Partition, code: p.ErrorCode, hw: p.HighWatermark, lastStable: p.LastStableOffset, logStart: p.LogStartOffset,
				preferred: p.PreferredReadReplica, hasAborted: p.AbortedTransactions != nil, nullRecords: p.RecordBatches == nil, leader: p.CurrentLeader.LeaderID, leaderEpoch: p.CurrentLeader.LeaderEpoch,
				diverging: p.DivergingEpoch.EndOffset >= 0, divergeAt: p.DivergingEpoch.Epoch, divergeEnd: p.DivergingEpoch.EndOffset, converted: p.RecordBatches}
			for _, a := range p.AbortedTransactions {
				r.aborted = append(r.aborted, abortedTransaction{a.ProducerID, a.FirstOffset})
			}
			out = appendFetchResultEnd(appendFetchResult(out, v, &r), v, &r)
		}
		out = appendFetchTopicEnd(out, v)
	}
	var nodes []endpoint
	for _, b := range resp.Brokers {
		nodes = append(nodes, endpoint{id: b.NodeID, host: b.Host, port: b.Port})
	}
	return appendFetchTail(out, v, nodes)
}

func TestFetchEncode(t *testing.T) {
	for v := range int16(fetchMax + 1) {
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = v
		resp.ErrorCode, resp.SessionID = 70, 12
		require.Equal(t, resp.AppendTo(nil), encodeFetch(resp), "version %d, empty", v)
		for i := range 3 {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = strings.Repeat("t", i), [16]byte{byte(i)}
			for j := range 5 * i {
				p := kmsg.NewFetchResponseTopicPartition()
				p.Partition, p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset = int32(j), int16(j), 3, 2, 1
				p.RecordBatches = bytes.Repeat([]byte{7}, 50*j)
				if v >= 11 {
					p.PreferredReadReplica = int32(j) - 1
				}
				switch j {
				case 1:
					p.RecordBatches = nil
				case 2:
					p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
				case 3:
					p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 9, FirstOffset: 8}, {ProducerID: 10, FirstOffset: 7}}
				}
				if v >= fetchFlexible && j >= 3 {
					p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = 4, 44
				}
				if v >= 16 && j%2 == 0 {
					p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 1, 2
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		if v >= 16 {
			resp.Brokers = []kmsg.FetchResponseBroker{{NodeID: 4, Host: "host", Port: 9092}}
		}
		require.Equal(t, resp.AppendTo(nil), encodeFetch(resp), "version %d", v)
	}
}

func FuzzFetchDecode(f *testing.F) {
	for v := range int16(fetchMax + 1) {
		f.Add(v, sampleFetch(v).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 0 || version > fetchMax || len(body) > 32<<10 {
			return
		}
		var q fetchRequest
		_ = q.decode(version, body) // anything but a panic
		want := kmsg.NewPtrFetchRequest()
		want.Version = version
		if want.ReadFrom(body) != nil {
			return
		}
		plainFetch(want)
		if err := q.decode(version, want.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		requireSameFetch(t, want, &q)
	})
}

func BenchmarkFetchDecode(b *testing.B) {
	req := sampleFetch(17)
	req.ClusterID, req.ForgottenTopics = nil, nil
	body := req.AppendTo(nil)
	var q fetchRequest
	b.ReportAllocs()
	for b.Loop() {
		if err := q.decode(17, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFetchEncode(b *testing.B) {
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = appendFetchTopic(appendFetchHead(out[:0], 17, 0, 1, 1), 17, "", [16]byte{1}, 10)
		for i := range 10 {
			r := fetchResult{partition: int32(i), hw: 4, lastStable: 4, leader: -1, converted: nil}
			out = appendFetchResultEnd(appendFetchResult(out, 17, &r), 17, &r)
		}
		out = appendFetchTail(appendFetchTopicEnd(out, 17), 17, nil)
	}
}
