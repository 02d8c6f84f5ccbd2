package bench

import (
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpread(t *testing.T) {
	cover := func(all []share) map[int32]int {
		n := map[int32]int{}
		for _, s := range all {
			for _, p := range s.partitions {
				n[p]++
			}
		}
		return n
	}
	all, err := spread(map[string][]int32{"a": {0, 1, 2, 3}}, 3)
	require.NoError(t, err)
	require.Equal(t, map[int32]int{0: 1, 1: 1, 2: 1, 3: 1}, cover(all))
	all, err = spread(map[string][]int32{"a": {0, 2}, "b": {1}}, 5)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "a", "b", "a"}, []string{all[0].addr, all[1].addr, all[2].addr, all[3].addr, all[4].addr})
	require.Equal(t, map[int32]int{0: 2, 1: 2, 2: 1}, cover(all))
	_, err = spread(map[string][]int32{"a": {0}, "b": {1}}, 1)
	require.ErrorContains(t, err, "2 leaders")
}

func TestBatchIsFullAndReadable(t *testing.T) {
	for _, size := range []int{0, 1, 100, 1000} {
		p := &Produce{RecordSize: size, BatchSize: 64 << 10}
		b, n, err := p.batch(rand.New(rand.NewPCG(1, 2)))
		require.NoError(t, err)
		require.LessOrEqual(t, len(b), 64<<10)
		require.Greater(t, len(b), 64<<10-size-32)
		require.NoError(t, record.CheckCRC(record.Batch(b)))
		records, next := batches(append(b, b[:100]...)) // the last one is cut off
		require.Equal(t, n, records)
		require.Equal(t, n, next)
	}
	one := &Produce{RecordSize: 1000, BatchSize: 1}
	_, n, err := one.batch(rand.New(rand.NewPCG(1, 2)))
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestWalk(t *testing.T) {
	b := record.NewBuilder(record.Options{BaseOffset: 5})
	for i := range 3 {
		require.NoError(t, b.Append(record.Record{Offset: 5 + int64(i)}))
	}
	batch, err := b.Build(nil, nil)
	require.NoError(t, err)
	q := (&Consume{MaxBytes: 1}).request(share{partitions: []int32{0, 1}}, map[int32]int64{0: 5, 1: 2})
	answer := func(partition int32, code int16, high int64, records []byte) *kmsg.FetchResponse {
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.ErrorCode, p.HighWatermark, p.LogStartOffset, p.RecordBatches = partition, code, high, 4, records
		r := kmsg.NewPtrFetchResponse()
		r.Topics = []kmsg.FetchResponseTopic{{Partitions: []kmsg.FetchResponseTopicPartition{p}}}
		return r
	}
	records, bytes, err := walk(q, answer(0, 0, 10, batch), false)
	require.NoError(t, err)
	require.EqualValues(t, 3, records)
	require.EqualValues(t, len(batch), bytes)
	asked := q.Topics[0].Partitions
	require.Equal(t, []int32{1, 0}, []int32{asked[0].Partition, asked[1].Partition}, "whoever gave something is asked last")
	require.EqualValues(t, 8, asked[1].FetchOffset)
	_, _, err = walk(q, answer(0, 0, 8, nil), false)
	require.NoError(t, err)
	require.EqualValues(t, 4, asked[1].FetchOffset, "at the end it begins anew")
	_, _, err = walk(q, answer(0, 6, 8, nil), false)
	require.ErrorContains(t, err, "NOT_LEADER")
	_, _, err = walk(q, answer(7, 0, 8, nil), false)
	require.ErrorContains(t, err, "not asked for")
}

func TestChecks(t *testing.T) {
	load := Load{Connections: 1, Duration: time.Second}
	good := Produce{Load: load, InFlight: 1, Acks: -1}
	require.NoError(t, good.Check())
	for _, change := range []func(*Produce){
		func(p *Produce) { p.InFlight = 0 },
		func(p *Produce) { p.Acks = 2 },
		func(p *Produce) { p.RecordSize = -1 },
		func(p *Produce) { p.Connections = 0 },
		func(p *Produce) { p.Duration = 0 },
		func(p *Produce) { p.WarmUp = -1 },
		func(p *Produce) { p.Acks, p.Idempotent = 1, true },
		func(p *Produce) { p.Rate = -1 },
		func(p *Produce) { p.Rate = math.NaN() },
		func(p *Produce) { p.Keys = -1 },
		func(p *Produce) { p.Linger = 1 },
		func(p *Produce) { p.Topic = strings.Repeat("x", 200) },
	} {
		bad := good
		change(&bad)
		require.Error(t, bad.Check())
	}
}

// TestBrokerGoes holds that a load ends, with an error, when the broker hangs up in the middle of it.
func TestBrokerGoes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 100))
			_ = c.Close()
		}
	}()
	for _, p := range []Produce{{InFlight: 1}, {InFlight: 4}, {InFlight: 4, BatchSize: 1 << 20}, {InFlight: 4, Rate: 1000}} {
		p.Load, p.RecordSize, p.Acks = Load{Topic: "t", Connections: 1, Duration: 20 * time.Second}, 10, 1
		m := newMeter(1)
		conns, hangUp, err := dialAll(t.Context(), []share{{addr: l.Addr().String()}})
		require.NoError(t, err)
		templates, err := p.templates(1, false)
		require.NoError(t, err)
		s := newSender(conns[0], m.worker(m.latency), &p, templates, []int32{0}, nil, newSchedule(m.started(), p.Rate, 0, 1))
		_, err = p.drive(t.Context(), m, []work{s.run}, nil, hangUp)
		require.Error(t, err)
		hangUp()
	}
}
