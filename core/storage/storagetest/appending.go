package storagetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func appendClauses() []Clause {
	return []Clause{
		{"3.1 appended bytes are seen by views, reads and other processes", checkAppendVisible},
		{"3.2 an append that doesn't fit changes nothing", checkAppendFull},
		{"3.3 the bytes stay the caller's", checkAppendKeepsNothing},
		{"3.4 appends to a sealed or closed segment", checkAppendRefused},
		{"3.5 an append allocates nothing", checkAppendAllocations},
	}
}

func checkAppendVisible(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	var want []byte
	for round := range 3 {
		for i, n := range sizes() {
			b := pattern(round*20+i, n)
			mustAppend(t, g, b)
			v := mustView(t, g, int64(len(want)), int64(n))
			requireViewed(t, v, b)
			v.Release()
			want = append(want, b...)
		}
		requireContent(t, g, want)
		requireFile(t, path, want, true)
	}
}

func checkAppendFull(t T, h Harness) {
	// Capacities that end within a page, so that rounding up would show.
	for _, capacity := range []int64{0, 1, 4095, 4097, 100_001} {
		g, path := h.create(t, storage.Options{Capacity: max(capacity, 1)})
		want := pattern(int(capacity), int(max(capacity, 1))-1)
		mustAppend(t, g, want)
		for _, over := range []int{2, 5000, 200_000} {
			_, err := g.Append(pattern(9, over))
			require.ErrorIs(t, err, storage.ErrFull)
			requireContent(t, g, want)
		}
		_, err := g.View(0, int64(len(want))+1)
		require.ErrorIs(t, err, storage.ErrRange)
		requireFile(t, path, want, true)
		mustAppend(t, g, []byte{7}) // what fits still does
		want = append(want, 7)
		requireContent(t, g, want)
		require.NoError(t, g.Close())
		requireFile(t, path, want, false)
	}
}

func checkAppendKeepsNothing(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	var want []byte
	for i, n := range sizes() {
		b := pattern(i, n)
		want = append(want, b...)
		mustAppend(t, g, b)
		clear(b)
	}
	requireContent(t, g, want)
	require.NoError(t, g.Close())
	requireFile(t, path, want, false)
}

func checkAppendRefused(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	want := pattern(1, 5000)
	mustAppend(t, g, want)
	require.NoError(t, g.Seal())
	_, err := g.Append([]byte("x"))
	require.ErrorIs(t, err, storage.ErrSealed)
	requireContent(t, g, want)
	require.NoError(t, g.Close())
	_, err = g.Append([]byte("x"))
	require.ErrorIs(t, err, storage.ErrClosed)
	requireFile(t, path, want, false)
}

func checkAppendAllocations(t T, h Harness) {
	for _, n := range []int{100, 64 << 10} {
		g, _ := h.create(t, storage.Options{Capacity: 32 << 20})
		b := pattern(1, n)
		mustAppend(t, g, b) // the first may map and allocate
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := g.Append(b); err != nil {
				t.Fatalf("append: %v", err)
			}
		})
		require.Zero(t, allocations, "allocations of an append of %d bytes", n)
	}
}
