package producerid

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// blocks gives blocks of three, and fails when told to.
type blocks struct {
	next int64
	err  error
}

func (b *blocks) ProducerIDs(context.Context, int32, int64) (election.ProducerIDBlock, error) {
	if b.err != nil {
		return election.ProducerIDBlock{}, b.err
	}
	b.next += 10
	return election.ProducerIDBlock{First: b.next, Count: 3}, nil
}

func TestNoIDTwice(t *testing.T) {
	ids := New(&blocks{}, 1)
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				id, err := ids.Next(t.Context())
				mu.Lock()
				if err != nil || seen[id] || id < 10 || id%10 > 2 {
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

func TestFailure(t *testing.T) {
	b := &blocks{err: errors.New("away")}
	ids := New(b, 1)
	_, err := ids.Next(t.Context())
	require.ErrorIs(t, err, b.err)
	b.err = nil
	id, err := ids.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(10), id)
}
