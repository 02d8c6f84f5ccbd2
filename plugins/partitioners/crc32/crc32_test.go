package crc32_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/crc32"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner { return crc32.New() })
}

// TestAsLibrdkafka compares with where librdkafka put records (see `dev partitions`).
func TestAsLibrdkafka(t *testing.T) {
	partitionertest.AsRecorded(t, crc32.New(), "testdata/client.tsv")
}

// TestAsSarama compares with sarama's partitioner for users of librdkafka, with keys without end.
func TestAsSarama(t *testing.T) {
	client := sarama.NewConsistentCRCHashPartitioner("t")
	for _, partitions := range []int32{1, 2, 3, 12, 50, 997} {
		b := &partitioner.Batch{Topic: "t", Partitions: partitions}
		for i := range 500 {
			b.Records = append(b.Records, partitioner.Record{Key: fmt.Appendf(nil, "%0*d", 1+i%37, i)})
		}
		got, err := crc32.New().Partition(context.Background(), nil, b)
		require.NoError(t, err)
		for i, r := range b.Records {
			want, err := client.Partition(&sarama.ProducerMessage{Key: sarama.ByteEncoder(r.Key)}, partitions)
			require.NoError(t, err)
			require.Equal(t, want, got[i], "key %q of %d", r.Key, partitions)
		}
	}
}

// TestUnkeyedBatches wants records without a key, or with an empty one, together, and calls spread.
func TestUnkeyedBatches(t *testing.T) {
	p := crc32.New()
	b := &partitioner.Batch{Topic: "t", Partitions: 4, Available: []int32{0, 2}, Records: []partitioner.Record{{}, {Key: []byte{}}, {}}}
	seen := map[int32]bool{}
	for range 100 {
		got, err := p.Partition(context.Background(), nil, b)
		require.NoError(t, err)
		require.Equal(t, []int32{got[0], got[0], got[0]}, got)
		seen[got[0]] = true
	}
	require.Equal(t, map[int32]bool{0: true, 2: true}, seen)
	require.False(t, partitioner.HasKey(p, []byte{}))
}

func BenchmarkPartition(b *testing.B) {
	p := crc32.New()
	batch := &partitioner.Batch{Topic: "t", Partitions: 12, Records: make([]partitioner.Record, 500)}
	for i := range batch.Records {
		batch.Records[i].Key = fmt.Appendf(nil, "customer-%06d", i)
	}
	var dst []int32
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = p.Partition(context.Background(), dst[:0], batch)
	}
}
