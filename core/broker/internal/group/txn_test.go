package group

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
)

var errNoTxn = errors.New("not in the transaction")

func fine() error { return nil }

func inTxn(p offsets.Producer, topic string, at int64) TxnCommit {
	return TxnCommit{Member: nobody, Producer: p, Offsets: simple(topic, at).Offsets}
}

// stableOffset is what a reader that wants stable offsets is told.
func stableOffset(t *testing.T, m *Manager, group, topic string) (int64, error) {
	list, err := m.Fetch(group, []TopicPartition{{topic, 0}}, true)
	require.NoError(t, err)
	return list[0].Offset.Offset, list[0].Err
}

func TestTransactionalOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := offsetstest.NewDisk()
		m := newManager(t, offsetstest.NewStore(disk), testConfig())
		synctest.Wait()
		ctx := t.Context()
		a, b := offsets.Producer{ID: 1, Epoch: 3}, offsets.Producer{ID: 2}

		_, err := m.TxnCommit(ctx, "", inTxn(a, "t", 1), fine)
		require.ErrorIs(t, err, ErrInvalidGroupID)
		_, err = m.TxnCommit(ctx, "g", inTxn(a, "t", 1), func() error { return errNoTxn })
		require.ErrorIs(t, err, errNoTxn)
		require.Empty(t, must(m.List()), "a refused commit leaves no group behind")

		_, err = m.TxnCommit(ctx, "g", inTxn(a, "t", 5), fine)
		require.NoError(t, err)
		_, err = m.TxnCommit(ctx, "g", inTxn(a, "u", 6), func() error { return errNoTxn })
		require.NoError(t, err, "the group knows the transaction by now")
		_, err = m.TxnCommit(ctx, "g", inTxn(offsets.Producer{ID: 1, Epoch: 2}, "u", 6), func() error { return errNoTxn })
		require.ErrorIs(t, err, errNoTxn, "of another epoch it doesn't")
		_, err = m.TxnCommit(ctx, "g", inTxn(b, "t", 9), fine)
		require.NoError(t, err)
		require.EqualValues(t, -1, committed(t, m, "g", "t"))
		_, err = stableOffset(t, m, "g", "t")
		require.ErrorIs(t, err, ErrUnstable)

		require.NoError(t, m.EndTransaction(ctx, shardOf("g"), a, true, 4))
		require.EqualValues(t, 5, committed(t, m, "g", "t"))
		require.EqualValues(t, 6, committed(t, m, "g", "u"))
		_, err = stableOffset(t, m, "g", "t")
		require.ErrorIs(t, err, ErrUnstable, "the other one is still open")
		require.NoError(t, m.EndTransaction(ctx, shardOf("g"), b, false, 4))
		at, err := stableOffset(t, m, "g", "t")
		require.NoError(t, err)
		require.EqualValues(t, 5, at)
		require.NoError(t, m.EndTransaction(ctx, shardOf("g"), a, true, 4), "a marker may come again")

		// What is open when the shard moves is open under the next coordinator.
		_, err = m.TxnCommit(ctx, "g", inTxn(a, "t", 7), fine)
		require.NoError(t, err)
		m.Lead(shardOf("g"), 2)
		synctest.Wait()
		require.EqualValues(t, 5, committed(t, m, "g", "t"))
		_, err = stableOffset(t, m, "g", "t")
		require.ErrorIs(t, err, ErrUnstable)
		_, err = m.TxnCommit(ctx, "g", inTxn(a, "u", 8), func() error { return errNoTxn })
		require.ErrorIs(t, err, errNoTxn, "its epoch isn't known any more")
		require.NoError(t, m.EndTransaction(ctx, shardOf("g"), a, true, 4))
		require.EqualValues(t, 7, committed(t, m, "g", "t"))
		m.Lead(shardOf("g"), 3)
		synctest.Wait()
		require.EqualValues(t, 7, committed(t, m, "g", "t"))
		m.Resign(shardOf("g"))
		require.ErrorIs(t, m.EndTransaction(ctx, shardOf("g"), a, true, 4), ErrNotCoordinator)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestMarkersWaitForOffsets: a marker goes behind the offsets that are being written, or they would be pending for ever.
func TestMarkersWaitForOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		m := newManager(t, store, testConfig())
		synctest.Wait()
		gate := make(chan struct{})
		var order []string
		store.Before = func(_ context.Context, _ int32, b *offsets.Batch) error {
			switch {
			case b != nil && b.Ended != offsets.NotEnded:
				order = append(order, "marker")
			case b != nil:
				<-gate
				order = append(order, "offsets")
			}
			return nil
		}
		p := offsets.Producer{ID: 1}
		go func() { _, _ = m.TxnCommit(t.Context(), "g", inTxn(p, "t", 5), fine) }()
		synctest.Wait()
		_, err := stableOffset(t, m, "g", "t")
		require.ErrorIs(t, err, ErrUnstable, "while it is being written, too")
		ended := make(chan error, 1)
		go func() { ended <- m.EndTransaction(t.Context(), shardOf("g"), p, true, 1) }()
		synctest.Wait()
		require.Empty(t, order)
		close(gate)
		require.NoError(t, <-ended)
		require.Equal(t, []string{"offsets", "marker"}, order)
		require.EqualValues(t, 5, committed(t, m, "g", "t"))
	})
}

// TestMarkersWaitForVerifiedOffsets: what a coordinator has just taken for part of an open transaction isn't written behind the
// marker that ends it.
func TestMarkersWaitForVerifiedOffsets(t *testing.T) {
	disk := offsetstest.NewDisk()
	m := loadedManager(t, offsetstest.NewStore(disk), testConfig())
	p := offsets.Producer{ID: 1}
	ended := make(chan error, 1)
	_, err := m.TxnCommit(t.Context(), "g", inTxn(p, "t", 5), func() error {
		go func() { ended <- m.EndTransaction(context.Background(), shardOf("g"), p, true, 1) }()
		select {
		case err := <-ended: // without waiting
			ended <- err
		case <-time.After(100 * time.Millisecond): // it waits, or hasn't begun, which is as good
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, <-ended)
	at, err := stableOffset(t, m, "g", "t")
	require.NoError(t, err)
	require.EqualValues(t, 5, at)
}

// TestNothingJoinsAnEndingTransaction: while a marker is being written, the group asks again whether the transaction is open.
func TestNothingJoinsAnEndingTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		m := newManager(t, store, testConfig())
		synctest.Wait()
		p := offsets.Producer{ID: 1}
		_, err := m.TxnCommit(t.Context(), "g", inTxn(p, "t", 5), fine)
		require.NoError(t, err)
		gate := make(chan struct{})
		store.Before = func(_ context.Context, _ int32, b *offsets.Batch) error {
			if b != nil && b.Ended != offsets.NotEnded {
				<-gate
			}
			return nil
		}
		ended := make(chan error, 1)
		go func() { ended <- m.EndTransaction(t.Context(), shardOf("g"), p, true, 1) }()
		synctest.Wait()
		_, err = m.TxnCommit(t.Context(), "g", inTxn(p, "t", 6), func() error { return errNoTxn })
		require.ErrorIs(t, err, errNoTxn)
		close(gate)
		require.NoError(t, <-ended)
		require.EqualValues(t, 5, committed(t, m, "g", "t"))
	})
}

func TestTransactionalMembers(t *testing.T) {
	s := newSim(t)
	p := offsets.Producer{ID: 1}
	commit := func(who Member) error {
		s.last++
		fx, err := s.g.TxnCommit(s.now, s.last, TxnCommit{Member: who, Producer: p, Offsets: map[TopicPartition]offsets.Offset{{"t", 0}: {Offset: 5}}})
		s.do(fx)
		return err
	}
	require.ErrorIs(t, commit(Member{ID: "stranger", Generation: 1}), ErrUnknownMember)
	require.NoError(t, commit(nobody), "of an empty group")
	m := stable(t, s, 1)[0]
	who := m.who()
	require.NoError(t, commit(who))
	require.NoError(t, commit(nobody), "clients before KIP-447 don't name themselves")
	who.Generation++
	require.ErrorIs(t, commit(who), ErrIllegalGeneration)
	who = m.who()
	instance := "i"
	who.InstanceID = &instance
	require.ErrorIs(t, commit(who), ErrUnknownMember)
}

// TestFailedTransactionalWrite leaves nothing pending.
func TestFailedTransactionalWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := offsetstest.NewStore(offsetstest.NewDisk())
		m := newManager(t, store, testConfig())
		synctest.Wait()
		store.Before = func(context.Context, int32, *offsets.Batch) error { return offsets.ErrTimedOut }
		_, err := m.TxnCommit(t.Context(), "g", inTxn(offsets.Producer{ID: 1}, "t", 5), fine)
		require.ErrorIs(t, err, ErrTimedOut)
		_, err = stableOffset(t, m, "g", "t")
		require.NoError(t, err)
		require.ErrorIs(t, m.EndTransaction(t.Context(), shardOf("g"), offsets.Producer{ID: 1}, true, 1), offsets.ErrTimedOut, "to be tried again")
		store.Before = nil
		require.NoError(t, m.EndTransaction(t.Context(), shardOf("g"), offsets.Producer{ID: 1}, true, 1))
		require.EqualValues(t, -1, committed(t, m, "g", "t"))
		time.Sleep(time.Millisecond)
	})
}
