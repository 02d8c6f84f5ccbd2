package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
)

// newManager makes a manager that leads all shards of a store.
func newManager(t *testing.T, store *offsetstest.Store, cfg Config) *Manager {
	require.NoError(t, store.Start(t.Context()))
	m := New(Options{Config: cfg, Store: store})
	m.Start()
	t.Cleanup(func() {
		require.NoError(t, m.Stop(context.Background()))
		require.NoError(t, m.Stop(context.Background()), "stop twice")
		require.NoError(t, store.Stop(context.Background()))
	})
	for shard := range int32(offsetstest.Shards) {
		m.Lead(shard, 1)
	}
	return m
}

func loadedManager(t *testing.T, store *offsetstest.Store, cfg Config) *Manager {
	m := newManager(t, store, cfg)
	require.Eventually(t, func() bool { _, err := m.List(); return err == nil }, time.Minute, time.Millisecond)
	return m
}

func shardOf(group string) int32 { return offsets.ShardOf(group, offsetstest.Shards) }

func simple(topic string, at int64) Commit {
	return Commit{Member: nobody, Offsets: map[TopicPartition]offsets.Offset{{topic, 0}: {Offset: at, CommitTimestamp: time.Now().UnixMilli(), ExpireTimestamp: offsets.None}}}
}

func committed(t *testing.T, m *Manager, group, topic string) int64 {
	list, err := m.Fetch(group, []TopicPartition{{topic, 0}}, false)
	require.NoError(t, err)
	return list[0].Offset.Offset
}

func joinAs(id string) Join {
	return Join{MemberID: id, ClientID: "client", ClientHost: "/127.0.0.1", Session: 10 * time.Second, Rebalance: time.Minute,
		ProtocolType: "consumer", Protocols: subscribe("range", "t")}
}

// TestConsumers lets three members join, share, commit, lose one and go on.
func TestConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, offsetstest.NewStore(offsetstest.NewDisk()), testConfig())
		synctest.Wait()
		ctx := t.Context()
		first := m.Join(ctx, "g", joinAs(""))
		require.NoError(t, first.Err)
		require.True(t, strings.HasPrefix(first.MemberID, "client-"))
		answers := map[string]JoinAnswer{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		join := func(id string) {
			wg.Go(func() {
				a := m.Join(ctx, "g", joinAs(id))
				mu.Lock()
				defer mu.Unlock()
				answers[a.MemberID] = a
			})
		}
		join("")
		join("")
		synctest.Wait()
		require.Empty(t, answers, "they wait for the first")
		join(first.MemberID)
		wg.Wait()
		require.Len(t, answers, 3)
		assign := map[string][]byte{}
		for id, a := range answers {
			require.NoError(t, a.Err)
			require.EqualValues(t, 2, a.Generation)
			require.Equal(t, first.MemberID, a.Leader)
			assign[id] = []byte("for " + id)
		}
		for id := range answers {
			wg.Go(func() {
				s := Sync{Member: Member{ID: id, Generation: 2}}
				if id == first.MemberID {
					s.Assignments = assign
				}
				a := m.Sync(ctx, "g", s)
				if a.Err != nil || string(a.Assignment) != "for "+id {
					t.Errorf("%s was assigned %q, %v", id, a.Assignment, a.Err)
				}
			})
		}
		wg.Wait()
		who := Member{ID: first.MemberID, Generation: 2}
		c := simple("t", 5)
		c.Member = who
		_, err := m.Commit(ctx, "g", c)
		require.NoError(t, err)
		require.Equal(t, int64(5), committed(t, m, "g", "t"))
		d, err := m.Describe("g")
		require.NoError(t, err)
		require.Len(t, d.Members, 3)

		for range 2 { // the two others fall silent
			time.Sleep(5 * time.Second)
			synctest.Wait()
			_ = m.Heartbeat("g", who)
		}
		require.ErrorIs(t, m.Heartbeat("g", who), ErrRebalance)
		again := m.Join(ctx, "g", joinAs(first.MemberID))
		require.NoError(t, again.Err)
		require.Len(t, again.Members, 1)
		errs, err := m.Leave("g", []Leaving{{MemberID: first.MemberID}})
		require.NoError(t, err)
		require.Equal(t, []error{nil}, errs)
		list, err := m.List()
		require.NoError(t, err)
		require.Equal(t, []Overview{{ID: "g", ProtocolType: "consumer", State: Empty}}, list)
	})
}

// TestVanishedClient: it counts as joined, and its answer is dropped.
func TestVanishedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, offsetstest.NewStore(offsetstest.NewDisk()), testConfig())
		synctest.Wait()
		first := m.Join(t.Context(), "g", joinAs(""))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan JoinAnswer)
		go func() { done <- m.Join(ctx, "g", joinAs("")) }()
		synctest.Wait()
		cancel()
		a := <-done
		require.ErrorIs(t, a.Err, context.Canceled)
		again := m.Join(t.Context(), "g", joinAs(first.MemberID))
		require.NoError(t, again.Err)
		require.Len(t, again.Members, 2)
	})
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		release := make(chan struct{})
		store.Before = func(ctx context.Context, shard int32, b *offsets.Batch) error {
			if b == nil && shard == shardOf("g") {
				<-release
			}
			return nil
		}
		m := newManager(t, store, testConfig())
		synctest.Wait()
		ctx := t.Context()
		who := Member{ID: "m", Generation: 1}
		ask := func() map[string]error {
			_, leave := m.Leave("g", nil)
			_, commit := m.Commit(ctx, "g", simple("t", 1))
			_, fetch := m.Fetch("g", nil, false)
			_, describe := m.Describe("g")
			_, removal := m.DeleteOffsets(ctx, "g", nil)
			return map[string]error{"join": m.Join(ctx, "g", joinAs("")).Err, "sync": m.Sync(ctx, "g", Sync{Member: who}).Err,
				"leave": leave, "commit": commit, "fetch": fetch, "describe": describe, "delete": m.Delete(ctx, "g"), "delete offsets": removal}
		}
		for name, err := range ask() {
			require.ErrorIs(t, err, ErrLoading, name)
		}
		require.NoError(t, m.Heartbeat("g", who), "members go on while the coordinator loads")
		_, err := m.List()
		require.ErrorIs(t, err, ErrLoading)
		close(release)
		synctest.Wait()
		require.ErrorIs(t, m.Heartbeat("g", who), ErrUnknownMember)
		_, err = m.List()
		require.NoError(t, err)

		m.Resign(shardOf("g"))
		for name, err := range ask() {
			require.ErrorIs(t, err, ErrNotCoordinator, name)
		}
		require.ErrorIs(t, m.Heartbeat("g", who), ErrNotCoordinator)

		require.ErrorIs(t, m.Join(ctx, "", joinAs("")).Err, ErrInvalidGroupID)
		require.ErrorIs(t, m.Heartbeat("", who), ErrInvalidGroupID)
		j := joinAs("")
		for _, session := range []time.Duration{-1, 0, 6*time.Second - 1, 30*time.Minute + 1} {
			j.Session = session
			require.ErrorIs(t, m.Join(ctx, "h", j).Err, ErrInvalidSession)
		}
		require.ErrorIs(t, m.Join(ctx, "h", joinAs("somebody")).Err, ErrUnknownMember)
		_, err = m.Commit(ctx, "h", Commit{Member: Member{Generation: 5}})
		require.ErrorIs(t, err, ErrIllegalGeneration, "of a group that isn't there any more")
		require.ErrorIs(t, m.Delete(ctx, "h"), ErrGroupNotFound)
		j = joinAs("")
		j.Protocols = nil
		require.ErrorIs(t, m.Join(ctx, "h", j).Err, ErrInconsistentProtocol)
		list, err := m.List()
		require.NoError(t, err)
		require.Empty(t, list, "a refused join leaves no group behind")
	})
}

// TestFailOver: groups move with their shard, and whoever waits is sent away.
func TestFailOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := offsetstest.NewDisk()
		m := newManager(t, offsetstest.NewStore(disk), testConfig())
		synctest.Wait()
		ctx := t.Context()
		first := m.Join(ctx, "g", joinAs(""))
		who := Member{ID: first.MemberID, Generation: 1}
		require.NoError(t, m.Sync(ctx, "g", Sync{Member: who, Assignments: map[string][]byte{first.MemberID: []byte("all")}}).Err)
		c := simple("t", 5)
		c.Member = who
		_, err := m.Commit(ctx, "g", c)
		require.NoError(t, err)
		waiting := make(chan JoinAnswer)
		go func() { waiting <- m.Join(ctx, "g", joinAs("")) }()
		synctest.Wait()
		m.Resign(shardOf("g"))
		require.ErrorIs(t, (<-waiting).Err, ErrNotCoordinator)
		require.ErrorIs(t, m.store.Write(ctx, shardOf("g"), 1, offsets.Batch{}), offsets.ErrNotOwner, "the store owns it still")
		_, err = m.Fetch("g", nil, false)
		require.ErrorIs(t, err, ErrNotCoordinator)
		m.Lead(shardOf("g"), 3)
		synctest.Wait()
		require.NoError(t, m.Heartbeat("g", who))
		require.Equal(t, "all", string(m.Sync(ctx, "g", Sync{Member: who}).Assignment))
		require.Equal(t, int64(5), committed(t, m, "g", "t"))
		m.Lead(shardOf("g"), 2)
		require.NoError(t, m.Heartbeat("g", who), "older epochs are nothing new")
		m.Lead(shardOf("g"), 4)
		synctest.Wait()
		require.NoError(t, m.Heartbeat("g", who), "a newer one loads anew")
		_, err = m.Commit(ctx, "g", c)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		d, err := m.Describe("g")
		require.NoError(t, err)
		require.Equal(t, Empty, d.State)
	})
}

func TestLoadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		var tries atomic.Int32
		store.Before = func(_ context.Context, shard int32, b *offsets.Batch) error {
			if b == nil && shard == 0 && tries.Add(1) < 3 {
				return errors.New("disk is away")
			}
			return nil
		}
		m := newManager(t, store, testConfig())
		synctest.Wait()
		_, err := m.List()
		require.ErrorIs(t, err, ErrLoading)
		time.Sleep(3 * retryLoad)
		synctest.Wait()
		_, err = m.List()
		require.NoError(t, err)
	})
}

// TestWritesGoTogether: while one write runs, others gather for the next.
func TestWritesGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		var writes atomic.Int32
		store.Before = func(_ context.Context, _ int32, b *offsets.Batch) error {
			if b != nil {
				writes.Add(1)
				time.Sleep(time.Second)
			}
			return nil
		}
		m := newManager(t, store, testConfig())
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range int64(100) {
			wg.Go(func() {
				if _, err := m.Commit(t.Context(), "g", simple(fmt.Sprintf("t%d", i), i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, int64(-1), committed(t, m, "g", "t0"), "not before it is stored")
		wg.Wait()
		require.EqualValues(t, 2, writes.Load())
		for i := range int64(100) {
			require.Equal(t, i, committed(t, m, "g", fmt.Sprintf("t%d", i)))
		}
	})
}

// TestOneTooLargeCommit fails alone, though others wait with it.
func TestOneTooLargeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := offsetstest.NewDisk()
		store := offsetstest.NewStore(disk)
		store.Before = func(_ context.Context, _ int32, b *offsets.Batch) error {
			time.Sleep(time.Second)
			return nil
		}
		cfg := testConfig()
		cfg.MaxMetadata = 1 << 16
		m := newManager(t, store, cfg)
		time.Sleep(10 * time.Second)
		var wg sync.WaitGroup
		var failed atomic.Int32
		for i := range int64(10) {
			wg.Go(func() {
				c := simple(fmt.Sprintf("t%d", i), i)
				if i == 7 {
					c.Offsets[TopicPartition{"t7", 0}] = offsets.Offset{Metadata: strings.Repeat("x", 1<<15)}
				}
				if _, err := m.Commit(t.Context(), "g", c); err != nil {
					failed.Add(1)
					if !errors.Is(err, ErrCommitTooLarge) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, failed.Load())
		require.Len(t, disk.Entries(shardOf("g")), 9)
	})
}

func TestMetadataTooLarge(t *testing.T) {
	m := loadedManager(t, offsetstest.NewStore(offsetstest.NewDisk()), testConfig())
	c := simple("t", 1)
	c.Offsets[TopicPartition{"u", 0}] = offsets.Offset{Metadata: strings.Repeat("n", 4097)}
	tooLarge, err := m.Commit(t.Context(), "g", c)
	require.NoError(t, err)
	require.Equal(t, map[TopicPartition]bool{{"u", 0}: true}, tooLarge)
	require.Equal(t, int64(1), committed(t, m, "g", "t"))
	require.Equal(t, int64(-1), committed(t, m, "g", "u"))
}

// TestSlowStore: a write that takes too long is given up, and what it was for is not done.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		store.Before = func(ctx context.Context, _ int32, b *offsets.Batch) error {
			if b == nil {
				return nil
			}
			<-ctx.Done()
			return fmt.Errorf("%w: %w", offsets.ErrTimedOut, ctx.Err())
		}
		m := newManager(t, store, testConfig())
		synctest.Wait()
		began := time.Now()
		_, err := m.Commit(t.Context(), "g", simple("t", 1))
		require.ErrorIs(t, err, ErrTimedOut)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, int64(-1), committed(t, m, "g", "t"))

		first := m.Join(t.Context(), "h", joinAs(""))
		require.ErrorIs(t, m.Sync(t.Context(), "h", Sync{Member: Member{ID: first.MemberID, Generation: 1}}).Err, ErrRebalance)
	})
}

func TestRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := offsetstest.NewDisk()
		m := newManager(t, offsetstest.NewStore(disk), testConfig())
		synctest.Wait()
		ctx := t.Context()
		for _, group := range []string{"a", "b", "c", "d"} {
			_, err := m.Commit(ctx, group, simple("t", 1))
			require.NoError(t, err)
		}
		require.NoError(t, m.Delete(ctx, "a"))
		require.ErrorIs(t, m.Delete(ctx, "a"), ErrGroupNotFound)
		refused, err := m.DeleteOffsets(ctx, "b", []TopicPartition{{"t", 0}, {"t", 1}})
		require.NoError(t, err)
		require.Empty(t, refused)
		m.TopicDeleted("t")
		synctest.Wait()
		require.Equal(t, int64(-1), committed(t, m, "c", "t"))
		_, err = m.Commit(ctx, "d", simple("u", 1))
		require.NoError(t, err)
		m.Expire(ctx)
		list, err := m.List()
		require.NoError(t, err)
		require.Len(t, list, 1)
		time.Sleep(7 * day)
		m.Expire(ctx)
		list, err = m.List()
		require.NoError(t, err)
		require.Empty(t, list)
		for shard := range int32(offsetstest.Shards) {
			left := map[offsets.Key]bool{}
			for _, e := range disk.Entries(shard) {
				left[e.Key] = !e.Tombstone()
			}
			for k, there := range left {
				require.False(t, there, "%v is still stored", k)
			}
		}
		_, err = m.Commit(ctx, "a", simple("t", 2))
		require.NoError(t, err, "a removed group begins anew")
		require.Equal(t, int64(2), committed(t, m, "a", "t"))
	})
}

// What is committed for a new topic of a deleted one's name, as soon as the deletion was taken in, is not removed with what was
// committed for the old one.
func TestCommitsBehindADeletedTopicStay(t *testing.T) {
	m := loadedManager(t, offsetstest.NewStore(offsetstest.NewDisk()), testConfig())
	groups := make([]string, 20)
	for i := range groups {
		groups[i] = fmt.Sprint("g", i)
		_, err := m.Commit(t.Context(), groups[i], simple("t", 1))
		require.NoError(t, err)
	}
	for n := range int64(50) {
		m.TopicDeleted("t")
		for _, g := range groups {
			_, err := m.Commit(t.Context(), g, simple("t", 2+n))
			require.NoError(t, err)
		}
		for _, g := range groups {
			require.Equal(t, 2+n, committed(t, m, g, "t"))
		}
	}
}

func TestExpiryRunsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Retention, cfg.RetentionCheck = time.Hour, 10*time.Minute
		m := newManager(t, offsetstest.NewStore(offsetstest.NewDisk()), cfg)
		synctest.Wait()
		_, err := m.Commit(t.Context(), "g", simple("t", 1))
		require.NoError(t, err)
		time.Sleep(59 * time.Minute)
		require.Equal(t, int64(1), committed(t, m, "g", "t"))
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		require.Equal(t, int64(-1), committed(t, m, "g", "t"))
	})
}

func TestStopAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, offsetstest.NewStore(offsetstest.NewDisk()), testConfig())
		synctest.Wait()
		first := m.Join(t.Context(), "g", joinAs(""))
		done := make(chan error, 2)
		go func() { done <- m.Join(t.Context(), "g", joinAs("")).Err }()
		synctest.Wait()
		require.NoError(t, m.Stop(t.Context()))
		require.ErrorIs(t, <-done, ErrNotCoordinator)
		require.ErrorIs(t, m.Heartbeat("g", Member{ID: first.MemberID, Generation: 1}), ErrUnavailable)
		m.Lead(1, 99)
		_, err := m.List()
		require.ErrorIs(t, err, ErrUnavailable)
	})
}

func TestStopDoesNotWaitForASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		store.Before = func(ctx context.Context, _ int32, b *offsets.Batch) error {
			<-ctx.Done()
			return ctx.Err()
		}
		require.NoError(t, store.Start(t.Context()))
		cfg := testConfig()
		m := New(Options{Config: cfg, Store: store})
		m.Lead(0, 1)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, m.Stop(ctx), "the load ends with its shard")
	})
}

// TestIdleGroupsCostNothing: no goroutine and no timer for a group that nobody is in.
func TestIdleGroupsCostNothing(t *testing.T) {
	m := loadedManager(t, offsetstest.NewStore(offsetstest.NewDisk()), testConfig())
	before := runtime.NumGoroutine()
	for i := range 1000 {
		_, err := m.Commit(t.Context(), fmt.Sprintf("g%d", i), simple("t", 1))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
	for _, s := range m.shards {
		for _, e := range s.all() {
			require.Nil(t, e.timer)
		}
	}
}
