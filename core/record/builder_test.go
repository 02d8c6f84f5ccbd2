package record

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBuilderWritesTheGoldenBatch(t *testing.T) {
	b := NewBuilder(Options{})
	require.NoError(t, b.Append(Record{Timestamp: 1000, Value: []byte("hello")}))
	require.Equal(t, 73, b.Size())
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	require.Equal(t, unhex(t, oneRecord), out)
}

func TestBuiltRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, 1<<50).Draw(t, "base")
		recs := records(base, true).Draw(t, "records")
		codec := rapid.SampledFrom([]Codec{None, Gzip, Snappy}).Draw(t, "codec")
		b := NewBuilder(Options{BaseOffset: base, Codec: codec})
		highest := NoTimestamp
		for _, r := range recs {
			require.NoError(t, b.Append(r))
			highest = max(highest, r.Timestamp)
		}
		out, err := b.Build([]byte("front"), testCodecs{})
		require.NoError(t, err)
		require.Equal(t, "front", string(out[:5]))
		batch, rest, err := Next(out[5:])
		require.NoError(t, err)
		require.Empty(t, rest)
		require.NoError(t, CheckCRC(batch))
		h := batch.Header()
		require.Equal(t, highest, h.MaxTimestamp)
		require.Equal(t, recs[len(recs)-1].Offset, h.LastOffset())
		i := 0
		for r, err := range batch.Each(testCodecs{}, DefaultPayloadLimit) {
			require.NoError(t, err)
			require.Equal(t, describe(recs[i]), describe(r))
			require.Equal(t, recs[i].HeaderCount(), r.HeaderCount())
			i++
		}
		require.Equal(t, len(recs), i)
	})
}

func TestBuilderOptions(t *testing.T) {
	horizon, appended, last := int64(77), int64(99), int64(1009)
	out := build(t, Options{BaseOffset: 1000, LeaderEpoch: 4, Producer: &Producer{ID: 5, Epoch: 6, Sequence: math.MaxInt32},
		Transactional: true, AppendTime: &appended, DeleteHorizon: &horizon, LastOffset: &last}, "a", "b")
	h := Batch(out).Header()
	require.Equal(t, int64(1009), h.LastOffset())
	require.Equal(t, int32(4), h.LeaderEpoch)
	require.Equal(t, int64(99), h.MaxTimestamp)
	require.Equal(t, int32(8), h.LastSequence(), "wraps, over the offsets that are gone")
	require.Equal(t, int32(2), h.Count)
	got, ok := h.DeleteHorizonMs()
	require.True(t, ok)
	require.Equal(t, horizon, got)
	require.True(t, h.Attributes.Transactional() && h.Attributes.LogAppendTime() && !h.Attributes.Control())
	require.Equal(t, `{1000 @99 "k0"="a"}{1001 @99 "k1"="b"}`, text(t, out))

	// Behind the append time the records keep their own: deltas to the horizon.
	SetMaxTimestamp(out, false, baseTime)
	require.Equal(t, `{1000 @1600000000000 "k0"="a"}{1001 @1600000000001 "k1"="b"}`, text(t, out))
}

func TestOptionsOfKeepsTheHeader(t *testing.T) {
	horizon, appended, last := int64(77), int64(99), int64(1009)
	for _, o := range []Options{
		{},
		{BaseOffset: 1000, LastOffset: &last, LeaderEpoch: 4, Codec: Gzip},
		{BaseOffset: 1000, Producer: &Producer{ID: 5, Epoch: 6, Sequence: 7}, Transactional: true, DeleteHorizon: &horizon},
		{BaseOffset: 1000, AppendTime: &appended, Codec: Snappy},
	} {
		old := Batch(build(t, o, "a", "b", "c"))
		b := NewBuilder(OptionsOf(old.Header()))
		for r, err := range old.Each(testCodecs{}, DefaultPayloadLimit) {
			require.NoError(t, err)
			if string(r.Value) != "b" {
				require.NoError(t, b.Append(r))
			}
		}
		out, err := b.Build(nil, testCodecs{})
		require.NoError(t, err)
		want, got := old.Header(), Batch(out).Header()
		if o.AppendTime != nil {
			want.BaseTimestamp = *o.AppendTime // the only time that its readers see
		}
		want.Count, want.Length, want.CRC = 2, got.Length, got.CRC
		require.Equal(t, want, got)
		require.NotContains(t, text(t, out), `"b"`)
	}
}

func TestBuilderRefuses(t *testing.T) {
	b := NewBuilder(Options{BaseOffset: 10})
	_, err := b.Build(nil, nil)
	require.Error(t, err, "no records")
	require.Error(t, b.Append(Record{Offset: 9}), "before the base")
	require.NoError(t, b.Append(Record{Offset: 10, Timestamp: 5}))
	require.Error(t, b.Append(Record{Offset: 10}), "same offset")
	require.Error(t, b.Append(Record{Offset: 11 + math.MaxInt32}), "too far")
	require.NoError(t, b.Append(Record{Offset: 10 + math.MaxInt32, Timestamp: 6}))
	require.Equal(t, 2, b.Count())
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	require.Equal(t, int64(10+math.MaxInt32), Batch(out).Header().LastOffset())

	early := int64(9)
	b.Reset(Options{BaseOffset: 10, LastOffset: &early})
	require.NoError(t, b.Append(Record{Offset: 10}))
	_, err = b.Build(nil, nil)
	require.Error(t, err, "the last offset lies before the last record")

	b.Reset(Options{Codec: Zstd})
	require.NoError(t, b.Append(Record{}))
	out, err = b.Build([]byte("front"), testCodecs{})
	require.Error(t, err, "a codec that is not there")
	require.Equal(t, "front", string(out))
}

func TestAppendEmpty(t *testing.T) {
	full := build(t, Options{BaseOffset: 7, LeaderEpoch: 3, Codec: Gzip, Transactional: true,
		Producer: &Producer{ID: 1, Epoch: 2, Sequence: 3}}, "a", "b", "c")
	h := Batch(full).Header()
	out := AppendEmpty([]byte("front"), h)
	batch, rest, err := Next(out[5:])
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Len(t, batch, HeaderSize)
	require.NoError(t, CheckCRC(batch))
	want := h
	want.Attributes, want.Count, want.BaseTimestamp = AttrTransactional, 0, NoTimestamp
	want.Length, want.CRC = HeaderSize-LogOverhead, batch.Header().CRC
	require.Equal(t, want, batch.Header())
	require.Empty(t, text(t, batch))
}

func TestEndTxnMarker(t *testing.T) {
	for _, m := range []EndTxnMarker{{Commit: true, CoordinatorEpoch: 7}, {CoordinatorEpoch: math.MaxInt32}} {
		b := NewBuilder(Options{BaseOffset: 3, Control: true, Transactional: true, Codec: Gzip, Producer: &Producer{ID: 1, Sequence: NoSequence}})
		require.NoError(t, b.Append(m.Record(3, 50)))
		out, err := b.Build(nil, nil)
		require.NoError(t, err)
		h := Batch(out).Header()
		require.True(t, h.Attributes.Control())
		require.Equal(t, None, h.Attributes.Codec(), "markers are never compressed")
		for r, err := range Batch(out).Each(nil, 0) {
			require.NoError(t, err)
			got, ok, err := ParseEndTxnMarker(r)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, m, got)
		}
	}
	// Key and value as Kafka's EndTransactionMarker writes them.
	r := EndTxnMarker{Commit: true, CoordinatorEpoch: 258}.Record(0, 0)
	require.Equal(t, unhex(t, "0000 0001"), r.Key)
	require.Equal(t, unhex(t, "0000 00000102"), r.Value)

	for name, r := range map[string]Record{
		"no key":           {Value: make([]byte, 6)},
		"short key":        {Key: make([]byte, 3), Value: make([]byte, 6)},
		"negative version": {Key: []byte{0xff, 0, 0, 0}, Value: make([]byte, 6)},
		"no value":         {Key: make([]byte, 4)},
		"short value":      {Key: make([]byte, 4), Value: make([]byte, 5)},
	} {
		_, _, err := ParseEndTxnMarker(r)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
	_, ok, err := ParseEndTxnMarker(Record{Key: []byte{0, 0, 0, 2}})
	require.NoError(t, err)
	require.False(t, ok, "a type of its own, to be skipped")
}
