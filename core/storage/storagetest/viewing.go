package storagetest

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func viewClauses() []Clause {
	return []Clause{
		{"4.1 a view outside of the segment is refused", checkViewRange},
		{"4.1 every range within gives its bytes", checkViewParts},
		{"4.2 views outlive seal, rename, remove and close", checkViewOutlives},
		{"4.3 truncation below a view is no crash", checkViewTruncated},
		{"4.4 a view is one allocation at most", checkViewAllocations},
		{"4.5 slices are views of their own", checkSlices},
		{"4.6 bytes uses the scratch that is large enough", checkScratch},
	}
}

func readClauses() []Clause {
	return []Clause{
		{"5.1 reads at and around the end", checkReadAt},
	}
}

func checkViewRange(t T, h Harness) {
	g, _ := h.create(t, storage.Options{})
	for _, size := range []int64{0, 5000, 100_000} {
		mustAppend(t, g, pattern(1, int(size-g.Size())))
		for _, r := range [][2]int64{
			{-1, 1}, {0, -1}, {0, size + 1}, {size, 1}, {size + 1, 0}, {1, size}, {size, -1}, {-1, 0}, {-5, 10},
			{math.MaxInt64, 1}, {1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64}, {math.MinInt64, math.MaxInt64}, {math.MinInt64, math.MinInt64},
		} {
			_, err := g.View(r[0], r[1])
			require.ErrorIs(t, err, storage.ErrRange, "view %v of %d", r, size)
		}
		v := mustView(t, g, size, 0)
		requireViewed(t, v, nil)
		v.Release()
	}
	require.NoError(t, g.Close())
	_, err := g.View(0, 1)
	require.ErrorIs(t, err, storage.ErrClosed)
	_, err = g.View(0, 0)
	require.ErrorIs(t, err, storage.ErrClosed)
}

func checkViewParts(t T, h Harness) {
	g, _ := h.create(t, storage.Options{})
	want := pattern(1, 150_000)
	mustAppend(t, g, want)
	check := func() {
		for _, pos := range []int{0, 1, 4095, 4096, 65_000, 149_999} {
			for _, n := range []int{0, 1, 61, 4096, 70_000, 150_000} {
				if pos+n > len(want) {
					continue
				}
				v := mustView(t, g, int64(pos), int64(n))
				requireViewed(t, v, want[pos:pos+n])
				v.Release()
			}
		}
	}
	check()
	require.NoError(t, g.Seal())
	check()
}

func checkViewOutlives(t T, h Harness) {
	ends := map[string]func(g storage.Segment, path string) error{
		"seal":   func(g storage.Segment, _ string) error { return g.Seal() },
		"rename": func(g storage.Segment, path string) error { return g.Rename(path + ".deleted") },
		"remove": func(g storage.Segment, _ string) error { return g.Remove() },
		"close":  func(g storage.Segment, _ string) error { return g.Close() },
		"close and remove": func(g storage.Segment, _ string) error {
			if err := g.Close(); err != nil {
				return err
			}
			return g.Remove()
		},
	}
	for name, end := range ends {
		for _, sealed := range []bool{false, true} {
			g, path := h.create(t, storage.Options{})
			want := pattern(len(name), 100_000)
			mustAppend(t, g, want)
			if sealed {
				require.NoError(t, g.Seal())
			}
			v, small := mustView(t, g, 0, 100_000), mustView(t, g, 99_990, 10)
			part, err := v.Slice(5000, 80_000)
			require.NoError(t, err)
			require.NoError(t, end(g, path), name)
			requireViewed(t, v, want)
			requireViewed(t, small, want[99_990:])
			late, err := v.Slice(1, 9)
			require.NoError(t, err, "slice after %s", name)
			v.Release()
			small.Release()
			requireViewed(t, late, want[1:10])
			late.Release()
			requireViewed(t, part, want[5000:85_000])
			requireSent(t, part, want[5000:85_000])
			part.Release()
		}
	}
}

func checkViewTruncated(t T, h Harness) {
	for _, sealed := range []bool{false, true} {
		g, _ := h.create(t, storage.Options{})
		want := pattern(1, 200_000)
		mustAppend(t, g, want)
		if sealed {
			require.NoError(t, g.Seal())
		}
		v := mustView(t, g, 0, 200_000)
		whole := mustView(t, g, 0, 1000)
		require.NoError(t, g.Truncate(1000))
		if _, err := v.Bytes(nil); err != nil {
			require.ErrorIs(t, err, storage.ErrFault)
		}
		if _, err := v.WriteTo(&collector{}); err != nil {
			require.ErrorIs(t, err, storage.ErrFault)
		}
		sendAnyway(t, v)
		requireViewed(t, whole, want[:1000])
		v.Release()
		whole.Release()
		requireContent(t, g, want[:1000])
	}
}

func checkViewAllocations(t T, h Harness) {
	g, _ := h.create(t, storage.Options{})
	mustAppend(t, g, pattern(1, 100_000))
	if raceEnabled {
		return // pools drop what they hold at random then
	}
	allocations := testing.AllocsPerRun(1000, func() {
		v, err := g.View(100, 50_000)
		if err != nil {
			t.Fatalf("view: %v", err)
		}
		v.Release()
	})
	require.LessOrEqual(t, allocations, 1.0, "allocations of a view")
}

func checkSlices(t T, h Harness) {
	g, _ := h.create(t, storage.Options{})
	want := pattern(1, 100_000)
	mustAppend(t, g, want)
	v := mustView(t, g, 10_000, 50_000)
	for _, r := range [][2]int64{{-1, 1}, {0, -1}, {0, 50_001}, {50_000, 1}, {50_001, 0}, {math.MaxInt64, 1}, {1, math.MaxInt64}} {
		_, err := v.Slice(r[0], r[1])
		require.ErrorIs(t, err, storage.ErrRange, "slice %v", r)
	}
	empty, err := v.Slice(50_000, 0)
	require.NoError(t, err)
	requireViewed(t, empty, nil)
	empty.Release()
	part, err := v.Slice(1000, 40_000)
	require.NoError(t, err)
	inner, err := part.Slice(39_999, 1)
	require.NoError(t, err)
	requireViewed(t, v, want[10_000:60_000])
	v.Release()
	requireViewed(t, part, want[11_000:51_000])
	part.Release()
	requireViewed(t, inner, want[50_999:51_000])
	inner.Release()
}

func checkScratch(t T, h Harness) {
	g, path := h.create(t, storage.Options{})
	want := pattern(1, 10_000)
	mustAppend(t, g, want)
	v := mustView(t, g, 0, 10_000)
	defer v.Release()
	for _, room := range []int{0, 100, 9999, 10_000, 20_000} {
		scratch := make([]byte, room)
		got, err := v.Bytes(scratch[:room/2])
		require.NoError(t, err)
		requireSame(t, want, got, "Bytes")
	}
	// What was handed out stays what it is.
	got, err := v.Bytes(nil)
	require.NoError(t, err)
	mustAppend(t, g, pattern(2, 10_000))
	require.NoError(t, g.Truncate(0))
	mustAppend(t, g, pattern(3, 10_000))
	require.NoError(t, os.Truncate(path, 0))
	requireSame(t, want, got, "Bytes after the segment went on")
}

func checkReadAt(t T, h Harness) {
	s := h.start(t)
	g, err := s.Create(filepath.Join(t.TempDir(), "a.log"), storage.Options{Capacity: defaultCapacity})
	require.NoError(t, err)
	b := make([]byte, 10)
	_, err = g.ReadAt(b, 0)
	require.Equal(t, io.EOF, err, "read of an empty segment")

	want := pattern(1, 20_000)
	mustAppend(t, g, want)
	for _, sealed := range []bool{false, true} {
		if sealed {
			require.NoError(t, g.Seal())
		}
		for _, c := range []struct {
			pos  int64
			room int
			n    int
			err  error
		}{
			{0, 20_000, 20_000, nil},
			{0, 0, 0, nil},
			{0, 1, 1, nil},
			{19_999, 1, 1, nil},
			{4000, 200, 200, nil},
			{19_999, 2, 1, io.EOF},
			{19_990, 8000, 10, io.EOF},
			{0, 30_000, 20_000, io.EOF},
			{20_000, 1, 0, io.EOF},
			{20_001, 1, 0, io.EOF},
			{math.MaxInt64, 10, 0, io.EOF},
		} {
			got := make([]byte, c.room)
			n, err := g.ReadAt(got, c.pos)
			require.Equal(t, c.n, n, "bytes read at %d into %d", c.pos, c.room)
			if err != c.err && (err != io.EOF || c.pos+int64(c.n) != 20_000) {
				t.Fatalf("read at %d into %d: %v, want %v", c.pos, c.room, err, c.err)
			}
			if n > 0 {
				requireSame(t, want[c.pos:c.pos+int64(n)], got[:n], "ReadAt")
			}
			requireSame(t, make([]byte, c.room-n), got[n:], "room beyond the end")
		}
		_, err = g.ReadAt(b, -1)
		require.Error(t, err, "read at a negative position")
	}
	require.NoError(t, g.Close())
	_, err = g.ReadAt(b, 0)
	require.ErrorIs(t, err, storage.ErrClosed)
}
