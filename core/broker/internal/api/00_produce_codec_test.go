package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	produceMax = 13
	fetchMax   = 18
)

// sampleProduce is a request with something in every field.
func sampleProduce(version int16) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = version
	req.TransactionID = kmsg.StringPtr("txn")
	req.Acks, req.TimeoutMillis = -1, 1234
	req.Topics = []kmsg.ProduceRequestTopic{
		{Topic: "one", TopicID: [16]byte{1}, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: 0, Records: []byte("abc")}, {Partition: 7}}},
		{Topic: "", TopicID: [16]byte{2}, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: -1, Records: []byte{}}}},
		{Topic: "three", TopicID: [16]byte{3}},
	}
	return req
}

func requireSameProduce(t *testing.T, want *kmsg.ProduceRequest, got *produceRequest) {
	t.Helper()
	require.Equal(t, want.TransactionID != nil, got.transactional)
	require.Equal(t, want.Acks, got.acks)
	require.Equal(t, want.TimeoutMillis, got.timeoutMs)
	require.Len(t, got.topics, len(want.Topics))
	for i, wt := range want.Topics {
		gt := got.topics[i]
		require.Equal(t, wt.Topic, string(gt.name))
		require.Equal(t, wt.TopicID, gt.id)
		require.Len(t, wt.Partitions, gt.to-gt.from)
		for j, wp := range wt.Partitions {
			gp := got.partitions[gt.from+j]
			require.Equal(t, wp.Partition, gp.partition)
			require.Equal(t, wp.Records == nil, gp.records == nil)
			require.Equal(t, string(wp.Records), string(gp.records))
		}
	}
}

func TestProduceDecode(t *testing.T) {
	var q produceRequest
	for v := range int16(produceMax + 1) {
		body := sampleProduce(v).AppendTo(nil)
		want := kmsg.NewPtrProduceRequest()
		want.Version = v
		require.NoError(t, want.ReadFrom(body))
		require.NoError(t, q.parse(v, body))
		requireSameProduce(t, want, &q)
		for n := range body {
			require.Error(t, q.parse(v, body[:n]), "version %d cut to %d bytes", v, n)
		}
		require.NoError(t, q.parse(v, append(body, 1, 2, 3)), "bytes behind the body")
	}
}

func TestProduceMerge(t *testing.T) {
	part := func(n int32, records string) kmsg.ProduceRequestTopicPartition {
		return kmsg.ProduceRequestTopicPartition{Partition: n, Records: []byte(records)}
	}
	many := func(n int) (ps []kmsg.ProduceRequestTopicPartition) {
		for i := range n {
			ps = append(ps, part(int32(i), "x"))
		}
		return ps
	}
	type topic = kmsg.ProduceRequestTopic
	for _, tc := range []struct {
		name string
		in   []topic
		want []topic
	}{
		{"nothing", nil, nil},
		{"tidy", []topic{{Topic: "a", Partitions: many(3)}, {Topic: "b", Partitions: many(1)}}, []topic{{Topic: "a", Partitions: many(3)}, {Topic: "b", Partitions: many(1)}}},
		{"many", []topic{{Topic: "a", Partitions: many(100)}}, []topic{{Topic: "a", Partitions: many(100)}}},
		{"without partitions", []topic{{Topic: "a"}, {Topic: "b", Partitions: many(1)}}, []topic{{Topic: "b", Partitions: many(1)}}},
		{"partition twice", []topic{{Topic: "a", Partitions: []kmsg.ProduceRequestTopicPartition{part(0, "x"), part(1, "y"), part(0, "z")}}},
			[]topic{{Topic: "a", Partitions: []kmsg.ProduceRequestTopicPartition{part(0, "z"), part(1, "y")}}}},
		{"topic twice", []topic{{Topic: "a", Partitions: []kmsg.ProduceRequestTopicPartition{part(0, "x")}}, {Topic: "b", Partitions: many(1)},
			{Topic: "a", Partitions: []kmsg.ProduceRequestTopicPartition{part(1, "y"), part(0, "z")}}},
			[]topic{{Topic: "a", Partitions: []kmsg.ProduceRequestTopicPartition{part(0, "z"), part(1, "y")}}, {Topic: "b", Partitions: many(1)}}},
		{"many and one twice", []topic{{Topic: "a", Partitions: append(many(100), part(5, "z"))}},
			[]topic{{Topic: "a", Partitions: func() []kmsg.ProduceRequestTopicPartition { ps := many(100); ps[5] = part(5, "z"); return ps }()}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, want := kmsg.NewPtrProduceRequest(), kmsg.NewPtrProduceRequest()
			req.Topics, want.Topics = tc.in, tc.want
			var q produceRequest
			require.NoError(t, q.decode(0, req.AppendTo(nil)))
			requireSameProduce(t, want, &q)
		})
	}
}

// encodeProduce encodes a response as the handler does.
func encodeProduce(resp *kmsg.ProduceResponse) []byte {
	v := resp.Version
	out := appendArrayLen(nil, len(resp.Topics), v >= 9)
	for _, t := range resp.Topics {
		out = appendProduceTopic(out, v, &produceTopic{name: []byte(t.Topic), id: t.TopicID}, len(t.Partitions))
		for _, p := range t.Partitions {
			r := produceResult{partition: p.Partition, code: p.ErrorCode, baseOffset: p.BaseOffset, logAppendTime: p.LogAppendTime, logStart: p.LogStartOffset,
				leader: p.CurrentLeader.LeaderID, leaderEpoch: p.CurrentLeader.LeaderEpoch}
			if p.ErrorMessage != nil {
				r.message = *p.ErrorMessage
			}
			for _, e := range p.ErrorRecords {
				r.records = append(r.records, recordError{e.RelativeOffset, *e.ErrorMessage})
			}
			out, _ = appendProduceResult(out, v, &r)
		}
		out = appendProduceEnd(out, v)
	}
	return appendProduceTail(out, v, nodesOf(resp.Brokers))
}

func nodesOf(brokers []kmsg.ProduceResponseBroker) (nodes []endpoint) {
	for _, b := range brokers {
		n := endpoint{id: b.NodeID, host: b.Host, port: b.Port}
		if b.Rack != nil {
			n.rack = *b.Rack
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func TestProduceEncode(t *testing.T) {
	for v := range int16(produceMax + 1) {
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = v
		require.Equal(t, resp.AppendTo(nil), encodeProduce(resp), "version %d, empty", v)
		for i := range 3 {
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic, topic.TopicID = strings.Repeat("t", i*100), [16]byte{byte(i)}
			for j := range i {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode, p.BaseOffset, p.LogAppendTime, p.LogStartOffset = int32(j), int16(j), 1<<40, 1<<41, 1<<42
				if j == 1 {
					if v >= 10 {
						p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 4, 5
					}
					p.ErrorMessage = kmsg.StringPtr("wrong")
					p.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: 3, ErrorMessage: kmsg.StringPtr("no key")}, {RelativeOffset: 4, ErrorMessage: kmsg.StringPtr(strings.Repeat("x", 200))}}
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		if v >= 10 {
			resp.Brokers = []kmsg.ProduceResponseBroker{{NodeID: 4, Host: "host", Port: 9092}, {NodeID: 5, Host: strings.Repeat("h", 200), Port: 1, Rack: kmsg.StringPtr("r")}}
		}
		require.Equal(t, resp.AppendTo(nil), encodeProduce(resp), "version %d", v)
	}
}

func FuzzProduceDecode(f *testing.F) {
	for v := range int16(produceMax + 1) {
		f.Add(v, sampleProduce(v).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 0 || version > produceMax || len(body) > 32<<10 {
			return
		}
		var q produceRequest
		_ = q.decode(version, body) // anything but a panic
		want := kmsg.NewPtrProduceRequest()
		want.Version = version
		if want.ReadFrom(body) != nil {
			return
		}
		// What kmsg makes of any bytes, encoded as it should be, must read the same here.
		if err := q.parse(version, want.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		requireSameProduce(t, want, &q)
	})
}

func BenchmarkProduceDecode(b *testing.B) {
	req := sampleProduce(11)
	req.TransactionID = nil
	req.Topics = req.Topics[:1]
	body := req.AppendTo(nil)
	var q produceRequest
	b.ReportAllocs()
	for b.Loop() {
		if err := q.decode(11, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProduceEncode(b *testing.B) {
	topic := produceTopic{name: []byte("topic")}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = appendProduceTopic(appendArrayLen(out[:0], 1, true), 11, &topic, 1)
		out, _ = appendProduceResult(out, 11, &produceResult{baseOffset: 5, logAppendTime: -1, leader: -1})
		out = appendProduceTail(appendProduceEnd(out, 11), 11, nil)
	}
}
