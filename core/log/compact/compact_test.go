package compact_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/log/compact"
	"github.com/barnabas-mq/barnabas/core/record"
)

func TestOffsetMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := compact.NewOffsetMap(rapid.Int64Range(0, 2000).Draw(t, "memory"), rapid.Float64Range(0.1, 1).Draw(t, "load"), rapid.Int64Range(0, 100).Draw(t, "keys"))
		want := map[string]int64{}
		for i := range int64(rapid.IntRange(0, 200).Draw(t, "puts")) {
			key := fmt.Sprint("k", rapid.IntRange(0, 90).Draw(t, "key"))
			_, known := want[key]
			if ok := m.Put([]byte(key), i); ok != (known || len(want) < m.Limit()) {
				t.Fatalf("put %q: %v with %d of %d keys", key, ok, len(want), m.Limit())
			} else if ok {
				want[key] = i
			}
		}
		if m.Len() != len(want) {
			t.Fatalf("%d keys, want %d", m.Len(), len(want))
		}
		for i := range 100 {
			key := fmt.Sprint("k", i)
			offset, known := want[key]
			if !known {
				offset = -1
			}
			if got := m.Get([]byte(key)); got != offset {
				t.Fatalf("%q is at %d, want %d", key, got, offset)
			}
		}
	})
}

func TestOffsetMapSize(t *testing.T) {
	require.Equal(t, 900, compact.NewOffsetMap(24_000, 0.9, math.MaxInt64).Limit())
	require.Equal(t, 900, compact.NewOffsetMap(24_000, 0, math.MaxInt64).Limit(), "the default")
	require.Equal(t, 999, compact.NewOffsetMap(24_000, 1, math.MaxInt64).Limit())
	require.Equal(t, 1, compact.NewOffsetMap(0, 0.9, 5).Limit())
	for keys := range int64(1000) {
		require.GreaterOrEqual(t, compact.NewOffsetMap(1<<30, 0.9, keys).Limit(), int(keys))
		require.LessOrEqual(t, compact.NewOffsetMap(1<<30, 0.9, keys).Limit(), int(keys)+2)
	}
	m := compact.NewOffsetMap(1000, 0.9, 10)
	key := bytes.Repeat([]byte{1}, 1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Put(key, 1); m.Get(key) }))
}

func TestGroup(t *testing.T) {
	s := func(base, next, bytes int64, entries int) compact.Segment {
		return compact.Segment{Base: base, Next: next, Bytes: bytes, IndexEntries: entries}
	}
	limits := compact.Limits{Bytes: 100, IndexEntries: 10}
	for name, tc := range map[string]struct {
		segments []compact.Segment
		want     []int
	}{
		"none":           {nil, nil},
		"one":            {[]compact.Segment{s(0, 10, 500, 50)}, []int{1}},
		"bytes":          {[]compact.Segment{s(0, 1, 50, 0), s(1, 2, 50, 0), s(2, 3, 1, 0)}, []int{2, 1}},
		"index":          {[]compact.Segment{s(0, 1, 1, 5), s(1, 2, 1, 6), s(2, 3, 1, 4)}, []int{1, 2}},
		"a large one":    {[]compact.Segment{s(0, 1, 1, 1), s(1, 2, 500, 1), s(2, 3, 1, 1)}, []int{1, 1, 1}},
		"offsets":        {[]compact.Segment{s(0, 5, 1, 1), s(5, math.MaxInt32+1, 1, 1), s(math.MaxInt32+1, math.MaxInt32+2, 1, 1)}, []int{2, 1}},
		"offsets, empty": {[]compact.Segment{s(0, 5, 0, 0), s(math.MaxInt32, math.MaxInt32+2, 1, 1)}, []int{1, 1}},
	} {
		require.Equal(t, tc.want, compact.Group(tc.segments, limits), name)
	}
}

// keyed builds a batch of records with these keys and values; "" is none.
func keyed(t testing.TB, o record.Options, pairs ...[2]string) record.Batch {
	t.Helper()
	b := record.NewBuilder(o)
	for i, p := range pairs {
		r := record.Record{Offset: o.BaseOffset + int64(i), Timestamp: 1000 + int64(i)}
		if p[0] != "" {
			r.Key = []byte(p[0])
		}
		if p[1] != "" {
			r.Value = []byte(p[1])
		}
		require.NoError(t, b.Append(r))
	}
	out, err := b.Build(nil, codecs{})
	require.NoError(t, err)
	return out
}

// codecs has one codec, which only turns bytes around.
type codecs struct{}

func (codecs) Compress(c record.Codec, _ int, dst, src []byte) ([]byte, error) {
	for _, b := range src {
		dst = append(dst, ^b)
	}
	return dst, nil
}

func (codecs) Decompress(c record.Codec, dst, src []byte, limit int) ([]byte, error) {
	if len(src) > limit {
		return dst, errors.New("too much")
	}
	return codecs{}.Compress(c, 0, dst, src)
}

func keys(t testing.TB, from int64, batches ...record.Batch) *compact.OffsetMap {
	t.Helper()
	m := compact.NewOffsetMap(10_000, 0, 100)
	x := compact.NewIndexer(m, from, nil, codecs{})
	for _, b := range batches {
		more, err := x.Batch(b)
		require.NoError(t, err)
		require.True(t, more)
	}
	return m
}

func TestIndexer(t *testing.T) {
	a := keyed(t, record.Options{BaseOffset: 10}, [2]string{"a", "1"}, [2]string{"b", "1"}, [2]string{"", "1"}, [2]string{"a", ""})
	m := keys(t, 11, a)
	require.EqualValues(t, 13, m.Get([]byte("a")))
	require.EqualValues(t, 11, m.Get([]byte("b")))
	require.EqualValues(t, -1, m.Get(nil))
	require.Equal(t, 2, m.Len())

	m = compact.NewOffsetMap(0, 0, 1)
	x := compact.NewIndexer(m, 5, nil, codecs{})
	require.EqualValues(t, 5, x.To())
	more, err := x.Batch(a)
	require.NoError(t, err)
	require.False(t, more)
	require.EqualValues(t, 11, x.To(), "up to the record that didn't fit")

	// Keys of aborted transactions count for nothing, also when the transaction began before.
	txn := record.Options{BaseOffset: 20, Producer: &record.Producer{ID: 1}, Transactional: true}
	m = compact.NewOffsetMap(1000, 0, 10)
	x = compact.NewIndexer(m, 20, []compact.Aborted{{ProducerID: 1, First: 3, Marker: 21}}, codecs{})
	_, err = x.Batch(keyed(t, txn, [2]string{"a", "1"}))
	require.NoError(t, err)
	require.Zero(t, m.Len())
	require.EqualValues(t, 21, x.To())
}

func TestFilter(t *testing.T) {
	producer := &record.Producer{ID: 5, Epoch: 2, Sequence: 7}
	a := keyed(t, record.Options{BaseOffset: 0}, [2]string{"a", "1"}, [2]string{"b", "1"}, [2]string{"c", "1"})
	for _, codec := range []record.Codec{record.None, record.Snappy} {
		later := keyed(t, record.Options{BaseOffset: 3}, [2]string{"b", "2"}, [2]string{"c", "2"}, [2]string{"d", ""})
		b := keyed(t, record.Options{BaseOffset: 0, Codec: codec, LeaderEpoch: 4, Producer: producer}, [2]string{"a", "1"}, [2]string{"b", "1"}, [2]string{"c", "1"})
		f := compact.NewFilter(compact.Rules{Keys: keys(t, 0, b, later), To: 6, Now: 100, DeleteRetentionMs: 50, Codecs: codecs{}})
		dst := []byte("before")
		out, err := f.Batch(dst, b)
		require.NoError(t, err)
		require.Equal(t, "before", string(out[:6]))
		got := record.Batch(out[6:])
		require.NoError(t, record.CheckCRC(got))
		h, was := got.Header(), b.Header()
		require.EqualValues(t, 1, h.Count)
		require.Equal(t, was.LastOffset(), h.LastOffset(), "the offsets stay")
		require.Equal(t, was.LastSequence(), h.LastSequence())
		require.Equal(t, was.Attributes, h.Attributes, "the codec stays")
		require.Equal(t, was.LeaderEpoch, h.LeaderEpoch)
		require.EqualValues(t, 1000, h.MaxTimestamp)
		require.EqualValues(t, 2, f.Dropped)

		out, err = f.Batch(nil, later)
		require.NoError(t, err)
		h = record.Batch(out).Header()
		at, ok := h.DeleteHorizonMs()
		require.True(t, ok)
		require.EqualValues(t, 150, at)
		n := 0
		for r, err := range record.Batch(out).Each(codecs{}, 1000) {
			require.NoError(t, err)
			require.EqualValues(t, 1000+n, r.Timestamp, "times stay")
			n++
		}
		require.Equal(t, 3, n)
	}
	// Nothing of it is old: the same bytes, tombstones behind the range included.
	f := compact.NewFilter(compact.Rules{Keys: keys(t, 0, a), To: 3, Codecs: codecs{}})
	beyond := keyed(t, record.Options{BaseOffset: 2}, [2]string{"x", ""}, [2]string{"a", ""}, [2]string{"", "1"})
	for _, b := range []record.Batch{a, beyond} {
		out, err := f.Batch(nil, b)
		require.NoError(t, err)
		require.Equal(t, []byte(b), out)
	}
}

func TestFilterProducers(t *testing.T) {
	o := record.Options{BaseOffset: 10, Producer: &record.Producer{ID: 5, Epoch: 2, Sequence: 7}}
	b := keyed(t, o, [2]string{"a", "1"}, [2]string{"b", "1"})
	m := keys(t, 0, keyed(t, record.Options{BaseOffset: 20}, [2]string{"a", "2"}, [2]string{"b", "2"}))
	for name, tc := range map[string]struct {
		producers map[int64]compact.Producer
		stays     bool
	}{
		"nobody":        {nil, false},
		"another":       {map[int64]compact.Producer{6: {LastOffset: 11, Epoch: 2}}, false},
		"a later batch": {map[int64]compact.Producer{5: {LastOffset: 12, Epoch: 2}}, false},
		"its last":      {map[int64]compact.Producer{5: {LastOffset: 11, Epoch: 2}}, true},
		"none is known": {map[int64]compact.Producer{5: {LastOffset: -1, Epoch: 2}}, false},
	} {
		f := compact.NewFilter(compact.Rules{Keys: m, To: 30, Producers: tc.producers, Codecs: codecs{}})
		out, err := f.Batch(nil, b)
		require.NoError(t, err, name)
		if !tc.stays {
			require.Empty(t, out, name)
			continue
		}
		h := record.Batch(out).Header()
		require.Zero(t, h.Count)
		require.Equal(t, [4]int64{10, 11, 5, 8}, [4]int64{h.BaseOffset, h.LastOffset(), h.ProducerID, int64(h.LastSequence())}, name)
		// What is empty stays empty, and goes when the producer has gone on.
		again, err := f.Batch(nil, out)
		require.NoError(t, err)
		require.Equal(t, out, again)
		f.Producers = nil
		again, err = f.Batch(nil, out)
		require.NoError(t, err)
		require.Empty(t, again)
	}
}

func marker(t testing.TB, at, id int64, commit bool) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.Options{BaseOffset: at, Producer: &record.Producer{ID: id, Epoch: 2, Sequence: -1}, Transactional: true, Control: true})
	require.NoError(t, b.Append(record.EndTxnMarker{Commit: commit}.Record(at, 1000)))
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

// The last marker of a producer without records of its own stays for its epoch.
func TestFilterMarkers(t *testing.T) {
	none := compact.NewOffsetMap(0, 0, 1)
	pass := func(b record.Batch, now int64, p map[int64]compact.Producer) []byte {
		f := compact.NewFilter(compact.Rules{Keys: none, To: 100, Now: now, DeleteRetentionMs: 50, Producers: p, Codecs: codecs{}})
		out, err := f.Batch(nil, b)
		require.NoError(t, err)
		return out
	}
	for _, commit := range []bool{true, false} {
		b := pass(marker(t, 7, 5, commit), 100, nil)
		at, ok := record.Batch(b).Header().DeleteHorizonMs()
		require.True(t, ok)
		require.EqualValues(t, 150, at)
		require.Equal(t, b, pass(b, 149, nil), "waits")
		require.Empty(t, pass(b, 150, nil))
		require.Empty(t, pass(b, 150, map[int64]compact.Producer{5: {LastOffset: 3, Epoch: 2}}))
		require.Empty(t, pass(b, 150, map[int64]compact.Producer{5: {LastOffset: -1, Epoch: 3}}))
		kept := pass(b, 150, map[int64]compact.Producer{5: {LastOffset: -1, Epoch: 2}})
		require.Zero(t, record.Batch(kept).Header().Count)
		require.Empty(t, pass(kept, 150, nil))
	}
	// An overflow would let it go at once.
	f := compact.NewFilter(compact.Rules{Keys: none, To: 100, Now: 1 << 41, DeleteRetentionMs: math.MaxInt64, Codecs: codecs{}})
	b, err := f.Batch(nil, marker(t, 7, 5, true))
	require.NoError(t, err)
	at, _ := record.Batch(b).Header().DeleteHorizonMs()
	require.Greater(t, at, int64(1<<50))
}

func edit(b record.Batch, change func(b []byte)) record.Batch {
	b = bytes.Clone(b)
	change(b)
	record.SetCRC(b)
	return b
}

// What isn't as it has to be is refused, not dropped.
func TestFilterRefuses(t *testing.T) {
	plain := keyed(t, record.Options{}, [2]string{"a", "1"}, [2]string{"a", "2"})
	for name, b := range map[string]record.Batch{
		"more records than there are": edit(plain, func(b []byte) { b[60] = 3 }),
		"fewer":                       edit(plain, func(b []byte) { b[60] = 1 }),
		"a negative count":            edit(plain, func(b []byte) { b[57] = 0xff }),
		"offsets beyond the last":     edit(plain, func(b []byte) { b[26] = 0 }),
		"offsets that don't rise":     edit(plain, func(b []byte) { b[len(b)-6] = 0 }),
		"an unknown codec":            edit(plain, func(b []byte) { b[22] |= 7 }),
		"control without a type":      edit(plain, func(b []byte) { b[22] |= 0x20 }),
	} {
		f := compact.NewFilter(compact.Rules{Keys: keys(t, 0, plain), To: 10, Codecs: codecs{}})
		out, err := f.Batch([]byte("x"), b)
		require.ErrorIs(t, err, record.ErrCorrupt, name)
		require.Equal(t, "x", string(out), name)
		x := compact.NewIndexer(compact.NewOffsetMap(1000, 0, 10), 0, nil, codecs{})
		_, err = x.Batch(b)
		require.Error(t, err, name)
	}
}

// FuzzFilter gives the walks batches with any bytes behind a good length: each is refused, or becomes batches over the same
// offsets, with no record that there was not.
func FuzzFilter(f *testing.F) {
	o := record.Options{Producer: &record.Producer{ID: 5}}
	horizon := int64(5)
	f.Add([]byte(keyed(f, record.Options{}, [2]string{"a", "1"}, [2]string{"a", ""})), int64(2), true)
	f.Add([]byte(keyed(f, record.Options{Codec: record.LZ4, DeleteHorizon: &horizon}, [2]string{"a", ""}, [2]string{"", "x"})), int64(1), false)
	f.Add([]byte(marker(f, 3, 5, false)), int64(9), true)
	f.Add(record.AppendEmpty(nil, keyed(f, o, [2]string{"a", "1"}).Header()), int64(9), false)
	f.Fuzz(func(t *testing.T, data []byte, to int64, live bool) {
		b, _, err := record.Next(data)
		if err != nil {
			return
		}
		h := b.Header()
		if h.LastOffsetDelta < 0 || h.BaseOffset < 0 || h.LastOffset() < h.BaseOffset {
			return // the log doesn't pass them on
		}
		m := compact.NewOffsetMap(1000, 0, 20)
		_, _ = compact.NewIndexer(m, 0, nil, codecs{}).Batch(b)
		r := compact.Rules{Keys: m, To: to, Now: 10, DeleteRetentionMs: 5, Codecs: codecs{}}
		if live {
			r.Producers = map[int64]compact.Producer{h.ProducerID: {LastOffset: h.LastOffset()}}
		}
		out, err := compact.NewFilter(r).Batch(nil, b)
		if err != nil {
			if len(out) > 0 {
				t.Fatal("something was written with an error")
			}
			return
		}
		if len(out) == 0 {
			return
		}
		got, rest, err := record.Next(out)
		if err != nil || len(rest) > 0 || !bytes.Equal(out, b) && record.CheckCRC(got) != nil {
			t.Fatalf("not a batch: %v", err)
		}
		g := got.Header()
		if g.BaseOffset != h.BaseOffset || g.LastOffset() != h.LastOffset() || g.ProducerID != h.ProducerID || g.LastSequence() != h.LastSequence() || g.Count > h.Count {
			t.Fatalf("header %+v became %+v", h, g)
		}
		before := map[string]bool{}
		for r, err := range b.Each(codecs{}, record.DefaultPayloadLimit) {
			if err != nil {
				break // nothing was read of it, then
			}
			before[fmt.Sprint(r.Offset, r.Timestamp, string(r.Key), r.Value == nil, string(r.Value), r.HeaderCount())] = true
		}
		for r, err := range got.Each(codecs{}, record.DefaultPayloadLimit) {
			if err != nil {
				t.Fatal(err)
			}
			if !before[fmt.Sprint(r.Offset, r.Timestamp, string(r.Key), r.Value == nil, string(r.Value), r.HeaderCount())] {
				t.Fatalf("record %+v was not there", r)
			}
		}
	})
}
