package partition

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuota(t *testing.T) {
	q := NewQuota()
	q.Took(epoch0, 1<<40)
	require.Zero(t, q.Owes(epoch0), "without a limit nothing is owed")
	q.SetRate(1000)
	require.Zero(t, q.Owes(epoch0))
	q.Took(epoch0, 500)
	require.True(t, q.Owes(epoch0).Equal(epoch0.Add(500*time.Millisecond)))
	q.Took(epoch0.Add(100*time.Millisecond), 500)
	require.True(t, q.Owes(epoch0.Add(100*time.Millisecond)).Equal(epoch0.Add(time.Second)))
	require.Zero(t, q.Owes(epoch0.Add(time.Second)), "all is paid for")
	q.Took(epoch0.Add(5*time.Second), 100)
	require.True(t, q.Owes(epoch0.Add(5*time.Second)).Equal(epoch0.Add(5100*time.Millisecond)), "idle time isn't saved")
	q.Took(epoch0, math.MaxInt64)
	require.LessOrEqual(t, q.Owes(epoch0).Sub(epoch0), mostOwed)
	q.SetRate(math.MaxInt64)
	require.Zero(t, q.Owes(epoch0))
	q.SetRate(0)
	require.True(t, q.Owes(epoch0).After(epoch0))
	q.Took(epoch0, 1)

	// Whatever comes in what pieces, the mean holds the rate.
	q = NewQuota()
	q.SetRate(1 << 20)
	now, sent := epoch0, int64(0)
	for now.Sub(epoch0) < 100*time.Second {
		if until := q.Owes(now); !until.IsZero() {
			now = until
			continue
		}
		n := 1 + sent%70_000*7
		q.Took(now, n)
		sent += n
	}
	require.InEpsilon(t, 100<<20, sent, 0.02)
}
