package api

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
)

// fetchLines sends a fetch and renders its answer, one line for each partition: "topic-partition code hw records".
func fetchLines(t testing.TB, c *client, version int16, req *kmsg.FetchRequest) (*kmsg.FetchResponse, []string) {
	t.Helper()
	plain := *req
	plain.Version = version
	plainFetch(&plain)
	resp := call[*kmsg.FetchResponse](c, version, &plain)
	var lines []string
	for _, topic := range resp.Topics {
		name := topic.Topic
		if version >= fetchTopicIDs {
			name = strings.TrimRight(string(topic.TopicID[:15]), "\x00")
		}
		for _, p := range topic.Partitions {
			var got string
			if version >= 4 {
				got = records(t, nil, p.RecordBatches)
			} else {
				rs, err := record.LegacyRecords(p.RecordBatches, nil, 1<<20)
				require.NoError(t, err)
				var all []string
				for _, r := range rs {
					all = append(all, fmt.Sprintf("%d=%s", r.Offset, r.Value))
				}
				got = strings.Join(all, " ")
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s-%d %d %d %s", name, p.Partition, p.ErrorCode, p.HighWatermark, got)))
		}
	}
	return resp, lines
}

// library is a house with a topic to read: partition 0 has ten batches of one record, 1 has four of three, 2 is empty, 3 has
// ten and starts at 3.
func library(t testing.TB, change func(*Deps)) *house {
	h := newHouse(t, change)
	h.topic("t", 4)
	for i := range 10 {
		h.put("t", 0, batch(t, fmt.Sprint("s", i)))
		h.put("t", 3, batch(t, fmt.Sprint("d", i)))
	}
	for i := range 4 {
		h.put("t", 1, batch(t, fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)))
	}
	_, err := h.partition("t", 3).DeleteRecords(3)
	require.NoError(t, err)
	return h
}

func TestFetchEveryVersion(t *testing.T) {
	h := library(t, nil)
	c := connect(t, h.server)
	for v := range int16(fetchMax + 1) {
		resp, lines := fetchLines(t, c, v, fetchOf("t", from(0, 8), from(2, 0), from(3, 9)))
		require.Equal(t, []string{"t-0 0 10 8=s8 9=s9", "t-2 0 0", "t-3 0 10 9=d9"}, lines, "version %d", v)
		require.Zero(t, resp.SessionID)
		p := resp.Topics[0].Partitions[2]
		if v >= 4 {
			require.Equal(t, int64(10), p.LastStableOffset)
			require.Nil(t, p.AbortedTransactions)
		}
		if v >= 5 {
			require.Equal(t, int64(3), p.LogStartOffset)
		}
		if v >= 11 {
			require.Equal(t, int32(-1), p.PreferredReadReplica)
		}
		_, lines = fetchLines(t, c, v, fetchOf("t", from(1, 4)))
		want := "t-1 0 12 3=a1 4=b1 5=c1 6=a2 7=b2 8=c2 9=a3 10=b3 11=c3"
		if v < 4 { // old clients don't expect records below the offset
			want = strings.Replace(want, "3=a1 ", "", 1)
		}
		if v == 2 || v == 3 { // messages of format 1 take more space, and the last doesn't fit any more
			want = strings.Replace(want, " 11=c3", "", 1)
		}
		require.Equal(t, []string{want}, lines, "version %d", v)
	}
}

func TestFetchErrors(t *testing.T) {
	h := library(t, nil)
	h.assign("elsewhere", 0, other, other)
	c := connect(t, h.server)
	epoch := h.epoch - 1
	with := func(p kmsg.FetchRequestTopicPartition, f func(*kmsg.FetchRequestTopicPartition)) kmsg.FetchRequestTopicPartition {
		f(&p)
		return p
	}
	for _, tc := range []struct {
		name string
		from int16 // version
		req  *kmsg.FetchRequest
		want string
	}{
		{"end", 0, fetchOf("t", from(0, 10)), "t-0 0 10"},
		{"beyond the end", 0, fetchOf("t", from(0, 11)), "t-0 1 -1"},
		{"far beyond", 0, fetchOf("t", from(0, math.MaxInt64)), "t-0 1 -1"},
		{"2^62", 0, fetchOf("t", from(0, 1<<62)), "t-0 1 -1"},
		{"-1", 0, fetchOf("t", from(0, -1)), "t-0 1 -1"},
		{"below the start", 0, fetchOf("t", from(3, 2)), "t-3 1 -1"},
		{"at the start", 4, fetchOf("t", with(from(3, 3), func(p *kmsg.FetchRequestTopicPartition) { p.PartitionMaxBytes = 1 })), "t-3 0 10 3=d3"},
		{"unknown partition", 0, fetchOf("t", from(99, 0)), "t-99 3 -1"},
		{"negative partition", 0, fetchOf("t", from(-1, 0)), "t--1 3 -1"},
		{"hosted elsewhere", 0, fetchOf("elsewhere", from(0, 0)), "elsewhere-0 6 -1"},
		{"right epoch", 9, fetchOf("t", with(from(2, 0), func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = epoch - 1 })), "t-2 0 0"},
		{"old epoch", 9, fetchOf("t", with(from(2, 0), func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 0 })), "t-2 74 -1"},
		{"new epoch", 9, fetchOf("t", with(from(2, 0), func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 99 })), "t-2 75 -1"},
		{"negative partition limit", 0, fetchOf("t", with(from(0, 0), func(p *kmsg.FetchRequestTopicPartition) { p.PartitionMaxBytes = -1 })), "t-0 -1 -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for v := tc.from; v <= fetchMax; v++ {
				// Errors are told at once, however long the client would wait.
				if !strings.Contains(tc.want, " 0 ") {
					tc.req.MaxWaitMillis, tc.req.MinBytes = 10000, 1
				}
				resp, lines := fetchLines(t, c, v, tc.req)
				require.Equal(t, []string{tc.want}, lines, "version %d", v)
				p := resp.Topics[0].Partitions[0]
				if strings.Contains(tc.want, " 74 ") && v >= 16 {
					require.Equal(t, self, p.CurrentLeader.LeaderID)
					require.Len(t, resp.Brokers, 1)
				}
				if strings.HasPrefix(tc.want, "elsewhere") && v >= 16 {
					require.Equal(t, other, p.CurrentLeader.LeaderID)
					require.Equal(t, "host-2", resp.Brokers[0].Host)
				}
				if strings.Contains(tc.want, " 3 ") && v >= 4 {
					require.NotNil(t, p.AbortedTransactions)
				}
			}
		})
	}
	t.Run("unknown topics", func(t *testing.T) {
		req := fetchOf("nowhere", from(0, 0))
		req.Topics = append(req.Topics, fetchOf("t", from(0, 9)).Topics...)
		for v := range int16(fetchMax + 1) {
			want := []string{"t-0 0 10 9=s9", "nowhere-0 3 -1"}
			if v >= fetchTopicIDs {
				want[1] = "nowhere-0 100 -1"
			}
			_, lines := fetchLines(t, c, v, req)
			require.Equal(t, want, lines, "version %d", v)
		}
	})
	t.Run("isolation 2", func(t *testing.T) {
		for v := range int16(fetchMax + 1) {
			req := fetchOf("t", from(0, 9))
			req.IsolationLevel, req.SessionID = 2, 5
			resp, lines := fetchLines(t, c, v, req)
			switch {
			case v < 4:
				require.Equal(t, []string{"t-0 0 10 9=s9"}, lines)
			case v < fetchTopicIDs:
				require.Equal(t, []string{"t-0 -1 -1"}, lines)
			default:
				require.Empty(t, lines)
			}
			if v >= 7 {
				require.Equal(t, unknownError, resp.ErrorCode)
				require.Equal(t, int32(5), resp.SessionID)
			}
		}
	})
	t.Run("read committed", func(t *testing.T) {
		req := fetchOf("t", from(0, 9))
		req.IsolationLevel = 1
		resp, _ := fetchLines(t, c, 11, req)
		require.NotNil(t, resp.Topics[0].Partitions[0].AbortedTransactions)
		require.Empty(t, resp.Topics[0].Partitions[0].AbortedTransactions)
	})
}

func TestFetchDivergingEpoch(t *testing.T) {
	h := library(t, nil)
	p := from(0, 12)
	p.LastFetchedEpoch = h.epoch - 3 // the epoch under which partition 0 was written
	req := fetchOf("t", p)
	req.MaxWaitMillis, req.MinBytes = 10000, 1
	resp, lines := fetchLines(t, connect(t, h.server), 12, req)
	require.Equal(t, []string{"t-0 0 10"}, lines)
	require.Equal(t, int64(10), resp.Topics[0].Partitions[0].DivergingEpoch.EndOffset)
}

func TestFetchLimits(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 3)
	big := strings.Repeat("x", 300_000)
	h.put("t", 1, batch(t, "small"), batch(t, big), batch(t, "z"))
	h.put("t", 2, batch(t, big))
	limited := func(max, partMax int32, parts ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
		req := fetchOf("t", parts...)
		req.MaxBytes = max
		for i := range parts {
			parts[i].PartitionMaxBytes = partMax
		}
		return req
	}
	c := connect(t, h.server)
	small := "t-1 0 3 0=small"
	for v := int16(3); v <= fetchMax; v++ {
		_, lines := fetchLines(t, c, v, limited(1, 1, from(0, 0), from(1, 1), from(2, 0)))
		require.Equal(t, []string{"t-0 0 0", "t-1 0 3 1=" + big, "t-2 0 1"}, lines, "the first that has anything, and nothing of the next")
		_, lines = fetchLines(t, c, v, limited(1, 1, from(2, 0), from(1, 1)))
		require.Equal(t, []string{"t-2 0 1 0=" + big, "t-1 0 3"}, lines)
		_, lines = fetchLines(t, c, v, limited(1000, 1<<20, from(1, 0), from(2, 0)))
		require.Equal(t, []string{small, "t-2 0 1"}, lines)
		if v > 3 { // which converts
			_, lines = fetchLines(t, c, v, limited(-1, 1<<20, from(1, 0)))
			require.Equal(t, []string{"t-1 -1 -1"}, lines)
		}
	}
	for v := range int16(3) {
		_, lines := fetchLines(t, c, v, limited(0, 50, from(1, 0), from(2, 0)))
		require.Equal(t, []string{"t-1 0 3", "t-2 0 1"}, lines, "the limits are hard")
	}

	bounded := newHouse(t, func(d *Deps) { d.FetchMaxBytes = 100 })
	bounded.topic("t", 1)
	for range 10 {
		bounded.put("t", 0, batch(t, "small"))
	}
	_, lines := fetchLines(t, connect(t, bounded.server), 12, fetchOf("t", from(0, 0)))
	require.Equal(t, []string{"t-0 0 10 0=small"}, lines, "the broker's own limit")
}

func TestFetchWaits(t *testing.T) {
	h := library(t, nil)
	c := connect(t, h.server)
	version := int16(12)
	timed := func(maxWait, minBytes int32, during func(), parts ...kmsg.FetchRequestTopicPartition) (time.Duration, []string) {
		t.Helper()
		req := fetchOf("t", parts...)
		req.MaxWaitMillis, req.MinBytes = maxWait, minBytes
		done := make(chan struct{})
		go func() {
			defer close(done)
			if during != nil {
				time.Sleep(50 * time.Millisecond)
				during()
			}
		}()
		began := time.Now()
		_, lines := fetchLines(t, c, version, req)
		took := time.Since(began)
		<-done
		return took, lines
	}
	const long, short = 300_000, 150
	patience := time.Minute // far below long, and far above what anything takes

	took, lines := timed(short, 1, nil, from(0, 10))
	require.GreaterOrEqual(t, took, short*time.Millisecond)
	require.Equal(t, []string{"t-0 0 10"}, lines)

	took, _ = timed(long, 0, nil, from(0, 10))
	require.Less(t, took, patience, "min bytes 0")
	took, _ = timed(-1, 1, nil, from(0, 10))
	require.Less(t, took, patience, "no wait")
	took, _ = timed(long, 1, nil, from(0, 9))
	require.Less(t, took, patience, "there is enough")
	took, _ = timed(long, 1, nil, from(99, 0))
	require.Less(t, took, patience, "nothing to read")

	took, lines = timed(long, 1, func() { h.put("t", 0, batch(t, "new")) }, from(2, 0), from(0, 10))
	require.Less(t, took, patience)
	require.Equal(t, []string{"t-2 0 0", "t-0 0 11 10=new"}, lines)

	took, lines = timed(2*short, 100_000, func() { h.put("t", 0, batch(t, "more")) }, from(0, 11))
	require.GreaterOrEqual(t, took, 2*short*time.Millisecond)
	require.Equal(t, []string{"t-0 0 12 11=more"}, lines, "too little, but all there is")

	took, lines = timed(short, 1, nil, from(0, 12), from(99, 0))
	require.GreaterOrEqual(t, took, short*time.Millisecond, "an unknown partition doesn't keep the others from waiting")
	require.Equal(t, []string{"t-0 0 12", "t-99 3 -1"}, lines)

	version = 10 // later ones may be served by followers
	took, lines = timed(long, 1, func() { h.assign("t", 2, other, self, other) }, from(2, 0), from(0, 12))
	require.Less(t, took, patience, "the leadership moved")
	require.Equal(t, []string{"t-2 6 -1", "t-0 0 12"}, lines)
}

// TestFetchKeepsItsTurn has a fetch that waits and requests behind it in the same write.
func TestFetchKeepsItsTurn(t *testing.T) {
	h := library(t, nil)
	c := connect(t, h.server)
	req := fetchOf("t", from(0, 10))
	req.Version, req.MaxWaitMillis, req.MinBytes = 4, 300, 1
	plainFetch(req)
	versions := kmsg.NewPtrApiVersionsRequest()
	offsets := kmsg.NewPtrListOffsetsRequest()
	offsets.ReplicaID = -1
	var all []byte
	for _, r := range []kmsg.Request{req, versions, offsets} {
		all = append(all, c.frame(r.Key(), r.GetVersion(), false, r.AppendTo(nil))...)
	}
	began := time.Now()
	c.write(all)
	c.receive(1, req)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	c.receive(2, versions)
	c.receive(3, offsets)
}

func TestFetchOfVanishedClientEnds(t *testing.T) {
	h := library(t, nil)
	c := connect(t, h.server)
	req := fetchOf("t", from(0, 10))
	req.Version, req.MaxWaitMillis, req.MinBytes = 11, 600_000, 1
	plainFetch(req)
	c.send(req)
	time.Sleep(50 * time.Millisecond)
	c.Close()
	require.Eventually(t, func() bool { return h.server.Connections() == 0 }, time.Minute, 10*time.Millisecond)
}

func TestFetchSessions(t *testing.T) {
	h := library(t, nil)
	for _, v := range []int16{7, 12, 13, fetchMax} {
		c := connect(t, h.server)
		end := h.end("t", 0)
		step := func(id, epoch int32, want []string, parts ...kmsg.FetchRequestTopicPartition) *kmsg.FetchResponse {
			t.Helper()
			req := fetchOf("t", parts...)
			if len(parts) == 0 {
				req.Topics = nil
			}
			req.SessionID, req.SessionEpoch = id, epoch
			resp, lines := fetchLines(t, c, v, req)
			require.Equal(t, want, lines, "version %d", v)
			return resp
		}
		empty := "t-2 0 0"
		id := step(0, 0, []string{fmt.Sprintf("t-0 0 %d", end), empty}, from(0, end), from(2, 0)).SessionID
		require.Positive(t, id)
		require.Equal(t, id, step(id, 1, nil).SessionID)
		h.put("t", 0, batch(t, "new"))
		news := fmt.Sprintf("t-0 0 %d %d=new", end+1, end)
		step(id, 2, []string{news})
		step(id, 3, []string{news}) // the client did not move on
		step(id, 4, []string{"t-1 0 12 9=a3 10=b3 11=c3"}, from(0, end+1), from(1, 11))
		require.Equal(t, kerr.InvalidFetchSessionEpoch.Code, step(id, 4, nil).ErrorCode)
		require.Equal(t, kerr.FetchSessionIDNotFound.Code, step(id^1, 1, nil).ErrorCode)
		gone := "t-99 3 -1"
		step(id, 5, []string{"t-1 0 12 9=a3 10=b3 11=c3", gone}, from(99, 0))
		step(id, 6, []string{gone}, from(1, 12))
		step(id, 7, []string{"t-0 1 -1", gone}, from(0, end+50))
		step(id, 8, []string{fmt.Sprintf("t-0 0 %d", end+1), gone}, from(0, end+1))

		forget := fetchOf("t")
		forget.Topics, forget.SessionID, forget.SessionEpoch = nil, id, 9
		forget.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "t", TopicID: topicID("t"), Partitions: []int32{0, 1, 2, 99, 3}}}
		resp, lines := fetchLines(t, c, v, forget)
		require.Empty(t, lines)
		require.Zero(t, resp.SessionID)
		require.Equal(t, kerr.FetchSessionIDNotFound.Code, step(id, 10, nil).ErrorCode)
	}
	c := connect(t, h.server)
	open := fetchOf("t", from(2, 0))
	open.SessionEpoch = 0
	resp, _ := fetchLines(t, c, 12, open)
	next := fetchOf("t")
	next.Topics, next.SessionID, next.SessionEpoch = nil, resp.SessionID, 1
	resp, _ = fetchLines(t, c, 13, next)
	require.Equal(t, kerr.FetchSessionTopicIDError.Code, resp.ErrorCode)
}

// TestFetchSessionWaits: a session's empty fetch has to wait like any other.
func TestFetchSessionWaits(t *testing.T) {
	h := library(t, nil)
	c := connect(t, h.server)
	open := fetchOf("t", from(0, 10), from(2, 0))
	open.SessionEpoch = 0
	resp, _ := fetchLines(t, c, 11, open)
	for epoch := int32(1); epoch <= 3; epoch++ {
		next := fetchOf("t")
		next.Topics, next.SessionID, next.SessionEpoch = nil, resp.SessionID, epoch
		next.MaxWaitMillis, next.MinBytes = 100, 1
		began := time.Now()
		_, lines := fetchLines(t, c, 11, next)
		require.Empty(t, lines)
		require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
	}
}

func TestFetchForOldClients(t *testing.T) {
	h := newHouse(t, nil)
	c := log.DefaultConfig()
	c.Compression = log.Compression{Codec: record.Zstd}
	h.configs["zstd"] = c
	h.topic("zstd", 1)
	h.put("zstd", 0, batch(t, "a", "b"))
	conn := connect(t, h.server)
	for v := range int16(fetchMax + 1) {
		resp := call[*kmsg.FetchResponse](conn, v, func() *kmsg.FetchRequest {
			req := fetchOf("zstd", from(0, 0))
			req.Version = v
			plainFetch(req)
			return req
		}())
		p := resp.Topics[0].Partitions[0]
		if v < 10 {
			require.Equal(t, kerr.UnsupportedCompressionType.Code, p.ErrorCode, "version %d", v)
			require.Nil(t, p.RecordBatches)
		} else {
			require.Zero(t, p.ErrorCode)
			require.NotEmpty(t, p.RecordBatches)
		}
	}
}

// What is read on for clients that can't see markers is bounded by the broker, too, whatever the client would take.
func TestFetchReadsOnWithinLimits(t *testing.T) {
	const limit = 200
	h := newHouse(t, func(d *Deps) { d.FetchMaxBytes = limit })
	h.topic("t", 1)
	p := h.partition("t", 0)
	for i := range 3 { // more than the limit
		b := record.NewBuilder(record.Options{LeaderEpoch: record.NoLeaderEpoch, Transactional: true, Control: true,
			Producer: &record.Producer{ID: int64(i), Sequence: record.NoSequence}})
		marker := record.EndTxnMarker{Commit: true}
		require.NoError(t, b.Append(marker.Record(0, 1)))
		out, err := b.Build(nil, nil)
		require.NoError(t, err)
		_, err = p.Append(partition.Append{Batches: out, Acks: -1, Coordinator: true})
		require.NoError(t, err)
	}
	for range 20 {
		h.put("t", 0, batch(t, "value"))
	}
	c := connect(t, h.server)
	for v := range int16(4) {
		resp, lines := fetchLines(t, c, v, fetchOf("t", from(0, 0)))
		require.Contains(t, lines[0], "3=value", "version %d", v)
		require.LessOrEqual(t, len(resp.Topics[0].Partitions[0].RecordBatches), limit)
	}
}

func TestFetchMalformed(t *testing.T) {
	h := library(t, nil)
	for v := range int16(fetchMax + 1) {
		req := fetchOf("t", from(0, 0))
		req.Version = v
		plainFetch(req)
		body := req.AppendTo(nil)
		for _, cut := range [][]byte{{}, body[:len(body)-1], body[:len(body)/2]} {
			c := connect(t, h.server)
			c.write(c.frame(1, v, req.IsFlexible(), cut))
			c.expectClosed()
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	h := library(b, nil)
	c := connect(b, h.server)
	c.SetDeadline(time.Time{})
	req := fetchOf("t", from(0, 0))
	req.Version = 12
	plainFetch(req)
	frame := c.frame(1, 12, true, req.AppendTo(nil))
	b.ReportAllocs()
	for b.Loop() {
		c.write(frame)
		c.payload()
	}
}

func BenchmarkProduce(b *testing.B) {
	h := newHouse(b, nil)
	h.topic("t", 1)
	c := connect(b, h.server)
	c.SetDeadline(time.Time{})
	req := produceTo("t", 0, batch(b, strings.Repeat("x", 1000)))
	req.Version = 9
	frame := c.frame(0, 9, true, req.AppendTo(nil))
	b.ReportAllocs()
	for b.Loop() {
		c.write(frame)
		c.payload()
	}
}
