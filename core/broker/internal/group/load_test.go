package group

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
)

// TestManyConsumers runs real goroutines that behave as consumers do, while members come and go and shards move. Whoever
// commits must own the partition in that generation, so offsets never go back.
func TestManyConsumers(t *testing.T) {
	cfg := testConfig()
	cfg.MinSession, cfg.RetentionCheck = time.Millisecond, 50*time.Millisecond
	m := loadedManager(t, offsetstest.NewStore(offsetstest.NewDisk()), cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var next atomic.Int64
	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for ctx.Err() == nil {
				consume(ctx, m, fmt.Sprintf("g%d", i%2), 5+i, &next, &done)
			}
		})
	}
	wg.Go(func() {
		for epoch := int32(2); ctx.Err() == nil; epoch++ {
			time.Sleep(50 * time.Millisecond)
			if epoch%2 == 0 {
				m.Resign(shardOf("g0"))
			}
			m.Lead(shardOf("g0"), epoch)
			_, _ = m.List()
			_, _ = m.Describe("g1")
		}
	})
	wg.Wait()
	require.Positive(t, done.Load(), "nobody ever committed anything")
}

// consume is the life of one member: join, sync, some heartbeats and commits, and away, sometimes without a word.
func consume(ctx context.Context, m *Manager, group string, beats int, next, done *atomic.Int64) {
	j := joinAs("")
	j.Session, j.Rebalance = 300*time.Millisecond, 300*time.Millisecond
	for ctx.Err() == nil {
		a := m.Join(ctx, group, j)
		if a.Err != nil {
			j.MemberID = ""
			time.Sleep(time.Millisecond)
			continue
		}
		j.MemberID = a.MemberID
		s := Sync{Member: Member{ID: a.MemberID, Generation: a.Generation}, Assignments: map[string][]byte{}}
		for _, o := range a.Members {
			s.Assignments[o.ID] = []byte(o.ID)
		}
		if got := m.Sync(ctx, group, s); got.Err != nil {
			continue
		}
		for range beats {
			if m.Heartbeat(group, s.Member) != nil {
				break
			}
			c := Commit{Member: s.Member, Offsets: map[TopicPartition]offsets.Offset{{a.MemberID, 0}: {Offset: next.Add(1)}}}
			if _, err := m.Commit(ctx, group, c); err == nil {
				done.Add(1)
			}
			time.Sleep(time.Millisecond)
		}
		if beats%2 == 0 {
			_, _ = m.Leave(group, []Leaving{{MemberID: a.MemberID}})
			return
		}
	}
}
