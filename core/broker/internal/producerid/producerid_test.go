package producerid

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// blocks gives blocks of ten after a while, the first from 100 on, and fails when told to.
type blocks struct {
	takes time.Duration

	mu    sync.Mutex
	asked []time.Time
	given int
	fail  int // so many of the next calls fail
	bad   bool
}

var errAway = errors.New("away")

func (b *blocks) ProducerIDs(ctx context.Context, broker int32, from int64) (election.ProducerIDBlock, error) {
	b.mu.Lock()
	b.asked = append(b.asked, time.Now())
	b.mu.Unlock()
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		return election.ProducerIDBlock{}, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail > 0 {
		b.fail--
		if b.bad {
			return election.ProducerIDBlock{First: -1, Count: 10}, nil
		}
		return election.ProducerIDBlock{}, errAway
	}
	b.given++
	return election.ProducerIDBlock{First: int64(100 * b.given), Count: 10}, nil
}

func (b *blocks) calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

func start(t *testing.T, b *blocks) *IDs {
	ids := New(b, 1, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		require.NoError(t, ids.Stop(context.Background()))
		require.NoError(t, ids.Stop(context.Background()), "stop twice")
		_, err := ids.Next()
		require.ErrorIs(t, err, errStopped)
		require.ErrorIs(t, ids.Load(context.Background()), errStopped)
	})
	return ids
}

// TestNobodyWaits plays a slow coordination: everybody is answered at once, and it is asked once.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocks{takes: time.Second}
		ids := start(t, b)
		begin := time.Now()
		for range 3 {
			_, err := ids.Next()
			require.ErrorIs(t, err, ErrLoading)
		}
		require.Zero(t, time.Since(begin))
		time.Sleep(time.Second)
		synctest.Wait()
		id, err := ids.Next()
		require.NoError(t, err)
		require.EqualValues(t, 100, id)
		require.Equal(t, 1, b.calls())
	})
}

// TestPrefetch gives what two blocks hold without a gap: the second is asked for when one id of the first is left.
func TestPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocks{takes: time.Millisecond}
		ids := start(t, b)
		require.NoError(t, ids.Load(t.Context()))
		for n := range int64(19) {
			asked := 1
			if n >= 9 {
				asked = 2
			}
			require.Equal(t, asked, b.calls(), "before id %d", n)
			id, err := ids.Next()
			require.NoError(t, err)
			require.Equal(t, 100*(1+n/10)+n%10, id)
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		require.Equal(t, 3, b.calls())
	})
}

// TestExhausted uses up a block before the following one is there.
func TestExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocks{takes: time.Second}
		ids := start(t, b)
		require.NoError(t, ids.Load(t.Context()))
		for range 10 {
			_, err := ids.Next()
			require.NoError(t, err)
		}
		_, err := ids.Next()
		require.ErrorIs(t, err, ErrLoading)
		require.NoError(t, ids.Load(t.Context()))
		id, err := ids.Next()
		require.NoError(t, err)
		require.EqualValues(t, 200, id)
		require.Equal(t, 2, b.calls())
	})
}

// TestBackoff lets the coordination fail, and answer nonsense: it is asked again, ever more rarely, by itself.
func TestBackoff(t *testing.T) {
	for _, bad := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := &blocks{fail: 8, bad: bad}
			ids := start(t, b)
			_, err := ids.Next()
			require.ErrorIs(t, err, ErrLoading)
			require.NoError(t, ids.Load(t.Context()))
			id, err := ids.Next()
			require.NoError(t, err)
			require.EqualValues(t, 100, id)
			var waits []time.Duration
			for n, at := range b.asked[1:] {
				waits = append(waits, at.Sub(b.asked[n]))
			}
			ms := time.Millisecond
			require.Equal(t, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms, 1000 * ms}, waits)
		})
	}
}

// TestStop ends a fetch that hangs, one that waits to try again, and whoever waits for it.
func TestStop(t *testing.T) {
	for name, b := range map[string]*blocks{"hanging": {takes: 1000 * time.Hour}, "failing": {fail: 1000}} {
		synctest.Test(t, func(t *testing.T) {
			ids := start(t, b)
			ended := make(chan error, 1)
			go func() { ended <- ids.Load(context.Background()) }()
			synctest.Wait()
			require.NoError(t, ids.Stop(t.Context()), name)
			require.ErrorIs(t, <-ended, errStopped, name)
		})
	}
}

// TestLoadGivesUp leaves the fetch to others when the caller has no time left.
func TestLoadGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := start(t, &blocks{takes: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, ids.Load(ctx), context.DeadlineExceeded)
		require.NoError(t, ids.Load(t.Context()))
	})
}

func TestNoIDTwice(t *testing.T) {
	ids := start(t, &blocks{})
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				id, err := ids.Next()
				for errors.Is(err, ErrLoading) {
					err = ids.Load(t.Context())
					if err == nil {
						id, err = ids.Next()
					}
				}
				mu.Lock()
				if err != nil || seen[id] || id < 100 || id%100 > 9 {
					t.Errorf("got %d, %v", id, err)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 400)
}
