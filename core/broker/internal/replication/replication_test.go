package replication_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/replication"
)

func TestFollowersHaveWhatTheLeaderHas(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*cluster)
	}{
		{"2.8", func(c *cluster) { c.ibp = replication.Versions{Fetch: 12, ListOffsets: 6, OffsetForLeaderEpoch: 4} }},
		{"3.1", func(c *cluster) { c.ibp = replication.Versions{Fetch: 13, ListOffsets: 7, OffsetForLeaderEpoch: 4} }},
		{"3.5", func(c *cluster) { c.ibp = replication.Versions{Fetch: 15, ListOffsets: 8, OffsetForLeaderEpoch: 4} }},
		{"3.9", func(*cluster) {}},
		{"3.9, no topic id", func(c *cluster) { c.topic = [16]byte{} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, tc.set)
			c.start(1, 2, 3)
			for n := range int32(5) {
				c.assign(n, 1+n%3, 1+(n+1)%3, 1+(n+2)%3)
			}
			for round := range 10 {
				for n := range int32(5) {
					leader := 1 + n%3
					c.produce(leader, n, fmt.Sprint(round), "x")
				}
			}
			for n := range int32(5) {
				c.same(n, 1+n%3, 1+(n+1)%3, 1+(n+2)%3)
			}
		})
	}
}

func TestAcksAllWaitsForFollowers(t *testing.T) {
	c := newCluster(t)
	c.start(1, 2)
	c.assign(0, 1, 2)
	p := c.replica(1, 0)
	got, err := p.Append(partition.Append{Batches: batch(t, "a"), Acks: -1})
	require.NoError(t, err)
	answer := make(chan error, 1)
	done, err, _ := p.Committed(got, -1, func(err error) { answer <- err })
	require.NoError(t, err)
	if !done {
		select {
		case err := <-answer:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Fatal("never acknowledged")
		}
	}
	require.EqualValues(t, 1, c.replica(2, 0).Log().EndOffset(), "acknowledged before the follower had it")
}

// Case A23 (KAFKA-14704).
func TestFollowerCutsBeforeItCounts(t *testing.T) {
	c := newCluster(t)
	c.start(1, 2)
	c.assign(0, 1, 2)
	c.produce(1, 0, "both")
	c.same(0, 1, 2)

	c.isolate(2)
	for i := range 5 {
		c.produce(1, 0, fmt.Sprint("old", i)) // acks=1
	}
	c.stop(1, false)
	c.join(2)
	c.elect(0, 2, 2) // what only broker 1 had is lost
	for i := range 5 {
		c.produce(2, 0, fmt.Sprint("new", i))
	}
	c.committed(2, 0, 6)

	c.start(1)
	c.elect(0, 2, 2)
	l := c.replica(1, 0).Log()
	for hw := int64(0); hw < 6; hw = l.HighWatermark() {
		require.LessOrEqual(t, hw, l.EndOffset())
		if hw > 1 {
			require.Equal(t, c.bytesOf(2, 0, 0, hw), c.bytesOf(1, 0, 0, hw), "counted before it was cut")
		}
	}
	c.isrIs(0, 1, 2)
	c.same(0, 2, 1)
	require.Equal(t, "0:both 1:new0 2:new1 3:new2 4:new3 5:new4", c.values(1, 0))
}

func TestLaggingFollowerLeavesAndComesBack(t *testing.T) {
	c := newCluster(t, func(c *cluster) { c.lag, c.minISR = 300*time.Millisecond, 2 })
	c.start(1, 2, 3)
	c.assign(0, 1, 2, 3)
	c.produce(1, 0, "a")
	c.same(0, 1, 2, 3)

	c.isolate(3)
	c.produce(1, 0, "b")
	c.isrIs(0, 1, 2)
	c.committed(1, 0, 2)

	c.isolate(2)
	c.produce(1, 0, "c")
	c.isrIs(0, 1)
	_, err := c.replica(1, 0).Append(partition.Append{Batches: batch(t, "d"), Acks: -1})
	require.ErrorIs(t, err, partition.ErrNotEnoughReplicas)
	require.EqualValues(t, 2, c.replica(1, 0).Log().HighWatermark(), "below min.insync.replicas nothing is committed")

	c.mu.Lock()
	c.refused = 3
	c.mu.Unlock()
	c.join(2)
	c.join(3)
	c.isrIs(0, 1, 2, 3)
	c.same(0, 1, 2, 3)
}

func TestFollowerThatTheLeaderHasLeftBehind(t *testing.T) {
	for _, to := range []int64{6, 5} { // at a batch's first offset, and within one
		t.Run(fmt.Sprint(to), func(t *testing.T) {
			c := newCluster(t)
			c.start(1, 2)
			c.assign(0, 1, 2)
			c.produce(1, 0, "a", "b")
			c.same(0, 1, 2)
			c.stop(2, true)
			c.elect(0, 1, 1)
			c.config.SegmentBytes = 100
			for i := range 4 {
				c.produce(1, 0, fmt.Sprint(i), "x")
			}
			c.committed(1, 0, 10)
			_, err := c.replica(1, 0).DeleteRecords(to)
			require.NoError(t, err)

			c.start(2)
			c.elect(0, 1, 1)
			c.isrIs(0, 1, 2)
			c.committed(2, 0, 10)
			l := c.replica(2, 0).Log()
			require.Equal(t, to, l.StartOffset())
			require.EqualValues(t, 10, l.EndOffset())
			require.Equal(t, c.bytesOf(1, 0, to, 10), c.bytesOf(2, 0, to, 10))
			c.eventually(func() bool {
				low, err := c.replica(1, 0).DeleteRecords(to)
				return err == nil && low == to
			}, func() string { return "the leader never hears of the follower's log start" })
		})
	}
}

func TestFollowerLongerThanItsLeader(t *testing.T) {
	c := newCluster(t)
	c.start(1, 2)
	c.assign(0, 1, 2)
	c.produce(1, 0, "a")
	c.same(0, 1, 2)
	c.stop(2, true)
	c.elect(0, 1, 1)
	for i := range 5 {
		c.produce(1, 0, fmt.Sprint("lost", i))
	}
	c.committed(1, 0, 6)
	c.isolate(1)
	c.start(2)
	c.elect(0, 2, 2) // unclean
	c.join(1)
	c.elect(0, 2, 2)
	c.isrIs(0, 1, 2)
	c.same(0, 2, 1)
	require.Equal(t, "0:a", c.values(1, 0))
}

func TestFetchersChangeWhileTheyFetch(t *testing.T) {
	c := newCluster(t)
	c.start(1, 2)
	const parts = 8
	for n := range int32(parts) {
		c.assign(n, 1, 2)
	}
	for round := range 30 {
		c.nodes[2].fetch.SetFetchers(1 + round%4)
		for n := range int32(parts) {
			c.produce(1, n, fmt.Sprint(round))
		}
	}
	for n := range int32(parts) {
		c.same(n, 1, 2)
	}
}

// A quota of nothing lets nothing through to followers that catch up, on either side, and none of the others wait for that (KIP-73).
func TestThrottledFollowers(t *testing.T) {
	slow := partition.ID{Topic: "t", Partition: 1}
	for name, change := range map[string]func(*cluster){
		"leader":   func(c *cluster) { c.slow = func(id partition.ID) (bool, bool) { return id == slow, false } },
		"follower": func(c *cluster) { c.slow = func(id partition.ID) (bool, bool) { return false, id == slow } },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, change, func(c *cluster) { c.sent, c.fetched = partition.NewQuota(), partition.NewQuota() })
			c.start(1)
			c.assign(0, 1, 2)
			c.assign(1, 1, 2)
			for n := range int32(2) {
				c.elect(n, 1, 1)
				for i := range 300 { // more than one fetch of the follower
					c.produce(1, n, fmt.Sprint(i), strings.Repeat("x", 10_000))
				}
			}
			c.sent.SetRate(0)
			c.fetched.SetRate(0)
			c.start(2)
			c.tell(0, 2)
			c.tell(1, 2)
			c.same(0, 1, 2)
			c.produce(1, 0, "and on")
			c.same(0, 1, 2)
			require.Zero(t, c.replica(2, 1).Log().EndOffset())

			c.sent.SetRate(1 << 40)
			c.fetched.SetRate(1 << 40)
			c.same(1, 1, 2)
		})
	}
}

// isolate cuts a broker off from the others: connections end, and none is made.
func (c *cluster) isolate(id int32) {
	c.mu.Lock()
	c.cut[id] = true
	c.mu.Unlock()
	c.reconnect(id)
}

// join ends isolate.
func (c *cluster) join(id int32) {
	c.mu.Lock()
	delete(c.cut, id)
	c.mu.Unlock()
}
