// Package partitionertest is the suite that every partitioner passes, in this repository or another:
//
//	func TestSuite(t *testing.T) {
//		partitionertest.Run(t, func(t *testing.T) partitioner.Partitioner { return mypartitioner.New() })
//	}
//
// Its sub-tests are named by the clauses of core/partitioner.
package partitionertest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// TB is what the suite needs of a *testing.T; the suite's own tests give it another to see it fail.
type TB interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// A Clause is one sub-test of the suite.
type Clause struct {
	Name  string
	Check func(t TB, make func() partitioner.Partitioner)
}

// Run starts a partitioner made by make for each clause and checks it.
func Run(t *testing.T, make func(t *testing.T) partitioner.Partitioner) {
	for _, c := range Clauses() {
		t.Run(c.Name, func(t *testing.T) {
			c.Check(t, func() partitioner.Partitioner { return make(t) })
		})
	}
}

// Clauses lists the sub-tests.
func Clauses() []Clause {
	return []Clause{
		{"1.1 answers are in range and one for each record", checkRange},
		{"1.2 equal keys meet", checkKeyed},
		{"1.2 another instance agrees", checkInstances},
		{"1.2 availability doesn't move a key", checkKeyedUnavailable},
		{"1.3 records without a key go where a leader is", checkUnkeyed},
		{"1.4 nothing is changed or kept", checkUntouched},
		{"1.5 no partitions is an error", checkNoPartitions},
		{"many goroutines at once", checkConcurrent},
		{"life cycle", checkLifeCycle},
	}
}

func started(t TB, make func() partitioner.Partitioner) partitioner.Partitioner {
	t.Helper()
	p := make()
	require.NoError(t, p.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	return p
}

// batch makes records of every kind: keys of many lengths, empty and absent ones, tombstones, headers.
func batch(r *rand.Rand, partitions int32, n int) *partitioner.Batch {
	b := &partitioner.Batch{Topic: "orders", Partitions: partitions}
	for i := range partitions {
		b.Available = append(b.Available, i)
	}
	for i := range n {
		rec := partitioner.Record{Value: fmt.Appendf(nil, "value %d", i)}
		switch i % 5 {
		case 0:
		case 1:
			rec.Key = []byte{}
		case 2:
			rec.Value = nil
			fallthrough
		default:
			rec.Key = make([]byte, 1+r.IntN(40))
			for j := range rec.Key {
				rec.Key[j] = byte(r.Uint32())
			}
		}
		if i%7 == 0 {
			rec.Headers = []partitioner.Header{{Key: "region", Value: []byte("eu")}, {Key: "empty"}}
		}
		b.Records = append(b.Records, rec)
	}
	return b
}

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func partition(t TB, p partitioner.Partitioner, b *partitioner.Batch) []int32 {
	t.Helper()
	got, err := p.Partition(context.Background(), nil, b)
	require.NoError(t, err)
	require.Len(t, got, len(b.Records))
	for i, at := range got {
		require.True(t, at >= 0 && at < b.Partitions, "record %d: partition %d of %d", i, at, b.Partitions)
	}
	return got
}

func checkRange(t TB, make func() partitioner.Partitioner) {
	p, r := started(t, make), random()
	for _, partitions := range []int32{1, 2, 3, 7, 50, 10000} {
		partition(t, p, batch(r, partitions, 500))
	}
	got, err := p.Partition(context.Background(), []int32{-7, 9}, batch(r, 3, 4))
	require.NoError(t, err)
	require.Len(t, got, 6)
	require.Equal(t, []int32{-7, 9}, got[:2], "what was in dst before")
	require.Empty(t, partition(t, p, batch(r, 3, 0)))
}

func checkKeyed(t TB, make func() partitioner.Partitioner) {
	p := started(t, make)
	require.Equal(t, p.Keyed(), p.Keyed())
	if !p.Keyed() {
		return
	}
	b := batch(random(), 12, 300)
	first := partition(t, p, b)
	slices.Reverse(b.Records)
	second := partition(t, p, b)
	slices.Reverse(second)
	for i := range first {
		if partitioner.HasKey(p, b.Records[len(first)-1-i].Key) {
			require.Equal(t, first[i], second[i], "record %d", i)
		}
	}
}

func checkInstances(t TB, make func() partitioner.Partitioner) {
	a, b := started(t, make), started(t, make)
	if !a.Keyed() {
		return
	}
	partition(t, a, batch(random(), 5, 77)) // a has a past, b has none
	records := batch(random(), 12, 300)
	fromA, fromB := partition(t, a, records), partition(t, b, records)
	for i := range records.Records {
		if partitioner.HasKey(a, records.Records[i].Key) {
			require.Equal(t, fromA[i], fromB[i], "record %d", i)
		}
	}
}

func checkKeyedUnavailable(t TB, make func() partitioner.Partitioner) {
	p := started(t, make)
	if !p.Keyed() {
		return
	}
	b := batch(random(), 12, 300)
	before := partition(t, p, b)
	b.Available = []int32{4}
	after := partition(t, p, b)
	for i := range b.Records {
		if partitioner.HasKey(p, b.Records[i].Key) {
			require.Equal(t, before[i], after[i], "record %d", i)
		}
	}
}

func checkUnkeyed(t TB, make func() partitioner.Partitioner) {
	p := started(t, make)
	for range 20 {
		b := batch(random(), 12, 60)
		b.Available = []int32{3, 11}
		for i, at := range partition(t, p, b) {
			if !partitioner.Fixed(p, b.Records[i].Key) {
				require.Contains(t, b.Available, at, "record %d", i)
			}
		}
		b.Available = nil // nothing is known: anywhere will do, clause 1.1 holds
		partition(t, p, b)
	}
}

func checkUntouched(t TB, make func() partitioner.Partitioner) {
	p := started(t, make)
	b, same := batch(random(), 12, 100), batch(random(), 12, 100)
	first := partition(t, p, b)
	require.Equal(t, same, b, "the batch was changed")
	for i := range b.Records {
		b.Records[i].Key = bytes.Repeat([]byte{'x'}, len(b.Records[i].Key))
	}
	kept := slices.Clone(first)
	partition(t, p, b)
	require.Equal(t, kept, first, "an earlier answer was changed")
}

func checkNoPartitions(t TB, make func() partitioner.Partitioner) {
	p := started(t, make)
	for _, n := range []int32{0, -1} {
		b := batch(random(), 3, 10)
		b.Partitions, b.Available = n, nil
		got, err := p.Partition(context.Background(), []int32{5}, b)
		require.ErrorIs(t, err, partitioner.ErrInvalid)
		require.Equal(t, []int32{5}, got)
	}
}

func checkConcurrent(t TB, make func() partitioner.Partitioner) {
	p := started(t, make)
	want := partition(t, p, batch(random(), 12, 200))
	results := [8][]int32{}
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			for range 50 {
				results[i], _ = p.Partition(context.Background(), results[i][:0], batch(random(), 12, 200))
			}
		})
	}
	wg.Wait()
	records := batch(random(), 12, 200).Records
	for _, got := range results {
		require.Len(t, got, len(want))
		for i := range got {
			require.True(t, got[i] >= 0 && got[i] < 12)
			if partitioner.HasKey(p, records[i].Key) {
				require.Equal(t, want[i], got[i])
			}
		}
	}
}

func checkLifeCycle(t TB, make func() partitioner.Partitioner) {
	ctx := context.Background()
	p := make()
	require.NoError(t, p.Stop(ctx), "stop, never started")
	p = make()
	require.NoError(t, p.Start(ctx))
	require.NoError(t, p.Stop(ctx))
	require.NoError(t, p.Stop(ctx), "stop twice")
}
