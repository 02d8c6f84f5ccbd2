package verify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

func TestPace(t *testing.T) {
	begin := time.Unix(1000, 0)
	p := &pace{rate: 100, most: 5}
	var waits []time.Duration
	for range 5 {
		wait, ok := p.next(begin)
		require.True(t, ok)
		waits = append(waits, wait)
	}
	const ms = time.Millisecond
	require.Equal(t, []time.Duration{-20 * ms, -10 * ms, 0, 10 * ms, 20 * ms}, waits)
	_, ok := p.next(begin)
	require.False(t, ok, "that were all")

	p = &pace{until: begin}
	wait, ok := p.next(begin)
	require.True(t, ok)
	require.Zero(t, wait)
	_, ok = p.next(begin.Add(1))
	require.False(t, ok, "the time is over")
}

func TestOptionsAreChecked(t *testing.T) {
	require.NoError(t, Options{Bootstrap: []string{"x:1"}}.Check())
	err := Options{Records: -1, RecordSize: 5, Producers: 5000, Tolerate: []history.Kind{"lostt"}}.Check()
	for _, want := range []string{"no broker", "records: -1", "record size", "producers: at most 1000", `"lostt"; there are [lost `} {
		require.ErrorContains(t, err, want)
	}
}

func TestSilence(t *testing.T) {
	b := newBook(1)
	const ms = time.Millisecond
	b.pages[0].Writes = [][]history.Write{{
		{Sent: 0, Told: 10 * ms, Acknowledged: true}, {Sent: 20 * ms, Told: 90 * ms, Acknowledged: true}, {Sent: 500 * ms}, {Sent: 25 * ms, Told: 120 * ms, Acknowledged: true},
	}}
	longest, partition, from := b.silence()
	require.Equal(t, 70*ms, longest, "nothing was outstanding before")
	require.Zero(t, partition)
	require.Equal(t, 20*ms, from)
}
