package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestGroupLagUnderLoad holds that a lag is what lies between the commit and the end, and never negative, while records are written,
// deleted and committed; and that kafka-consumer-groups tells the same.
func TestGroupLagUnderLoad(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	must(t, "", "topic", "create", "t", "-p", "2", "-b", b)
	admin := administrator(t, b)
	commit(t, admin, "g", "t", map[int32]int64{0: 0, 1: 0})
	client, err := kgo.NewClient(kgo.SeedBrokers(b), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for ctx.Err() == nil {
			if err := client.ProduceSync(ctx, kgo.StringRecord("a"), kgo.StringRecord("b"), kgo.StringRecord("c")).FirstErr(); err != nil && ctx.Err() == nil {
				t.Errorf("produce: %v", err)
				return
			}
		}
	})
	load.Go(func() { // commits the end, and deletes up to it
		for ctx.Err() == nil {
			ends, err := admin.ListEndOffsets(ctx, "t")
			if err != nil {
				continue // ctx ended, or else the assertions below tell
			}
			offsets := ends.Offsets()
			_ = admin.CommitAllOffsets(ctx, "g", offsets)
			var before kadm.Offsets
			offsets.Each(func(o kadm.Offset) { before.AddOffset(o.Topic, o.Partition, o.At, -1) })
			_, _ = admin.DeleteRecords(ctx, before)
		}
	})
	for range 20 {
		for _, o := range views(t, "group", "lag", "g", "-b", b)[0].Offsets {
			require.NotNil(t, o.Lag)
			require.Equal(t, *o.End-*o.Committed, *o.Lag)
			require.GreaterOrEqual(t, *o.Lag, int64(0))
		}
	}
	stop()
	load.Wait()
	told := must(t, "", "kafka-consumer-groups", "--bootstrap-server", b, "--describe", "--group", "g")
	rows := strings.Split(strings.TrimSpace(told), "\n")
	require.Len(t, rows, 3)
	for i, o := range views(t, "group", "lag", "g", "-b", b)[0].Offsets {
		assert.Equal(t, fmt.Sprintf("g t %d %d %d %d - - -", o.Partition, *o.Committed, *o.End, *o.Lag), strings.Join(strings.Fields(rows[i+1]), " "))
	}
}
