package roundrobin_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/roundrobin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner { return roundrobin.New() })
}

// TestInTurn wants each available partition once per round, across calls.
func TestInTurn(t *testing.T) {
	p := roundrobin.New()
	b := &partitioner.Batch{Topic: "t", Partitions: 5, Available: []int32{0, 2, 4}, Records: make([]partitioner.Record, 4)}
	for i := range b.Records {
		b.Records[i].Key = []byte("the same")
	}
	var got []int32
	for range 2 {
		var err error
		got, err = p.Partition(context.Background(), got, b)
		require.NoError(t, err)
	}
	require.Equal(t, []int32{0, 2, 4, 0, 2, 4, 0, 2}, got)
}
