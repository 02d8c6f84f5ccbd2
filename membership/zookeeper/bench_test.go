package zookeeper

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// BenchmarkManyPartitions is what a controller does with 10,000 partitions: create their topics, write all states for the first time
// and again, and, as its successor, begin to watch and read everything.
func BenchmarkManyPartitions(b *testing.B) {
	const topics, partitions = 1000, 10
	ctx := context.Background()
	c := newCluster(b).Member()
	require.NoError(b, c.Start(ctx))
	defer func() { require.NoError(b, c.Stop(ctx)) }()
	term, err := c.Election().Campaign(ctx, 1)
	require.NoError(b, err)
	md := c.Metadata()
	for round := range b.N {
		var in []election.NewTopic
		var first, next []election.PartitionUpdate
		for i := range topics {
			t := election.NewTopic{Name: fmt.Sprintf("topic-%d-%d", round, i), ID: election.TopicID{0: 1, 15: byte(i)}, Partitions: make([]election.Assignment, partitions)}
			for p := range t.Partitions {
				t.Partitions[p].Replicas = []int32{1, 2, 3}
				st := election.PartitionState{Leader: 1, ISR: []int32{1, 2, 3}, ControllerEpoch: 1, PartitionEpoch: -1}
				first = append(first, election.PartitionUpdate{Topic: t.Name, Partition: int32(p), State: st})
				st.PartitionEpoch = 0
				next = append(next, election.PartitionUpdate{Topic: t.Name, Partition: int32(p), State: st})
			}
			in = append(in, t)
		}
		step := func(name string, do func() error) {
			b.StartTimer()
			start := b.Elapsed()
			err := do()
			b.ReportMetric((b.Elapsed() - start).Seconds(), name+"-s/op")
			b.StopTimer()
			require.NoError(b, err)
		}
		b.StopTimer()
		step("create", func() error { _, err := md.CreateTopics(ctx, term.Epoch(), in); return err })
		step("first", func() error { _, err := md.UpdatePartitions(ctx, term.Epoch(), first); return err })
		step("update", func() error {
			res, err := md.UpdatePartitions(ctx, term.Epoch(), next)
			for _, r := range res {
				require.NoError(b, r.Err)
			}
			return err
		})
		step("watch", func() error {
			w, err := md.Watch(ctx, election.TopicChanged)
			if err == nil {
				w.Close()
			}
			return err
		})
		step("read", func() error {
			all, err := md.Topics(ctx)
			require.Len(b, all, topics*(round+1))
			return err
		})
	}
}
