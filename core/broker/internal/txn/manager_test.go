package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
)

// world is what a manager knows outside of itself.
type world struct {
	log *offsetstest.Log

	mu      sync.Mutex
	nextID  int64
	gone    map[partition.ID]bool
	code    int16 // of every marker
	fail    error // of every request
	written []string
}

func newWorld() *world {
	return &world{log: offsetstest.NewLog(3), nextID: 100, gone: map[partition.ID]bool{}}
}

func (w *world) newID() (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nextID++
	return w.nextID - 1, nil
}

func (w *world) leader(p partition.ID) (int32, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return p.Partition % 2, !w.gone[p]
}

// WriteTxnMarkers takes a note of every marker.
func (w *world) WriteTxnMarkers(_ context.Context, broker int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return nil, w.fail
	}
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for _, m := range req.Markers {
		out := kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.ProducerID}
		for _, t := range m.Topics {
			topic := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p, ErrorCode: w.code})
				if w.code == 0 {
					w.written = append(w.written, fmt.Sprintf("%s-%d at %d: producer %d epoch %d commit %v coordinator %d", t.Topic, p, broker, m.ProducerID, m.ProducerEpoch, m.Committed, m.CoordinatorEpoch))
				}
			}
			out.Topics = append(out.Topics, topic)
		}
		resp.Markers = append(resp.Markers, out)
	}
	return resp, nil
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) markers() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.written)
	slices.Sort(list)
	return list
}

// manager makes a manager that leads all shards under an epoch, and has loaded them. It belongs into a synctest bubble.
func (w *world) manager(t *testing.T, epoch int32) *Manager {
	m := New(Options{
		Config: Config{MaxTimeout: 15 * time.Minute, AbortInterval: 10 * time.Second, Expiration: 7 * 24 * time.Hour, ExpirationCheck: time.Hour, Verify: true},
		Log:    w.log, NewID: w.newID, Leader: w.leader, Markers: w, Now: time.Now,
	})
	m.Start()
	require.NoError(t, m.Prepare(t.Context()))
	for shard := range int32(3) {
		m.Lead(shard, epoch)
	}
	synctest.Wait()
	t.Cleanup(func() {
		require.NoError(t, m.Stop(context.Background()))
		require.NoError(t, m.Stop(context.Background()), "stop twice")
	})
	return m
}

func mustInit(t *testing.T, m *Manager, id string, timeout time.Duration) Producer {
	p, err := m.Init(id, Init{Timeout: timeout})
	require.NoError(t, err)
	return p
}

func state(t *testing.T, m *Manager, id string) State {
	d, err := m.Describe(id)
	require.NoError(t, err)
	return d.State
}

func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m := w.manager(t, 4)
		p := mustInit(t, m, "a", time.Minute)
		require.Equal(t, producer(100, 0), p)
		require.Equal(t, Empty, state(t, m, "a"))
		require.ErrorIs(t, m.End("a", p, true), ErrState)
		require.NoError(t, m.Add("a", p, parts("t", 0, 1)))
		require.NoError(t, m.Add("a", p, parts("u", 0)))
		require.Equal(t, Ongoing, state(t, m, "a"))
		require.NoError(t, m.Verify("a", p, partition.ID{Topic: "t", Partition: 1}))
		require.NoError(t, m.VerifyProducer(p, partition.ID{Topic: "t", Partition: 1}))
		require.ErrorIs(t, m.Verify("a", p, partition.ID{Topic: "t", Partition: 2}), ErrNotAdded)
		require.ErrorIs(t, m.Verify("b", p, partition.ID{Topic: "t", Partition: 1}), ErrProducerMapping)
		require.ErrorIs(t, m.VerifyProducer(producer(99, 0), partition.ID{Topic: "t", Partition: 1}), ErrProducerMapping)
		m.SetVerify(false)
		require.NoError(t, m.Verify("b", p, partition.ID{Topic: "t", Partition: 2}))
		m.SetVerify(true)
		errs, err := m.InTransaction("a", p, append(parts("u", 0), parts("x", 1)...))
		require.NoError(t, err)
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], ErrNotAdded)
		require.NoError(t, m.End("a", p, true))
		synctest.Wait()
		require.Equal(t, CompleteCommit, state(t, m, "a"))
		require.Equal(t, []string{
			"t-0 at 0: producer 100 epoch 0 commit true coordinator 4",
			"t-1 at 1: producer 100 epoch 0 commit true coordinator 4",
			"u-0 at 0: producer 100 epoch 0 commit true coordinator 4",
		}, w.markers())
		require.NoError(t, m.End("a", p, true), "asked again")

		p2 := mustInit(t, m, "b", time.Minute)
		require.NoError(t, m.Add("b", p2, parts("t", 0)))
		_, err = m.Init("b", Init{Timeout: time.Minute})
		require.ErrorIs(t, err, ErrConcurrent)
		synctest.Wait()
		require.Contains(t, w.markers(), "t-0 at 0: producer 101 epoch 1 commit false coordinator 4")
		require.Equal(t, producer(101, 2), mustInit(t, m, "b", time.Minute))
		require.ErrorIs(t, m.Add("b", p2, parts("t", 0)), ErrFenced)
		list, err := m.List()
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, "a", list[0].ID)
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newWorld().manager(t, 1)
		for _, timeout := range []time.Duration{0, -time.Second, 15*time.Minute + 1} {
			_, err := m.Init("a", Init{Timeout: timeout})
			require.ErrorIs(t, err, ErrInvalidTimeout)
		}
		for _, id := range []string{"", string(make([]byte, maxID+1))} {
			_, err := m.Init(id, Init{Timeout: time.Minute})
			require.ErrorIs(t, err, ErrInvalidRequest)
		}
		require.ErrorIs(t, m.Add("", producer(1, 1), nil), ErrInvalidRequest)
		require.ErrorIs(t, m.Add("a", producer(1, 1), nil), ErrProducerMapping)
		_, err := m.Describe("a")
		require.ErrorIs(t, err, ErrNotFound)
		shard, err := m.ShardOf("a")
		require.NoError(t, err)
		m.Resign(shard)
		require.ErrorIs(t, m.Add("a", producer(1, 1), nil), ErrNotCoordinator)
		require.NoError(t, m.Stop(t.Context()))
		require.ErrorIs(t, m.Add("a", producer(1, 1), nil), ErrUnavailable)
		require.ErrorIs(t, New(Options{Log: offsetstest.NewLog(1)}).Add("a", producer(1, 1), nil), ErrNotCoordinator, "before the topic exists")
	})
}

// TestCrashes stops a manager at each point of a transaction: the next one goes on from what was stored.
func TestCrashes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		until   func(*testing.T, *world, *Manager, Producer)
		want    State
		markers []string
	}{
		{"open", func(t *testing.T, _ *world, m *Manager, p Producer) {}, Ongoing, nil},
		{"commit is decided", func(t *testing.T, w *world, m *Manager, p Producer) {
			w.set(func() { w.fail = errLost })
			require.NoError(t, m.End("a", p, true))
		}, CompleteCommit, []string{"t-0 at 0: producer 100 epoch 0 commit true coordinator 2", "t-1 at 1: producer 100 epoch 0 commit true coordinator 2"}},
		{"abort is decided", func(t *testing.T, w *world, m *Manager, p Producer) {
			w.set(func() { w.fail = errLost })
			require.NoError(t, m.End("a", p, false))
		}, CompleteAbort, []string{"t-0 at 0: producer 100 epoch 0 commit false coordinator 2", "t-1 at 1: producer 100 epoch 0 commit false coordinator 2"}},
		{"markers are written, their completion isn't stored", func(t *testing.T, w *world, m *Manager, p Producer) {
			n := 0
			w.log.Fail = func(int32, []byte) error {
				if n++; n > 1 {
					return errLost
				}
				return nil
			}
			require.NoError(t, m.End("a", p, true))
		}, CompleteCommit, []string{"t-0 at 0: producer 100 epoch 0 commit true coordinator 1", "t-0 at 0: producer 100 epoch 0 commit true coordinator 2",
			"t-1 at 1: producer 100 epoch 0 commit true coordinator 1", "t-1 at 1: producer 100 epoch 0 commit true coordinator 2"}},
		{"commit isn't stored", func(t *testing.T, w *world, m *Manager, p Producer) {
			w.log.Fail = func(int32, []byte) error { return offsets.ErrTimedOut }
			require.ErrorIs(t, m.End("a", p, true), ErrUnavailable)
		}, Ongoing, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				first := w.manager(t, 1)
				p := mustInit(t, first, "a", time.Minute)
				require.NoError(t, first.Add("a", p, parts("t", 0, 1)))
				tc.until(t, w, first, p)
				synctest.Wait()
				for shard := range int32(3) {
					first.Resign(shard)
				}
				synctest.Wait()
				w.set(func() { w.fail = nil })
				w.log.Fail = nil
				second := w.manager(t, 2)
				require.Equal(t, tc.want, state(t, second, "a"))
				require.Equal(t, tc.markers, w.markers())
				if tc.want == Ongoing {
					require.NoError(t, second.End("a", p, true))
					synctest.Wait()
					require.Equal(t, CompleteCommit, state(t, second, "a"))
				}
				require.ErrorIs(t, first.Add("a", p, parts("t", 5)), ErrNotCoordinator)
			})
		})
	}
}

// TestMarkersAreTriedAgain until the broker is there and the partition has a leader again; not after a newer coordinator.
func TestMarkersAreTriedAgain(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*world)
		then State
		n    int // markers in the end
	}{
		{"no broker", func(w *world) { w.fail = errLost }, CompleteCommit, 2},
		{"not the leader", func(w *world) { w.code = kerr.NotLeaderForPartition.Code }, CompleteCommit, 2},
		{"too few replicas", func(w *world) { w.code = kerr.NotEnoughReplicas.Code }, CompleteCommit, 2},
		{"newer coordinator", func(w *world) { w.code = kerr.TransactionCoordinatorFenced.Code }, PrepareCommit, 0},
		{"newer producer", func(w *world) { w.code = kerr.InvalidProducerEpoch.Code }, PrepareCommit, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				m := w.manager(t, 1)
				p := mustInit(t, m, "a", time.Minute)
				require.NoError(t, m.Add("a", p, parts("t", 0, 1)))
				w.set(func() { tc.set(w) })
				require.NoError(t, m.End("a", p, true))
				synctest.Wait()
				require.Equal(t, PrepareCommit, state(t, m, "a"))
				require.ErrorIs(t, m.Add("a", p, parts("t", 2)), ErrConcurrent)
				w.set(func() { w.fail, w.code = nil, 0 })
				time.Sleep(retryMax)
				synctest.Wait()
				require.Equal(t, tc.then, state(t, m, "a"))
				require.Len(t, w.markers(), tc.n)
			})
		})
	}
	t.Run("deleted topic", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			m := w.manager(t, 1)
			p := mustInit(t, m, "a", time.Minute)
			require.NoError(t, m.Add("a", p, parts("t", 0, 1)))
			w.set(func() { w.gone[partition.ID{Topic: "t", Partition: 0}] = true })
			require.NoError(t, m.End("a", p, false))
			synctest.Wait()
			require.Equal(t, CompleteAbort, state(t, m, "a"))
			require.Len(t, w.markers(), 1)
		})
	})
}

// TestTimedOutTransactions are aborted when they are due, or a round later.
func TestTimedOutTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m := w.manager(t, 1)
		p := mustInit(t, m, "a", 5*time.Second)
		q := mustInit(t, m, "b", 12*time.Second)
		long := mustInit(t, m, "c", 10*time.Minute)
		for id, p := range map[string]Producer{"a": p, "b": q, "c": long} {
			require.NoError(t, m.Add(id, p, parts("t", 0)))
		}
		time.Sleep(5*time.Second - 1)
		synctest.Wait()
		require.Equal(t, Ongoing, state(t, m, "a"))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, CompleteAbort, state(t, m, "a"))
		require.ErrorIs(t, m.End("a", p, true), ErrFenced)
		time.Sleep(8 * time.Second)
		synctest.Wait()
		require.Equal(t, Ongoing, state(t, m, "b"), "due, but the last round was 8 s ago")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, CompleteAbort, state(t, m, "b"))
		require.Equal(t, Ongoing, state(t, m, "c"))

		for shard := range int32(3) {
			m.Resign(shard)
		}
		again := w.manager(t, 2)
		time.Sleep(10*time.Minute - 15*time.Second)
		synctest.Wait()
		require.Equal(t, CompleteAbort, state(t, again, "c"), "due under the next coordinator, too")
	})
}

func TestIdleIDsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m := w.manager(t, 1)
		mustInit(t, m, "idle", time.Minute)
		p := mustInit(t, m, "open", 15*time.Minute)
		time.Sleep(7*24*time.Hour - time.Minute)
		require.NoError(t, m.Add("open", p, parts("t", 0)))
		require.Equal(t, Empty, state(t, m, "idle"))
		time.Sleep(time.Hour)
		synctest.Wait()
		_, err := m.Describe("idle")
		require.ErrorIs(t, err, ErrNotFound)
		require.Equal(t, CompleteAbort, state(t, m, "open"))
		require.Equal(t, producer(102, 0), mustInit(t, m, "idle", time.Minute), "a new life")
		for shard := range int32(3) {
			m.Resign(shard)
		}
		again := w.manager(t, 2)
		require.Equal(t, producer(102, 1), mustInit(t, again, "idle", time.Minute))
	})
}

// TestFailedWrites leave nothing behind, and an id that never came into being is forgotten.
func TestFailedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m := w.manager(t, 1)
		w.log.Fail = func(int32, []byte) error { return fmt.Errorf("%w: few replicas", offsets.ErrUnavailable) }
		_, err := m.Init("a", Init{Timeout: time.Minute})
		require.ErrorIs(t, err, ErrUnavailable)
		require.Empty(t, m.shards[0].entries)
		require.Empty(t, m.shards[1].entries)
		require.Empty(t, m.shards[2].entries)
		require.Empty(t, m.producers.by)
		w.log.Fail = nil
		p := mustInit(t, m, "a", time.Minute)
		for _, fail := range []struct{ is, want error }{
			{offsets.ErrUnavailable, ErrUnavailable}, {offsets.ErrTimedOut, ErrUnavailable}, {offsets.ErrNotOwner, ErrNotCoordinator}, {errors.New("odd"), ErrUnknown},
		} {
			w.log.Fail = func(int32, []byte) error { return fail.is }
			require.ErrorIs(t, m.Add("a", p, parts("t", 0)), fail.want)
			require.Equal(t, Empty, state(t, m, "a"))
		}
		w.log.Fail = nil
		require.NoError(t, m.Add("a", p, parts("t", 0)))
	})
}

// TestLoadRefusesWhatItCannotRead rather than forget transactions: the ids stay unavailable.
func TestLoadRefusesWhatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m := w.manager(t, 1)
		mustInit(t, m, "a", time.Minute)
		shard, err := m.ShardOf("a")
		require.NoError(t, err)
		bad := w.log.Bytes(shard)
		bad[len(bad)-1] ^= 1 // its checksum is wrong now
		w.log.Put(shard, bad)
		m.Lead(shard, 2)
		synctest.Wait()
		_, err = m.Init("a", Init{Timeout: time.Minute})
		require.ErrorIs(t, err, ErrLoading)
		require.ErrorIs(t, m.VerifyProducer(producer(1, 1), partition.ID{}), ErrLoading)
		_, err = m.List()
		require.ErrorIs(t, err, ErrLoading)
	})
}
