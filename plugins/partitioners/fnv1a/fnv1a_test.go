package fnv1a_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/fnv1a"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner { return fnv1a.New() })
}

// TestAsSarama compares with the client itself.
func TestAsSarama(t *testing.T) {
	client := sarama.NewHashPartitioner("t")
	negative := 0
	for _, partitions := range []int32{1, 2, 3, 12, 50, 997} {
		b := &partitioner.Batch{Topic: "t", Partitions: partitions}
		for i := range 500 {
			b.Records = append(b.Records, partitioner.Record{Key: fmt.Appendf(nil, "%0*d", i%37, i)})
		}
		b.Records[0].Key = []byte{}
		got, err := fnv1a.New().Partition(context.Background(), nil, b)
		require.NoError(t, err)
		reference := sarama.NewReferenceHashPartitioner("t")
		for i, r := range b.Records {
			want, err := client.Partition(&sarama.ProducerMessage{Key: sarama.ByteEncoder(r.Key)}, partitions)
			require.NoError(t, err)
			require.Equal(t, want, got[i], "key %q of %d", r.Key, partitions)
			if other, err := reference.Partition(&sarama.ProducerMessage{Key: sarama.ByteEncoder(r.Key)}, partitions); err == nil && other != want {
				negative++
			}
		}
	}
	require.NotZero(t, negative, "no key had a negative hash, for which alone it matters how the sign is taken off")
}

// TestUnkeyedSpread wants records without a key on all partitions that have a leader.
func TestUnkeyedSpread(t *testing.T) {
	b := &partitioner.Batch{Topic: "t", Partitions: 4, Available: []int32{0, 2}, Records: make([]partitioner.Record, 200)}
	got, err := fnv1a.New().Partition(context.Background(), nil, b)
	require.NoError(t, err)
	require.Subset(t, got, []int32{0, 2})
}

func BenchmarkPartition(b *testing.B) {
	p := fnv1a.New()
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
