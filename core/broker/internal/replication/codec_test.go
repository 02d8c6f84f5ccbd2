package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

func part(topic string, number int32, id byte) *follower {
	f := &follower{id: partition.ID{Topic: topic, Partition: number}, at: partition.Position{LeaderEpoch: 5, Offset: 100 + int64(number), LastEpoch: 4}}
	if id != 0 {
		f.topicID = [16]byte{id}
	}
	return f
}

func TestRequestsAreWhatTheGeneralCodecReads(t *testing.T) {
	for version := int16(12); version <= 17; version++ {
		s := newSession()
		parts := []*follower{part("a", 0, 1), part("a", 1, 1), part("b", 7, 2), part("c", 1, 3)}
		for _, f := range parts {
			s.want(f)
		}
		asked, gone := s.prepare(version >= fetchByID, func(yield func(*follower) bool) {
			for _, f := range parts {
				if !yield(f) {
					return
				}
			}
		}, func(*follower) int64 { return 3 })
		require.Empty(t, gone)
		gone = []sessionKey{parts[2].key, parts[0].key, parts[1].key}
		q := fetchRequest{version: version, replica: 2, brokerEpoch: 77, maxWaitMs: 500, minBytes: 1, maxBytes: 10 << 20, session: 9, epoch: 3, perPart: 1 << 20}
		body := q.append(nil, asked, gone)

		got := kmsg.NewPtrFetchRequest()
		got.Version = version
		require.NoError(t, got.ReadFrom(body))
		require.Equal(t, body, got.AppendTo(nil), "version %d", version)
		if version < fetchReplica {
			require.EqualValues(t, 2, got.ReplicaID)
		} else {
			require.EqualValues(t, 2, got.ReplicaState.ID)
			require.EqualValues(t, 77, got.ReplicaState.Epoch)
		}
		require.EqualValues(t, []int32{500, 1, 10 << 20, 9, 3}, []int32{got.MaxWaitMillis, got.MinBytes, got.MaxBytes, got.SessionID, got.SessionEpoch})
		require.Len(t, got.Topics, 3)
		require.Len(t, got.Topics[0].Partitions, 2)
		p := got.Topics[1].Partitions[0]
		require.EqualValues(t, 7, p.Partition)
		require.EqualValues(t, 107, p.FetchOffset)
		require.EqualValues(t, []int32{5, 4, 1 << 20}, []int32{p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.PartitionMaxBytes})
		require.EqualValues(t, 3, p.LogStartOffset)
		require.Len(t, got.ForgottenTopics, 2)
		require.Equal(t, []int32{0, 1}, got.ForgottenTopics[1].Partitions)
		if version < fetchByID {
			require.Equal(t, "b", got.ForgottenTopics[0].Topic)
		} else {
			require.Equal(t, parts[2].topicID, got.ForgottenTopics[0].TopicID)
		}
	}
}

// answer is a response with everything in it.
func answer(version int16) *kmsg.FetchResponse {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version, resp.ThrottleMillis, resp.SessionID = version, 1, 44
	add := func(topic string, id byte, parts ...kmsg.FetchResponseTopicPartition) {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID, rt.Partitions = topic, [16]byte{id}, parts
		resp.Topics = append(resp.Topics, rt)
	}
	p := func(number int32, change func(*kmsg.FetchResponseTopicPartition)) kmsg.FetchResponseTopicPartition {
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.Partition, rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset, rp.PreferredReadReplica = number, 50, 49, 7, -1
		change(&rp)
		return rp
	}
	add("none", 9)
	add("a", 1, p(0, func(rp *kmsg.FetchResponseTopicPartition) { rp.RecordBatches = []byte("records") }),
		p(1, func(rp *kmsg.FetchResponseTopicPartition) {
			rp.ErrorCode = 6
			rp.CurrentLeader.LeaderID, rp.CurrentLeader.LeaderEpoch = 3, 8
			rp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 1, FirstOffset: 2}, {ProducerID: 3, FirstOffset: 4}}
		}))
	add("b", 2, p(7, func(rp *kmsg.FetchResponseTopicPartition) {
		rp.DivergingEpoch.Epoch, rp.DivergingEpoch.EndOffset = 3, 41
	}))
	if version >= 16 {
		resp.Brokers = []kmsg.FetchResponseBroker{{NodeID: 3, Host: "h", Port: 9}}
	}
	return resp
}

func TestResponsesOfTheGeneralCodecAreRead(t *testing.T) {
	for version := int16(12); version <= 17; version++ {
		var r fetchResponse
		require.NoError(t, r.read(version, answer(version).AppendTo(nil)))
		require.EqualValues(t, 44, r.session)
		var got []fetchResult
		var p fetchResult
		for {
			ok, err := r.next(&p)
			require.NoError(t, err)
			if !ok {
				break
			}
			got = append(got, p)
		}
		want := []fetchResult{
			{partition: 0, hw: 50, logStart: 7, records: []byte("records")},
			{partition: 1, hw: 50, logStart: 7, code: 6},
			{partition: 7, hw: 50, logStart: 7, diverging: true, divergeAt: 3, divergeTo: 41},
		}
		for i := range want {
			if version >= fetchByID {
				want[i].id = [16]byte{1 + byte(i/2)}
			} else {
				want[i].topic = []byte{'a' + byte(i/2)}
			}
		}
		require.Equal(t, want, got, "version %d", version)
	}
}

func TestResponsesThatEndTooEarly(t *testing.T) {
	whole := answer(17).AppendTo(nil)
	for n := range whole[:len(whole)-40] {
		var r fetchResponse
		var p fetchResult
		err := r.read(17, whole[:n])
		for ok := true; err == nil && ok; {
			ok, err = r.next(&p)
		}
		require.ErrorIs(t, err, errMalformed, "%d bytes", n)
	}
}

func FuzzFetchResponse(f *testing.F) {
	for version := int16(12); version <= 17; version++ {
		f.Add(version, answer(version).AppendTo(nil))
	}
	f.Add(int16(17), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		version = 12 + version&7%6
		var r fetchResponse
		var p fetchResult
		err := r.read(version, body)
		n, size := 0, 0
		for ok := true; err == nil && ok; n++ {
			if ok, err = r.next(&p); ok {
				size += len(p.records)
			}
		}
		require.LessOrEqual(t, size, len(body))
		require.LessOrEqual(t, n, len(body)+1)
		if err != nil {
			return
		}
		general := kmsg.NewPtrFetchResponse()
		general.Version = version
		if general.ReadFrom(body) == nil {
			count := 0
			for _, t := range general.Topics {
				count += len(t.Partitions)
			}
			require.Equal(t, count, n-1)
		}
	})
}

func TestFetcherNumbers(t *testing.T) {
	// As Apache Kafka has them: "topic".hashCode() is 110546223, "a".hashCode() 97, "é😀".hashCode() 2014 + … over UTF-16.
	require.EqualValues(t, 110546223, javaHash("topic"))
	require.EqualValues(t, 97, javaHash("a"))
	require.EqualValues(t, 55357*31+56832, javaHash("😀"))
	require.Equal(t, 1, fetcherOf(partition.ID{Topic: "a", Partition: 1}, 3)-fetcherOf(partition.ID{Topic: "a", Partition: 0}, 3))
	seen := map[int]bool{}
	for n := range int32(100) {
		at := fetcherOf(partition.ID{Topic: "topic", Partition: n}, 4)
		require.True(t, at >= 0 && at < 4)
		seen[at] = true
	}
	require.Len(t, seen, 4)
	require.Zero(t, fetcherOf(partition.ID{Topic: "", Partition: -1 << 31}, 7), "what has no absolute value is 0")
}
