package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func concurrencyClauses() []Clause {
	return []Clause{
		{"3.1 readers see whole appends while one writer appends", checkReadersAndWriter},
		{"11.1 seal, truncation and close amid readers", checkEndsAmidReaders},
	}
}

// stamp is the content of every segment of the concurrent checks: what stands at a position follows from it.
func stamp(b []byte, pos int64) {
	for i := range b {
		p := pos + int64(i)
		b[i] = byte(p%251) + byte(p>>8)%4 + 1
	}
}

// crew is a number of goroutines that work until they are told to stop; the first fault of any is kept.
type crew struct {
	wg   sync.WaitGroup
	stop chan struct{}
	once sync.Once
	err  error
}

func (c *crew) do(work func(r *rand.Rand) error, seed uint64) {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		r := rand.New(rand.NewPCG(seed, 1))
		for {
			select {
			case <-c.stop:
				return
			default:
			}
			if err := work(r); err != nil {
				c.once.Do(func() { c.err = err })
				return
			}
		}
	}()
}

func (c *crew) end(t T) {
	t.Helper()
	close(c.stop)
	c.wg.Wait()
	require.NoError(t, c.err)
}

// readSome reads a random part of what the segment says it has, one way or another.
func readSome(g storage.Segment, r *rand.Rand) error {
	size := g.Size()
	if size == 0 {
		return nil
	}
	pos := r.Int64N(size)
	n := min(size-pos, r.Int64N(20_000))
	want := make([]byte, n)
	stamp(want, pos)
	got := make([]byte, n)
	if r.IntN(3) == 0 {
		if m, err := g.ReadAt(got, pos); err != nil && (err != io.EOF || m < len(got)) {
			return err
		}
	} else {
		v, err := g.View(pos, n)
		if err != nil {
			return err
		}
		defer v.Release()
		if r.IntN(2) == 0 {
			if got, err = v.Bytes(got); err != nil {
				return err
			}
		} else {
			var w collector
			if _, err := v.WriteTo(&w); err != nil {
				return err
			}
			got = w.b
		}
	}
	if !bytes.Equal(want, got) {
		return fmt.Errorf("%d bytes at %d of %d aren't what was appended", n, pos, size)
	}
	return nil
}

func checkReadersAndWriter(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	c := &crew{stop: make(chan struct{})}
	for i := range 4 {
		c.do(func(r *rand.Rand) error { return readSome(g, r) }, uint64(i))
	}
	c.do(func(*rand.Rand) error {
		time.Sleep(time.Millisecond)
		return g.Sync()
	}, 9)
	r := rand.New(rand.NewPCG(7, 7))
	var size int64
	for size < defaultCapacity-100_000 {
		b := make([]byte, []int{1, 61, 500, 3000, 5000, 70_000}[r.IntN(6)])
		stamp(b, size)
		mustAppend(t, g, b)
		size += int64(len(b))
	}
	require.NoError(t, g.Seal())
	c.end(t)
	want := make([]byte, size)
	stamp(want, 0)
	requireContent(t, g, want)
	require.NoError(t, g.Close())
	requireFile(t, path, want, false)
}

func checkEndsAmidReaders(t T, h Harness) {
	for round := range 8 {
		g, _ := h.create(t, storage.Options{})
		c := &crew{stop: make(chan struct{})}
		for i := range 4 {
			c.do(func(r *rand.Rand) error {
				err := readSome(g, r)
				switch {
				case errors.Is(err, storage.ErrClosed):
					return nil
				case errors.Is(err, storage.ErrRange), errors.Is(err, storage.ErrFault), err == io.EOF:
					return nil // truncated between Size and here
				}
				return err
			}, uint64(i))
		}
		r := rand.New(rand.NewPCG(uint64(round), 7))
		var size int64
		for range 300 {
			b := make([]byte, []int{61, 500, 5000}[r.IntN(3)])
			stamp(b, size)
			mustAppend(t, g, b)
			size += int64(len(b))
		}
		require.NoError(t, g.Seal())
		if round%2 == 0 {
			require.NoError(t, g.Close())
		} else {
			require.NoError(t, g.Remove())
		}
		c.end(t)
		requireClosed(t, g)
	}

	// Truncation: what a view shows of the cut part is undefined, so only crashes and wrong answers above count.
	g, _ := h.create(t, storage.Options{})
	c := &crew{stop: make(chan struct{})}
	for i := range 4 {
		c.do(func(r *rand.Rand) error { _ = readSome(g, r); return nil }, uint64(i))
	}
	r := rand.New(rand.NewPCG(3, 7))
	for range 200 {
		b := make([]byte, []int{61, 3000, 50_000}[r.IntN(3)])
		stamp(b, g.Size())
		mustAppend(t, g, b)
		if r.IntN(2) == 0 {
			require.NoError(t, g.Truncate(r.Int64N(g.Size()+1)))
		}
	}
	c.end(t)
	want := make([]byte, g.Size())
	stamp(want, 0)
	requireContent(t, g, want)
}
