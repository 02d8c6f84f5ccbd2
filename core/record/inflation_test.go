package record

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInflation(t *testing.T) {
	i := NewInflation()
	var limits []int
	f := func(need int) func(int) error {
		return func(limit int) error {
			limits = append(limits, limit)
			if need > limit {
				return fmt.Errorf("%w: %w", ErrUnreadable, ErrPayloadTooLarge)
			}
			return nil
		}
	}
	require.NoError(t, i.Do(DefaultPayloadLimit, f(largePayload)))
	require.NoError(t, i.Do(DefaultPayloadLimit, f(largePayload+1)))
	require.ErrorIs(t, i.Do(1000, f(1001)), ErrPayloadTooLarge)
	require.ErrorIs(t, i.Do(DefaultPayloadLimit, f(DefaultPayloadLimit+1)), ErrUnreadable)
	require.Equal(t, []int{largePayload, largePayload, DefaultPayloadLimit, 1000, largePayload, DefaultPayloadLimit}, limits)
}

func TestInflationTakesTurns(t *testing.T) {
	i := NewInflation()
	var now, most, large, mostLarge atomic.Int32
	enter := func(count, highest *atomic.Int32) {
		n := count.Add(1)
		for h := highest.Load(); n > h && !highest.CompareAndSwap(h, n); h = highest.Load() {
		}
		time.Sleep(time.Millisecond) // so that others come, if they may
		count.Add(-1)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			require.NoError(t, i.Do(DefaultPayloadLimit, func(limit int) error {
				if limit == largePayload {
					enter(&now, &most)
					return ErrPayloadTooLarge
				}
				enter(&large, &mostLarge)
				return nil
			}))
		})
	}
	all.Wait()
	require.LessOrEqual(t, int(most.Load()), runtime.GOMAXPROCS(0))
	require.Equal(t, int32(1), mostLarge.Load())
	require.Panics(t, func() { _ = i.Do(1, func(int) error { panic("f") }) })
	require.Empty(t, i.slots, "a panic gives the slot back")
}
