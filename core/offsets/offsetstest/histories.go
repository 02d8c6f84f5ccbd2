package offsetstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// checkRandom plays random writes, transactions and fail-overs, and compares what is loaded with a model.
func checkRandom(t TB, w World) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, shard := randomStore(t, w, r)
		epoch := int32(100 * (seed + 1))
		model := load(t, s, shard, epoch)
		for range 60 {
			b := randomBatch(r, seed)
			require.NoError(t, s.Write(background(t), shard, epoch, b), "seed %d", seed)
			model.written(b)
			if r.IntN(12) == 0 {
				if r.IntN(2) == 0 {
					s.Unload(shard, epoch)
				}
				epoch++
				got := load(t, s, shard, epoch)
				require.Equal(t, model.entries, got.entries, "seed %d", seed)
				require.Equal(t, model.pending, got.pending, "seed %d", seed)
			}
		}
		require.NoError(t, s.Stop(context.Background()))
	}
}

func randomStore(t TB, w World, r *rand.Rand) (offsets.Store, int32) {
	s := w.Store()
	require.NoError(t, s.Start(background(t)))
	require.NoError(t, s.Prepare(background(t)))
	shard, err := s.Shard(fmt.Sprintf("g%d", r.IntN(100)))
	require.NoError(t, err)
	return s, shard
}

// written applies a batch as the contract says that it counts.
func (c *content) written(b offsets.Batch) {
	producer := int64(offsets.None)
	if b.Producer != nil {
		producer = b.Producer.ID
	}
	if b.Ended != offsets.NotEnded {
		c.apply(offsets.Event{Producer: producer, Ended: b.Ended})
	}
	for _, e := range b.Entries {
		c.apply(offsets.Event{Producer: producer, Entry: e})
	}
}

func randomBatch(r *rand.Rand, seed uint64) offsets.Batch {
	b := offsets.Batch{Timestamp: now}
	if r.IntN(4) == 0 {
		b.Producer = &offsets.Producer{ID: int64(seed)*1000 + r.Int64N(3)}
		if r.IntN(2) == 0 {
			b.Ended = offsets.Committed
			if r.IntN(2) == 0 {
				b.Ended = offsets.Aborted
			}
			return b
		}
	}
	for range r.IntN(5) + 1 {
		group := fmt.Sprintf("g%d", r.IntN(3))
		switch {
		case b.Producer == nil && r.IntN(4) == 0:
			b.Entries = append(b.Entries, meta(group, r.Int32N(100), member("m")))
		case b.Producer == nil && r.IntN(4) == 0:
			b.Entries = append(b.Entries, tombstone(offsets.GroupKey(group)))
		case r.IntN(5) == 0:
			b.Entries = append(b.Entries, tombstone(offsets.OffsetKey(group, "t", r.Int32N(4))))
		default:
			b.Entries = append(b.Entries, offset(group, "t", r.Int32N(4), r.Int64N(1000)))
		}
	}
	return b
}

// checkConcurrent writes from many goroutines while the shard is unloaded and loaded under newer epochs.
func checkConcurrent(t TB, w World) {
	s, shard := loaded(t, w, "g")
	var mu sync.Mutex
	stored := map[offsets.Key]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range int32(50) {
				e := offset("g", fmt.Sprintf("t%d", i), n, 1)
				epoch := 1 + n/25
				if s.Write(context.Background(), shard, epoch, offsets.Batch{Timestamp: now, Entries: []offsets.Entry{e}}) == nil {
					mu.Lock()
					stored[e.Key] = true
					mu.Unlock()
				}
				_, _ = s.Shard("g")
			}
		})
	}
	wg.Go(func() {
		s.Unload(shard, 1)
		_ = s.Load(context.Background(), shard, 2, func(offsets.Event) error { return nil })
	})
	wg.Wait()
	got := load(t, s, shard, 3)
	for k := range stored {
		require.Contains(t, got.entries, k, "a write that returned nil is lost")
	}
}

func checkLifeCycle(t TB, w World) {
	ctx := background(t)
	s := w.Store()
	none := func(offsets.Event) error { return nil }
	require.NoError(t, s.Stop(ctx), "stop before start")
	require.Error(t, s.Load(ctx, 0, 1, none), "load before start")
	require.Error(t, s.Write(ctx, 0, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 1)}}), "write before start")
	s.Unload(0, 1)

	s = w.Store()
	require.NoError(t, s.Start(ctx))
	require.NoError(t, s.Prepare(ctx))
	load(t, s, 0, 1)
	require.NoError(t, s.Stop(ctx))
	require.NoError(t, s.Stop(ctx), "stop twice")
	require.Error(t, s.Write(ctx, 0, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 1)}}), "write after stop")
	require.Error(t, s.Load(ctx, 0, 2, none), "load after stop")
}
