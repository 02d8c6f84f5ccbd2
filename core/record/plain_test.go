package record

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPlainReadAgrees holds that the short way of reading a record gives what the general way gives, for records of all
// shapes and for damaged ones.
func TestPlainReadAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-70, 70), rapid.Int64Range(-9000, 9000), rapid.Int64())
		bytes := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 3), rapid.SliceOfN(rapid.Byte(), 60, 70), rapid.SliceOfN(rapid.Byte(), 8180, 8200))
		r := rawRecord{
			attributes: rapid.Int8().Draw(t, "attributes"), timestampDelta: number.Draw(t, "timestamp"), offsetDelta: int32(number.Draw(t, "offset")),
			key: bytes.Draw(t, "key"), value: bytes.Draw(t, "value"),
		}
		if rapid.Bool().Draw(t, "headers") {
			r.headers, r.headerCount = []byte{2, 'h', 1}, 1
		}
		b := r.append(nil, r.size())
		for range rapid.IntRange(0, 2).Draw(t, "damages") {
			b[rapid.IntRange(0, min(len(b)-1, 12)).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		b = append(b[:rapid.IntRange(0, len(b)).Draw(t, "length")], rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "rest")...)

		var plain, general rawRecord
		rest, ok := plain.readPlain(b)
		if !ok {
			return
		}
		want, err := general.readGeneral(b)
		require.NoError(t, err)
		require.Equal(t, want, rest)
		general.headers = nil // the general way gives an empty one
		require.Equal(t, general, plain)
	})
}

// TestPlainWalkAgrees holds that a walk that begins with plain records comes to what a walk comes to that takes none for plain: for batches of all
// shapes, damaged ones and those that rules refuse.
func TestPlainWalkAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(-70, 70)
		number := rapid.OneOf(rapid.Just[int64](0), small, small, rapid.Int64Range(-9000, 9000), rapid.Int64())
		bytes := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 3), rapid.SliceOfN(rapid.Byte(), 60, 70))
		first := rapid.SampledFrom([]int32{0, 0, 60, 8190, 1<<20 - 2}).Draw(t, "first offset")
		h := Header{Count: int32(rapid.IntRange(0, 6).Draw(t, "count")), BaseTimestamp: rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(900, 1100), rapid.Int64()).Draw(t, "base timestamp")}
		if rapid.IntRange(0, 9).Draw(t, "claims") == 0 {
			h.Attributes |= AttrLogAppendTime
		}
		var b []byte
		for i := range h.Count {
			r := rawRecord{offsetDelta: first + i, key: bytes.Draw(t, "key"), value: bytes.Draw(t, "value")}
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				r.headers, r.headerCount = []byte{2, 'h', 1}, 1
			case 1:
				r.attributes = rapid.Int8().Draw(t, "attributes")
			case 2:
				r.offsetDelta = int32(number.Draw(t, "offset"))
			case 3, 4, 5:
				r.timestampDelta = number.Draw(t, "timestamp")
			}
			b = r.append(b, r.size())
		}
		if len(b) > 0 {
			for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "damages") {
				b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
			b = b[:len(b)-rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 17}).Draw(t, "cut off")%len(b)]
		}
		if rapid.IntRange(0, 9).Draw(t, "more") == 0 {
			b = append(b, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "rest")...)
		}
		h.Count += int32(rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1}).Draw(t, "lie"))
		bound := rapid.SampledFrom([]int64{0, 50, math.MaxInt64})
		rules := &Rules{Now: rapid.SampledFrom([]int64{1000, -1, math.MaxInt64}).Draw(t, "now"), Compacted: rapid.Bool().Draw(t, "compacted"), LogAppendTime: rapid.Bool().Draw(t, "append time"),
			BeforeMaxMs: bound.Draw(t, "before"), AfterMaxMs: bound.Draw(t, "after")}

		want, wantErr := rules.walkOn(unwalked(), h, 0, b)
		got, err := rules.walk(h, b)
		require.Equal(t, wantErr, err)
		if err == nil {
			require.Equal(t, want, got)
		}
	})
}

// TestPlainWalkOfManyRecords walks over so many that their offsets have three bytes.
func TestPlainWalkOfManyRecords(t *testing.T) {
	const count = 20_000
	var b []byte
	for i := range int32(count) {
		r := rawRecord{offsetDelta: i, value: []byte("v")}
		b = r.append(b, r.size())
	}
	h := Header{Count: count}
	w := unwalked()
	n, rest, ok := new(Rules).walkPlain(&w, h, b)
	require.True(t, ok)
	require.Greater(t, n, int32(count-5), "all but the last bytes")
	require.Less(t, len(rest), window)
	require.True(t, w.sequential && w.plain)
}

func BenchmarkWalk(b *testing.B) {
	for _, count := range []int{600, 9500} {
		b.Run(fmt.Sprint(count), func(b *testing.B) { benchmarkWalk(b, count) })
	}
}

func benchmarkWalk(b *testing.B, count int) {
	builder := NewBuilder(Options{})
	for i := range count {
		if err := builder.Append(Record{Offset: int64(i), Timestamp: int64(i), Value: make([]byte, 100)}); err != nil {
			b.Fatal(err)
		}
	}
	batch, err := builder.Build(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	rules := &Rules{BeforeMaxMs: 1 << 62, AfterMaxMs: 1 << 62}
	h := Batch(batch).Header()
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		if _, err := rules.walk(h, Batch(batch).Records()); err != nil {
			b.Fatal(err)
		}
	}
}
