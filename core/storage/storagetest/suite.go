// Package storagetest is the suite for implementations of package storage: [Run] for a test, [RunBenchmarks] for a
// benchmark, [FuzzOperations] for a native fuzzer. The sub-tests are named by the clauses of the contract.
//
// It works on real files in temporary directories, and needs nothing of an implementation but the contract.
package storagetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// Harness says how to make the implementation under test.
type Harness struct {
	// New makes a storage with the options to be tested. The suite starts and stops it.
	New func() (storage.Storage, error)
}

// T is the part of *testing.T that the suite uses.
type T interface {
	rapid.TB
	TempDir() string
	Cleanup(func())
}

// Clause is one check of the suite.
type Clause struct {
	// Name begins with the number of the clause in the contract.
	Name string
	// Check fails t where the implementation breaks the clause.
	Check func(t T, h Harness)
}

// Clauses lists all checks of the suite that this system can make.
func Clauses() []Clause {
	var all []Clause
	all = append(all, openingClauses()...)
	all = append(all, appendClauses()...)
	all = append(all, viewClauses()...)
	all = append(all, readClauses()...)
	all = append(all, writeToClauses()...)
	all = append(all, endingClauses()...)
	all = append(all, damageClauses()...)
	all = append(all, systemClauses()...)
	all = append(all, concurrencyClauses()...)
	all = append(all, Clause{"all: random operations against a model", checkModel})
	return all
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	for _, c := range Clauses() {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, h) })
	}
}

// defaultCapacity holds everything that the checks append where the capacity isn't their subject.
const defaultCapacity = 4 << 20

// start gives a running storage, stopped when the check ends.
func (h Harness) start(t T) storage.Storage {
	t.Helper()
	s, err := h.New()
	require.NoError(t, err)
	require.NoError(t, s.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

// create gives a new segment in a directory of its own, closed when the check ends, and its path.
func (h Harness) create(t T, o storage.Options) (storage.Segment, string) {
	t.Helper()
	if o.Capacity == 0 {
		o.Capacity = defaultCapacity
	}
	path := filepath.Join(t.TempDir(), "00000000000000000000.log")
	g, err := h.start(t).Create(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return g, path
}

// pattern is n bytes that are nowhere zero and differ from those at other seeds and positions.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((seed*131+i*7+i>>8*13)%255) + 1
	}
	return b
}

// sizes are lengths at which implementations change their ways: around nothing, a page, and a buffer.
func sizes() []int {
	return []int{0, 1, 61, 1000, 4095, 4096, 4097, 65535, 65536, 65537, 300_000}
}

func mustAppend(t T, g storage.Segment, b []byte) {
	t.Helper()
	before := g.Size()
	pos, err := g.Append(b)
	require.NoError(t, err)
	require.Equal(t, before, pos, "position of the append")
	require.Equal(t, before+int64(len(b)), g.Size(), "size after the append")
}

func mustView(t T, g storage.Segment, pos, n int64) storage.View {
	t.Helper()
	v, err := g.View(pos, n)
	require.NoError(t, err)
	require.Equal(t, n, v.Len())
	return v
}

// requireContent checks the whole segment by ReadAt and by a view.
func requireContent(t T, g storage.Segment, want []byte) {
	t.Helper()
	require.Equal(t, int64(len(want)), g.Size())
	got := make([]byte, len(want))
	if len(want) > 0 {
		n, err := g.ReadAt(got, 0)
		require.NoError(t, err)
		require.Equal(t, len(want), n)
	}
	requireSame(t, want, got, "ReadAt")
	v := mustView(t, g, 0, int64(len(want)))
	defer v.Release()
	requireViewed(t, v, want)
}

// requireViewed checks every way out of a view but that through a connection.
func requireViewed(t T, v storage.View, want []byte) {
	t.Helper()
	require.Equal(t, int64(len(want)), v.Len())
	got, err := v.Bytes(nil)
	require.NoError(t, err)
	requireSame(t, want, got, "Bytes")
	var w collector
	n, err := v.WriteTo(&w)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), n)
	requireSame(t, want, w.b, "WriteTo")
	if m := v.Mapped(); m != nil {
		requireSame(t, want, m, "Mapped")
	}
}

// requireSame compares without printing megabytes.
func requireSame(t T, want, got []byte, what string) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: got %d bytes, want %d", what, len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("%s: byte %d of %d is %#x, want %#x", what, i, len(want), got[i], want[i])
		}
	}
}

// requireFile checks the file as another process sees it: the content, then nothing, or zeros when a tail is allowed.
func requireFile(t T, path string, want []byte, tail bool) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	if n := info.Size(); n < int64(len(want)) || !tail && n > int64(len(want)) {
		t.Fatalf("the file has %d bytes, want %d", n, len(want))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	requireSame(t, want, got[:len(want)], "file")
	for i, b := range got[len(want):] {
		if b != 0 {
			t.Fatalf("byte %d beyond the end of the segment is %#x, want nothing or a zero", i, b)
		}
	}
}

// collector is an io.Writer that is nothing else.
type collector struct{ b []byte }

func (c *collector) Write(p []byte) (int, error) {
	c.b = append(c.b, p...)
	return len(p), nil
}
