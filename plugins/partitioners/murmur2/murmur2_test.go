package murmur2_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/murmur2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner { return murmur2.New() })
}

// TestAsJava compares with where the Java client puts keys (see `dev partitions`).
func TestAsJava(t *testing.T) {
	partitionertest.AsRecorded(t, murmur2.New(), "testdata/client.tsv")
}

// TestAsTheClients compares with a real client's partitioner that is known to mirror the Java client.
func TestAsTheClients(t *testing.T) {
	client := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	p := murmur2.New()
	for _, partitions := range []int32{1, 2, 3, 12, 50, 997} {
		b := &partitioner.Batch{Topic: "t", Partitions: partitions}
		for i := range 500 {
			b.Records = append(b.Records, partitioner.Record{Key: []byte(fmt.Sprintf("%0*d", i%37, i))})
		}
		got, err := p.Partition(context.Background(), nil, b)
		require.NoError(t, err)
		for i, r := range b.Records {
			require.EqualValues(t, client.Partition(&kgo.Record{Key: r.Key}, int(partitions)), got[i], "key %q of %d", r.Key, partitions)
		}
	}
}

// TestUnkeyedBatches wants the records of one call together, and the calls spread.
func TestUnkeyedBatches(t *testing.T) {
	p := murmur2.New()
	b := &partitioner.Batch{Topic: "t", Partitions: 4, Available: []int32{0, 2}, Records: make([]partitioner.Record, 3)}
	var firsts []int32
	for range 4 {
		got, err := p.Partition(context.Background(), nil, b)
		require.NoError(t, err)
		require.Equal(t, []int32{got[0], got[0], got[0]}, got)
		firsts = append(firsts, got[0])
	}
	require.Equal(t, []int32{0, 2, 0, 2}, firsts)
}

func BenchmarkPartition(b *testing.B) {
	p := murmur2.New()
	batch := &partitioner.Batch{Topic: "t", Partitions: 12, Records: make([]partitioner.Record, 500)}
	for i := range batch.Records {
		batch.Records[i].Key = []byte(fmt.Sprintf("customer-%06d", i))
	}
	var dst []int32
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = p.Partition(context.Background(), dst[:0], batch)
	}
}
