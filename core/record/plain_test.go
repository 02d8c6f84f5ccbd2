package record

import (
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

func BenchmarkWalk(b *testing.B) {
	builder := NewBuilder(Options{})
	for i := range 600 {
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
