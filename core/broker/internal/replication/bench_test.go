package replication_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/record"
)

// payload is a batch of 16 records of 1 KiB.
func payload(b *testing.B) []byte {
	build := record.NewBuilder(record.Options{})
	for i := range 16 {
		require.NoError(b, build.Append(record.Record{Offset: int64(i), Timestamp: 1_700_000_000_000, Value: bytes.Repeat([]byte{byte(i)}, 1024)}))
	}
	out, err := build.Build(nil, nil)
	require.NoError(b, err)
	return out
}

// BenchmarkCatchUp copies a leader's log to a new follower: what replication costs a byte, both brokers together.
func BenchmarkCatchUp(b *testing.B) {
	const size = 256 << 20
	c := newCluster(b)
	c.start(1)
	c.assign(0, 1)
	p := c.replica(1, 0)
	one := payload(b)
	b.SetBytes(size)
	b.ReportAllocs()
	batches := int64(0)
	for int(batches)*len(one) < size {
		_, err := p.Append(partition.Append{Batches: bytes.Clone(one), Acks: 1})
		require.NoError(b, err)
		batches++
	}
	id := int32(1)
	for b.Loop() {
		id++
		c.start(id)
		c.mu.Lock()
		c.parts[0].replicas = append(c.parts[0].replicas, id)
		c.mu.Unlock()
		c.elect(0, 1, 1)
		c.committed(id, 0, p.Log().EndOffset())
	}
	b.ReportMetric(float64(batches), "batches/op")
}

// BenchmarkAcksAll is one batch at a time through a leader and two followers until it is acknowledged: the price of a round trip.
func BenchmarkAcksAll(b *testing.B) {
	for _, parts := range []int32{1, 1000} { // all but one idle
		b.Run(strconv.Itoa(int(parts)), func(b *testing.B) { benchmarkAcksAll(b, parts) })
	}
}

func benchmarkAcksAll(b *testing.B, parts int32) {
	c := newCluster(b)
	c.start(1, 2, 3)
	for n := range parts {
		c.assign(n, 1, 2, 3)
	}
	c.produce(1, parts-1, "a")
	c.committed(1, parts-1, 1)
	p := c.replica(1, 0)
	one := batch(b, "value")
	answer := make(chan error, 1)
	f := func(err error) { answer <- err }
	b.ReportAllocs()
	for b.Loop() {
		got, err := p.Append(partition.Append{Batches: bytes.Clone(one), Acks: -1})
		require.NoError(b, err)
		if done, err, _ := p.Committed(got, -1, f); done {
			require.NoError(b, err)
		} else {
			require.NoError(b, <-answer)
		}
	}
}
