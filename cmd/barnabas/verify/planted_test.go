package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/liar"
	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// front starts a broker and a liar before it, and gives the liar's address.
func front(t *testing.T, lie liar.Lie) string {
	t.Helper()
	broker := testbroker.Start(t, brokertest.Property("group.initial.rebalance.delay.ms", "0"), brokertest.Property("offsets.topic.num.partitions", "1"),
		brokertest.Property("transaction.state.log.num.partitions", "1"))
	p, err := liar.Start(broker.Addr(), lie)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p.Addr()
}

// one is a small run over one partition.
func one(addr string) Options {
	return Options{Bootstrap: []string{addr}, Partitions: 1, Producers: 1, Records: 2000, Rate: 3000, Patience: 5 * time.Second}
}

func verified(t *testing.T, o Options) *Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := Verify(ctx, o, nil)
	require.NoError(t, err)
	return r
}

// TestPlantedFaults: each lie is found, for what it is. Two lists of kinds: those that it must show as, and those that may
// come with it, depending on who was looking at the time.
func TestPlantedFaults(t *testing.T) {
	type kinds []history.Kind
	for _, k := range []struct {
		what         string
		lie          func(t *testing.T) liar.Lie
		transactions bool
		must, may    kinds
	}{
		{"the truth", func(*testing.T) liar.Lie { return nil }, false, nil, nil},
		{"the truth about transactions", func(*testing.T) liar.Lie { return nil }, true, nil, nil},
		{"acknowledges what it doesn't append", func(*testing.T) liar.Lie { return liar.LosesOne(20) }, false, kinds{history.Lost, history.Changed}, kinds{history.Stale}},
		{"appends twice", func(*testing.T) liar.Lie { return liar.AppendsTwice(20) }, false, kinds{history.Duplicate, history.Misplaced}, nil},
		{"turns records around", func(*testing.T) liar.Lie { return liar.Reverses(20) }, false, kinds{history.Reordered, history.Misplaced}, nil},
		{"tells a wrong offset", func(*testing.T) liar.Lie { return liar.TellsWrongOffset(20) }, false, kinds{history.Misplaced, history.Changed}, kinds{history.Stale}},
		{"writes its own", func(*testing.T) liar.Lie { return liar.WritesItsOwn(20) }, false, kinds{history.Foreign}, nil},
		{"shows what fails", func(*testing.T) liar.Lie { return liar.ShowsWhatFails(20) }, false, kinds{history.Changed}, kinds{history.Hole}},
		{"shows too early", func(*testing.T) liar.Lie { return liar.ShowsTooEarly(5) }, false, kinds{history.Uncommitted, history.Stale}, nil},
		{"changes a value", func(*testing.T) liar.Lie { return liar.ChangesValue() }, false, kinds{history.Corrupt, history.Changed}, nil},
		{"skips a batch", func(*testing.T) liar.Lie { return liar.Skips() }, false, kinds{history.Gap}, kinds{history.Lost}},
		{"tells an old end", func(*testing.T) liar.Lie { return liar.TellsOldEnd(4) }, false, kinds{history.Stale}, nil},
		{"hides aborts", func(*testing.T) liar.Lie { return liar.HidesAborts() }, true, kinds{history.Aborted}, nil},
		{"shows open transactions", func(*testing.T) liar.Lie { return liar.ReadsUncommitted() }, true, kinds{history.Dirty, history.Aborted}, nil},
		{"aborts a commit", func(*testing.T) liar.Lie { return liar.Turns(true, 5) }, true, kinds{history.Lost}, kinds{history.Gap}},
		{"commits an abort", func(*testing.T) liar.Lie { return liar.Turns(false, 5) }, true, kinds{history.Aborted}, nil},
		{"fails over to who lags", func(t *testing.T) liar.Lie { return failsOver(t, 20, 40) }, false, kinds{history.Lost, history.Changed}, kinds{history.Stale, history.Vanished, history.Backwards}},
		{"asks a zombie", func(t *testing.T) liar.Lie { return zombie(t) }, false, kinds{history.Stale}, nil},
	} {
		t.Run(k.what, func(t *testing.T) {
			t.Parallel()
			o := one(front(t, k.lie(t)))
			o.Transactions = k.transactions
			r := verified(t, o)
			found := slices.Collect(maps.Keys(r.Counts))
			about := fmt.Sprintf("%v\n%v\n%v", r.Counts, r.Faults[:min(len(r.Faults), 5)], r.Complaints)
			for _, kind := range k.must {
				assert.Contains(t, found, kind, about)
			}
			for _, kind := range found {
				assert.Contains(t, append(k.must, k.may...), kind, about)
			}
			assert.Equal(t, len(k.must) == 0, r.OK)
			assert.Empty(t, r.Unread)
			assert.Positive(t, r.Acknowledged)
		})
	}
}

func failsOver(t *testing.T, lagAt, failAt int) liar.Lie {
	pair := liar.FailsOver(testbroker.Start(t).Addr(), lagAt, failAt)
	t.Cleanup(pair.Close)
	return pair.Lie
}

func zombie(t *testing.T) liar.Lie {
	pair := liar.AsksZombie(testbroker.Start(t).Addr(), 40)
	t.Cleanup(pair.Close)
	return pair.Lie
}
