package group

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
)

// benchManager is a manager over a store that keeps nothing for long.
func benchManager(b *testing.B) *Manager {
	store := offsetstest.NewStore(offsetstest.NewDisk())
	require.NoError(b, store.Start(b.Context()))
	m := New(Options{Config: testConfig(), Store: store})
	for shard := range int32(offsetstest.Shards) {
		m.Lead(shard, 1)
	}
	require.Eventually(b, func() bool { _, err := m.List(); return err == nil }, time.Minute, time.Millisecond)
	b.Cleanup(func() {
		require.NoError(b, m.Stop(context.Background()))
		require.NoError(b, store.Stop(context.Background()))
	})
	return m
}

func BenchmarkHeartbeat(b *testing.B) {
	m := benchManager(b)
	a := m.Join(b.Context(), "g", joinAs(""))
	require.NoError(b, m.Sync(b.Context(), "g", Sync{Member: Member{ID: a.MemberID, Generation: 1}}).Err)
	who := Member{ID: a.MemberID, Generation: 1}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Heartbeat("g", who); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommit(b *testing.B) {
	m := benchManager(b)
	c := simple("t", 5)
	for p := range int32(10) {
		c.Offsets[TopicPartition{"t", p}] = offsets.Offset{Offset: 5, ExpireTimestamp: offsets.None}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Commit(b.Context(), "g", c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRebalance is one rebalance of a group of 1000 members.
func BenchmarkRebalance(b *testing.B) {
	s := newSim(b)
	s.cfg.InitialDelay = time.Second
	var all []*client
	for range 1000 {
		c := s.client()
		c.version = 3
		c.session = time.Hour
		c.tryJoin()
		all = append(all, c)
	}
	s.pass(time.Minute)
	for b.Loop() {
		for _, c := range all {
			c.joinAnswer()
			c.protos = subscribe("range", fmt.Sprint("t", s.seq%7))
			c.tryJoin()
		}
	}
}
