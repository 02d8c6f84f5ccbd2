package api

import (
	"encoding/binary"
	"encoding/hex"
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

func one(t testing.TB, resp *kmsg.ProduceResponse) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	require.Len(t, resp.Topics, 1)
	require.Len(t, resp.Topics[0].Partitions, 1)
	return resp.Topics[0].Partitions[0]
}

func TestProduceEveryVersion(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 2)
	c := connect(t, h.server)
	for v := range int16(produceMax + 1) {
		for _, acks := range []int16{-1, 1} {
			end := h.end("t", 0)
			req := produceTo("t", 0, batch(t, "a", "b"))
			req.Acks = acks
			p := one(t, call[*kmsg.ProduceResponse](c, v, req))
			require.Zero(t, p.ErrorCode)
			require.Equal(t, end, p.BaseOffset)
			if v >= 2 {
				require.Equal(t, int64(-1), p.LogAppendTime)
			}
			if v >= 5 {
				require.Zero(t, p.LogStartOffset)
			}
			require.Equal(t, end+2, h.end("t", 0))
		}
	}
}

func TestProduceRefusals(t *testing.T) {
	h := newHouse(t, nil)
	small, compacted := log.DefaultConfig(), log.DefaultConfig()
	small.MaxMessageBytes = 500
	compacted.Compact, compacted.Delete = true, false
	h.configs["small"], h.configs["compacted"] = small, compacted
	for _, topic := range []string{"t", "small", "compacted", offsetsTopic} {
		h.topic(topic, 1)
	}
	h.assign("elsewhere", 0, other, other)
	good := batch(t, "a")
	with := func(at int, v ...byte) []byte {
		b := append([]byte(nil), good...)
		copy(b[at:], v)
		return b
	}
	resealed := func(b []byte) []byte { record.SetCRC(b); return b }
	twoRecords := batch(t, "a", "b")
	noKey := record.NewBuilder(record.Options{})
	require.NoError(t, noKey.Append(record.Record{Key: []byte("k"), Value: []byte("v")}))
	require.NoError(t, noKey.Append(record.Record{Offset: 1, Value: []byte("v")}))
	keyless, err := noKey.Build(nil, nil)
	require.NoError(t, err)
	for _, tc := range []struct {
		name    string
		topic   string
		records []byte
		want    *kerr.Error
		start   int64 // the log start offset that is told
		change  func(*kmsg.ProduceRequest)
	}{
		{name: "checksum", records: with(len(good)-2, 'x'), want: kerr.CorruptMessage, start: -1},
		{name: "magic 3", records: with(16, 3), want: kerr.CorruptMessage, start: -1},
		{name: "two batches", records: append(batch(t, "a"), good...), want: kerr.InvalidRecord, start: -1},
		{name: "message format 1", records: with(16, 1), want: kerr.InvalidRecord, start: -1},
		{name: "null records", records: nil, want: kerr.InvalidRecord, start: -1},
		{name: "no records", records: []byte{}, want: kerr.InvalidRecord, start: -1},
		{name: "base offset", records: with(7, 5), want: kerr.InvalidRecord},
		{name: "record count", records: resealed(with(60, 3)), want: kerr.InvalidRecord},
		{name: "last offset delta", records: func() []byte { b := append([]byte(nil), twoRecords...); b[26] = 0; return resealed(b) }(), want: kerr.InvalidRecord},
		{name: "control batch", records: resealed(with(22, 0x20)), want: kerr.InvalidRecord},
		{name: "too large", topic: "small", records: batch(t, strings.Repeat("x", 900)), want: kerr.MessageTooLarge, start: -1},
		{name: "null key in a compacted topic", topic: "compacted", records: keyless, want: kerr.InvalidRecord},
		{name: "internal topic", topic: offsetsTopic, records: good, want: kerr.InvalidTopicException, start: -1},
		{name: "unknown topic", topic: "unknown", records: good, want: kerr.UnknownTopicOrPartition, start: -1},
		{name: "unknown partition", records: good, want: kerr.UnknownTopicOrPartition, start: -1, change: func(r *kmsg.ProduceRequest) { r.Topics[0].Partitions[0].Partition = 9 }},
		{name: "negative partition", records: good, want: kerr.UnknownTopicOrPartition, start: -1, change: func(r *kmsg.ProduceRequest) { r.Topics[0].Partitions[0].Partition = -1 }},
		{name: "hosted elsewhere", topic: "elsewhere", records: good, want: kerr.NotLeaderForPartition, start: -1},
		{name: "acks 2", records: good, want: kerr.InvalidRequiredAcks, start: -1, change: func(r *kmsg.ProduceRequest) { r.Acks = 2 }},
		{name: "acks -2", records: good, want: kerr.InvalidRequiredAcks, start: -1, change: func(r *kmsg.ProduceRequest) { r.Acks = -2 }},
		{name: "transactional", records: resealed(with(22, 0x10)), want: kerr.TransactionalIDAuthorizationFailed, start: -1},
		{name: "transactional with an id", records: resealed(with(22, 0x10)), want: kerr.InvalidProducerIDMapping, start: -1, change: func(r *kmsg.ProduceRequest) { r.TransactionID = kmsg.StringPtr("x") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			topic := tc.topic
			if topic == "" {
				topic = "t"
			}
			for _, v := range []int16{3, 7, 8, 9, 12} {
				before := h.end("t", 0)
				req := produceTo(topic, 0, tc.records)
				if tc.change != nil {
					tc.change(req)
				}
				resp := call[*kmsg.ProduceResponse](connect(t, h.server), v, req)
				p := one(t, resp)
				require.Equal(t, tc.want.Code, p.ErrorCode, "version %d: %v", v, kerr.ErrorForCode(p.ErrorCode))
				require.Equal(t, int64(-1), p.BaseOffset)
				require.Equal(t, int64(-1), p.LogAppendTime)
				if v >= 5 {
					require.Equal(t, tc.start, p.LogStartOffset)
				}
				require.Equal(t, before, h.end("t", 0))
				if tc.name == "null key in a compacted topic" && v >= 8 {
					require.NotNil(t, p.ErrorMessage)
					require.Len(t, p.ErrorRecords, 1)
					require.Equal(t, int32(1), p.ErrorRecords[0].RelativeOffset)
				} else {
					require.Equal(t, tc.name == "magic 3" && v >= 8, p.ErrorMessage != nil)
				}
				if tc.name == "hosted elsewhere" && v >= 10 {
					require.Equal(t, other, p.CurrentLeader.LeaderID)
					require.Equal(t, []kmsg.ProduceResponseBroker{{NodeID: other, Host: "host-2", Port: 9092}}, resp.Brokers)
				} else {
					require.Equal(t, int32(-1), p.CurrentLeader.LeaderID)
					require.Empty(t, resp.Brokers)
				}
			}
		})
	}
	unknown := produceTo("unknown", 0, good)
	require.Equal(t, kerr.UnknownTopicID.Code, one(t, call[*kmsg.ProduceResponse](connect(t, h.server), 13, unknown)).ErrorCode)
}

func TestProduceOneBadPartitionDoesNotHarmTheOthers(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 2)
	req := produceTo("t", 0, batch(t, "a"))
	bad := batch(t, "b")
	bad[30] ^= 1
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.ProduceRequestTopicPartition{Partition: 9, Records: batch(t, "b")},
		kmsg.ProduceRequestTopicPartition{Partition: 1, Records: bad})
	resp := call[*kmsg.ProduceResponse](connect(t, h.server), 9, req)
	var codes []int16
	for _, p := range resp.Topics[0].Partitions {
		codes = append(codes, p.ErrorCode)
	}
	require.Equal(t, []int16{0, kerr.UnknownTopicOrPartition.Code, kerr.CorruptMessage.Code}, codes)
	require.Equal(t, int64(1), h.end("t", 0))
	require.Zero(t, h.end("t", 1))
}

func TestProduceSilent(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1)
	c := connect(t, h.server)
	req := produceTo("t", 0, batch(t, "a"))
	req.Acks, req.Version = 0, 9
	for range 3 {
		c.send(req)
	}
	versions := kmsg.NewPtrApiVersionsRequest()
	call[*kmsg.ApiVersionsResponse](c, 0, versions) // the first answer on this connection
	require.Equal(t, int64(3), h.end("t", 0))

	req.Topics[0].Partitions[0].Partition = 7
	c.send(req)
	c.expectClosed()
}

// TestProduceWaitsForReplicas has a follower that the test plays: answers wait for it, and neither for one another nor for
// it to have caught up with what came later.
func TestProduceWaitsForReplicas(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1, self, other)
	c := connect(t, h.server)
	req := produceTo("t", 0, batch(t, "a"))
	req.Version = 9
	var corrs []int32
	for range 3 {
		corrs = append(corrs, c.send(req))
	}
	require.Eventually(t, func() bool { return h.end("t", 0) == 3 }, time.Minute, time.Millisecond, "the next is appended while the first waits")

	local := produceTo("t", 0, batch(t, "a"))
	local.Version, local.Acks = 9, 1
	corrs = append(corrs, c.send(local)) // ready at once, but not its turn
	require.Eventually(t, func() bool { return h.end("t", 0) == 4 }, time.Minute, time.Millisecond)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err, "answered before it was replicated")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))

	follow := func(offset int64) {
		_, err := h.partition("t", 0).Read(partition.Read{Offset: offset, MaxBytes: 1 << 20, ReplicaID: other, LeaderEpoch: -1, LastFetchedEpoch: -1})
		require.NoError(t, err)
	}
	follow(2)
	for i := range int64(2) {
		p := one(t, c.receive(corrs[i], req).(*kmsg.ProduceResponse))
		require.Zero(t, p.ErrorCode)
		require.Equal(t, i, p.BaseOffset)
	}
	follow(4)
	require.Equal(t, int64(2), one(t, c.receive(corrs[2], req).(*kmsg.ProduceResponse)).BaseOffset)
	require.Equal(t, int64(3), one(t, c.receive(corrs[3], local).(*kmsg.ProduceResponse)).BaseOffset)
}

func TestProduceTimesOut(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1, self, other)
	for _, timeout := range []int32{0, -1, 50} {
		end := h.end("t", 0)
		req := produceTo("t", 0, batch(t, "a"))
		req.TimeoutMillis = timeout
		p := one(t, call[*kmsg.ProduceResponse](connect(t, h.server), 9, req))
		require.Equal(t, kerr.RequestTimedOut.Code, p.ErrorCode)
		require.Equal(t, end, p.BaseOffset, "it stays in the log")
		require.Equal(t, end+1, h.end("t", 0))
	}
}

func TestProduceLosesLeadershipWhileItWaits(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1, self, other)
	c := connect(t, h.server)
	req := produceTo("t", 0, batch(t, "a"))
	req.Version = 11
	corr := c.send(req)
	require.Eventually(t, func() bool { return h.end("t", 0) == 1 }, time.Minute, time.Millisecond)
	h.assign("t", 0, other, self, other)
	require.Equal(t, kerr.NotLeaderForPartition.Code, one(t, c.receive(corr, req).(*kmsg.ProduceResponse)).ErrorCode)

	p := one(t, call[*kmsg.ProduceResponse](c, 11, req))
	require.Equal(t, kerr.NotLeaderForPartition.Code, p.ErrorCode)
	require.Equal(t, other, p.CurrentLeader.LeaderID)
}

func TestProduceWaitsForTheFlush(t *testing.T) {
	h := newHouse(t, nil)
	flushed := log.DefaultConfig()
	flushed.FlushMessages = 1
	h.configs["t"] = flushed
	h.topic("t", 2)
	for _, acks := range []int16{1, -1} {
		req := produceTo("t", 0, batch(t, "a"))
		req.Acks = acks
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.ProduceRequestTopicPartition{Partition: 1, Records: batch(t, "b")})
		resp := call[*kmsg.ProduceResponse](connect(t, h.server), 9, req)
		for _, p := range resp.Topics[0].Partitions {
			require.Zero(t, p.ErrorCode)
			require.Equal(t, p.BaseOffset+1, h.partition("t", p.Partition).Log().RecoveryPoint())
		}
	}
}

func TestProduceAbandonedWhenTheClientGoes(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1, self, other)
	c := connect(t, h.server)
	req := produceTo("t", 0, batch(t, "a"))
	req.Version, req.TimeoutMillis = 9, 1<<31-1
	c.send(req)
	require.Eventually(t, func() bool { return h.end("t", 0) == 1 }, time.Minute, time.Millisecond)
	c.Close()
	require.Eventually(t, func() bool { return h.server.Connections() == 0 }, time.Minute, time.Millisecond)
}

// TestPipelinedProduces sends fifty requests in one write: their offsets ascend in the order sent.
func TestPipelinedProduces(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1)
	c := connect(t, h.server)
	req := produceTo("t", 0, batch(t, "a"))
	req.Version = 7
	var all []byte
	first := c.corr + 1
	for range 50 {
		all = append(all, c.frame(0, 7, false, req.AppendTo(nil))...)
	}
	versions := kmsg.NewPtrApiVersionsRequest()
	all = append(all, c.frame(18, 0, false, versions.AppendTo(nil))...)
	c.write(all)
	for i := range int64(50) {
		require.Equal(t, i, one(t, c.receive(first+int32(i), req).(*kmsg.ProduceResponse)).BaseOffset)
	}
	c.receive(first+50, versions)
}

// TestProduceOldFormats has byte vectors of message formats 0 and 1: two messages, and the second one damaged.
func TestProduceOldFormats(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1)
	for _, tc := range []struct {
		version int16
		set     string
	}{
		{0, "0000000000000000 0000000f 51df3a32 00 00 ffffffff 00000001 61 0000000000000001 0000000f c8d66b88 00 00 ffffffff 00000001 62"},
		{2, "0000000000000000 00000017 8a65e96d 01 00 00000000000003e8 ffffffff 00000001 61 0000000000000001 00000017 136cb8d7 01 00 00000000000003e8 ffffffff 00000001 62"},
	} {
		set, err := hex.DecodeString(strings.ReplaceAll(tc.set, " ", ""))
		require.NoError(t, err)
		end := h.end("t", 0)
		require.Zero(t, one(t, call[*kmsg.ProduceResponse](connect(t, h.server), tc.version, produceTo("t", 0, append([]byte(nil), set...)))).ErrorCode)
		require.Equal(t, end+2, h.end("t", 0))
		set[len(set)-1] ^= 1
		require.Equal(t, kerr.CorruptMessage.Code, one(t, call[*kmsg.ProduceResponse](connect(t, h.server), tc.version, produceTo("t", 0, set))).ErrorCode)
		require.Equal(t, end+2, h.end("t", 0), "none of it was appended")
	}
}

// TestProduceSizeLimit is at the limit and one above it, in bytes of the whole batch.
func TestProduceSizeLimit(t *testing.T) {
	h := newHouse(t, nil)
	c := log.DefaultConfig()
	c.MaxMessageBytes = 1000
	h.configs["t"] = c
	plain := c
	plain.Compression = log.Compression{Codec: record.None}
	segment := log.DefaultConfig()
	segment.SegmentBytes = 2000
	h.configs["plain"], h.configs["segment"] = plain, segment
	for _, topic := range []string{"t", "plain", "segment"} {
		h.topic(topic, 1)
	}
	sized := func(n int) []byte {
		for pad := n - 100; ; pad++ {
			if b := batch(t, strings.Repeat("x", pad)); len(b) == n {
				return b
			}
		}
	}
	conn := connect(t, h.server)
	for i, tc := range []struct {
		size int
		want int16
	}{{1000, 0}, {1001, kerr.MessageTooLarge.Code}, {200, 0}} {
		require.Equal(t, tc.want, one(t, call[*kmsg.ProduceResponse](conn, 9, produceTo("t", 0, sized(tc.size)))).ErrorCode, "step %d", i)
	}
	require.Equal(t, int64(2), h.end("t", 0))

	// What counts is the size as it was sent, and as it would be stored.
	b := record.NewBuilder(record.Options{Codec: record.Gzip})
	require.NoError(t, b.Append(record.Record{Key: []byte("k"), Value: make([]byte, 50_000)}))
	zeros, err := b.Build(nil, h.codecs)
	require.NoError(t, err)
	require.Less(t, len(zeros), 1000)
	for topic, want := range map[string]int16{"t": 0, "plain": kerr.MessageTooLarge.Code} {
		require.Equal(t, want, one(t, call[*kmsg.ProduceResponse](conn, 9, produceTo(topic, 0, append([]byte(nil), zeros...)))).ErrorCode, topic)
	}
	require.Equal(t, kerr.RecordListTooLarge.Code, one(t, call[*kmsg.ProduceResponse](conn, 9, produceTo("segment", 0, sized(3000)))).ErrorCode)
}

func TestProduceMalformed(t *testing.T) {
	h := newHouse(t, nil)
	h.topic("t", 1)
	for v := range int16(produceMax + 1) {
		req := produceTo("t", 0, batch(t, "a"))
		req.Version = v
		body := req.AppendTo(nil)
		for _, cut := range [][]byte{{}, body[:len(body)-1], body[:len(body)/2]} {
			c := connect(t, h.server)
			c.write(c.frame(0, v, req.IsFlexible(), cut))
			c.expectClosed()
		}
	}
	huge := binary.BigEndian.AppendUint32([]byte{0xff, 0xff, 0, 0, 0, 10}, 0x7fffffff)
	c := connect(t, h.server)
	c.write(c.frame(0, 2, false, huge))
	c.expectClosed()
	require.Zero(t, h.end("t", 0), "nothing was appended")
}
