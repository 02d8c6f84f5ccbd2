package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Messages "a" and "b", without keys.
const (
	format0 = `0000000000000000 0000000f 51df3a32 00 00 ffffffff 00000001 61
		0000000000000001 0000000f c8d66b88 00 00 ffffffff 00000001 62`
	format1 = `0000000000000000 00000017 8a65e96d 01 00 00000000000003e8 ffffffff 00000001 61
		0000000000000001 00000017 136cb8d7 01 00 00000000000003e8 ffffffff 00000001 62`
)

func TestLegacyGolden(t *testing.T) {
	for magic, golden := range []string{format0, format1} {
		b := unhex(t, golden)
		recs, err := LegacyRecords(append(bytes.Clone(b), b[:20]...), nil, 0)
		require.NoError(t, err)
		require.Len(t, recs, 2)
		stamp := int64(-1)
		if magic == 1 {
			stamp = 1000
		}
		want := fmt.Sprintf(`{0 @%d null="a"}{1 @%d null="b"}`, stamp, stamp)
		require.Equal(t, want, describe(recs[0])+describe(recs[1]))

		res, err := validate(b, rules())
		require.NoError(t, err)
		require.True(t, res.Rewritten)
		require.Equal(t, want, text(t, res.Batch))
		require.NoError(t, CheckCRC(res.Batch))
		require.Equal(t, stamp, res.Header.MaxTimestamp)
		require.Equal(t, stamp, res.Header.BaseTimestamp)
		require.Equal(t, int32(3), res.Header.LeaderEpoch)
		require.Equal(t, NoProducerID, res.Header.ProducerID)

		// And back to the same bytes.
		down, err := DownConvert(nil, res.Batch, int8(magic), 0, nil, 0)
		require.NoError(t, err)
		require.Equal(t, b, down)
	}
}

func TestLegacyTakes(t *testing.T) {
	const plain0 = `{0 @-1 "k0"="a"}{1 @-1 "k1"="b"}`
	const plain1 = `{0 @1600000000000 "k0"="a"}{1 @1600000000001 "k1"="b"}`
	appended := message{magic: 1, timestamp: 77, codec: Gzip, appendTime: true, offset: 1}
	appended.value, _ = testCodecs{}.Compress(Gzip, 0, nil, set(t, 1, None, "a", "b"))
	librdkafka := message{magic: 1, timestamp: 5, codec: Gzip, value: appended.value}
	for _, tc := range []struct {
		name    string
		b       []byte
		rules   *Rules
		records string
		attrs   Attributes
	}{
		{"format 0", set(t, 0, None, "a", "b"), rules(), plain0, 0},
		{"format 0, gzip", set(t, 0, Gzip, "a", "b"), rules(), plain0, 1},
		{"format 1", set(t, 1, None, "a", "b"), rules(), plain1, 0},
		{"format 1, gzip", set(t, 1, Gzip, "a", "b"), rules(), plain1, 1},
		{"format 1, gzip to snappy", set(t, 1, Gzip, "a", "b"), rules(target(Snappy)), plain1, 2},
		{"format 1 to gzip", set(t, 1, None, "a", "b"), rules(target(Gzip)), plain1, 1},
		{"format 1, gzip to none", set(t, 1, Gzip, "a", "b"), rules(target(None)), plain1, 0},
		{"format 1, append time", set(t, 1, None, "a", "b"), rules(appendTime), `{0 @1600001000000 "k0"="a"}{1 @1600001000000 "k1"="b"}`, 8},
		{"format 0, append time, gzip", set(t, 0, Gzip, "a"), rules(appendTime), `{0 @1600001000000 "k0"="a"}`, 9},
		{"format 0 with bounds", set(t, 0, None, "a", "b"), rules(hourly), plain0, 0},
		{"message with append time", appended.append(nil), rules(), `{0 @77 "k0"="a"}{1 @77 "k1"="b"}`, 1},
		{"outer offset 0", librdkafka.append(nil), rules(), plain1, 1},
		{"a part of a message behind it", append(set(t, 1, None, "a", "b"), 0, 0, 0), rules(), plain1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := validate(tc.b, tc.rules)
			require.NoError(t, err)
			require.True(t, res.Rewritten)
			require.Equal(t, tc.records, text(t, res.Batch))
			require.Equal(t, tc.attrs, res.Header.Attributes)
			checkValidated(t, res, tc.rules)
		})
	}
}

func TestLegacyRefuses(t *testing.T) {
	m1 := set(t, 1, None, "a", "b")
	flipped := bytes.Clone(m1)
	flipped[len(flipped)-1] ^= 1
	wrap := func(magic byte, codec Codec, offset int64, inside []byte) []byte {
		block, err := testCodecs{}.Compress(Gzip, 0, nil, inside)
		require.NoError(t, err)
		m := message{magic: magic, codec: codec, offset: offset, value: block}
		return m.append(nil)
	}
	lying := func(at int, v uint32) []byte {
		b := set(t, 1, None, "a")
		binary.BigEndian.PutUint32(b[at:], v)
		e := entry(b)
		binary.BigEndian.PutUint32(b[legacyCRC:], crcOf(e))
		return b
	}
	null := message{magic: 1, codec: Gzip}
	for _, tc := range []struct {
		name  string
		b     []byte
		rules *Rules
		want  error
	}{
		{"second message corrupt", flipped, rules(), ErrCorrupt},
		{"inner message corrupt", wrap(1, Gzip, 1, flipped), rules(), ErrCorrupt},
		{"formats 0 and 1", append(set(t, 0, None, "a"), m1...), rules(), ErrInvalid},
		{"format 2 behind format 1", append(bytes.Clone(m1), build(t, Options{}, "a")...), rules(), ErrInvalid},
		{"two compressed messages", append(set(t, 1, Gzip, "a"), set(t, 1, Gzip, "b")...), rules(), ErrInvalid},
		{"compressed and plain", append(set(t, 1, Gzip, "a"), m1...), rules(), ErrInvalid},
		{"zstd", wrap(1, Zstd, 1, m1), rules(), ErrInvalid},
		{"codec 6", wrap(1, 6, 1, m1), rules(), ErrUnreadable},
		{"compressed junk", wrap(1, Snappy, 1, m1), rules(), ErrUnreadable},
		{"compressed null", null.append(nil), rules(), ErrInvalid},
		{"compressed nothing", wrap(1, Gzip, 1, nil), rules(), ErrInvalid},
		{"compressed in compressed", wrap(1, Gzip, 1, set(t, 1, Gzip, "a")), rules(), ErrInvalid},
		{"format 2 in compressed", wrap(1, Gzip, 1, build(t, Options{}, "a")), rules(), ErrInvalid},
		{"format 0 in compressed format 1", wrap(1, Gzip, 1, set(t, 0, None, "a")), rules(), ErrInvalid},
		{"outer offset before the last inside", wrap(1, Gzip, 1, set(t, 1, None, "a", "b", "c")), rules(), ErrInvalid},
		{"key length lies", lying(legacyKey1, 100), rules(), ErrInvalid},
		{"value length lies", lying(legacyKey1+6, 0x7fffffff), rules(), ErrInvalid},
		{"value too short", lying(legacyKey1+6, 0), rules(), ErrInvalid},
		{"format 1 with the size of format 0", unhex(t, "0000000000000000 0000000e 00000000 01 00 ffffffff ffffffff"), rules(), ErrCorrupt},
		{"too large", m1, rules(func(r *Rules) { r.MaxBatchBytes = 20 }), ErrTooLarge},
		{"too large when converted", set(t, 0, None, "a"), rules(func(r *Rules) { r.MaxBatchBytes = 40 }), ErrTooLarge},
		{"time too old", m1, rules(hourly, func(r *Rules) { r.Now += 3_600_000 }), ErrTimestamp},
		{"no key in a compacted topic", unhex(t, format1), rules(compacted), ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := validate(tc.b, tc.rules)
			require.ErrorIs(t, err, tc.want)
			require.Equal(t, Result{}, res)
			require.Equal(t, tc.want == ErrUnreadable, errors.Is(err, ErrUnreadable))
		})
	}
}

func crcOf(e entry) uint32 { return crc32.ChecksumIEEE(e[legacyMagic:]) }

func TestDownConvert(t *testing.T) {
	batches := build(t, Options{BaseOffset: 10}, "a", "b")
	batches = append(batches, build(t, Options{BaseOffset: 12, Codec: Gzip}, "c", "d")...)
	marker := NewBuilder(Options{BaseOffset: 14, Control: true})
	require.NoError(t, marker.Append(EndTxnMarker{}.Record(14, 0)))
	batches, err := marker.Build(batches, nil)
	require.NoError(t, err)
	batches = append(batches, build(t, Options{BaseOffset: 15}, "e")...)
	part := append(bytes.Clone(batches), batches[:70]...)

	for magic := int8(0); magic <= 1; magic++ {
		out, err := DownConvert([]byte("front"), part, magic, 11, testCodecs{}, DefaultPayloadLimit)
		require.NoError(t, err)
		require.Equal(t, "front", string(out[:5]))
		recs, err := LegacyRecords(out[5:], testCodecs{}, DefaultPayloadLimit)
		require.NoError(t, err)
		got := ""
		for _, r := range recs {
			if magic == 0 {
				require.Equal(t, NoTimestamp, r.Timestamp)
			}
			got += fmt.Sprintf("%d=%s ", r.Offset, r.Value)
		}
		require.Equal(t, "11=b 12=c 13=d 15=e ", got, "b's batch is cut at the fetch offset, a marker left out")
		n, err := Count(out[5:])
		require.NoError(t, err)
		require.Equal(t, 3, n, "what was compressed stays one message")

		// What is old already is copied.
		again, err := DownConvert(nil, out[5:], magic, 0, testCodecs{}, DefaultPayloadLimit)
		require.NoError(t, err)
		require.Equal(t, out[5:], again)
	}

	from1, err := DownConvert(nil, set(t, 1, Gzip, "a", "b"), 0, 0, testCodecs{}, DefaultPayloadLimit)
	require.NoError(t, err)
	require.Equal(t, set(t, 0, Gzip, "a", "b"), from1)

	stamp := int64(77)
	lat, err := DownConvert(nil, build(t, Options{AppendTime: &stamp, Codec: Gzip}, "a", "b"), 1, 0, testCodecs{}, DefaultPayloadLimit)
	require.NoError(t, err)
	m, err := entry(lat).message()
	require.NoError(t, err)
	require.True(t, m.appendTime)
	require.Equal(t, stamp, m.timestamp)
	require.Equal(t, int64(1), m.offset)
}

func TestDownConvertRefuses(t *testing.T) {
	ab := build(t, Options{}, "a", "b")
	for _, tc := range []struct {
		name string
		b    []byte
		want error
	}{
		{"zstd", edit(ab, func(b []byte) { b[atAttributes+1] = byte(Zstd) }), ErrUnsupportedCodec},
		{"junk", bytes.Repeat([]byte{0xab}, 40), ErrCorrupt},
		{"compressed junk", raw(1, Gzip, 1, 2, 3), ErrUnreadable},
		{"malformed records", raw(1, None, 1, 2, 3), ErrInvalid},
		{"a header too short", edit(ab, put32(atLength, 40)), ErrCorrupt},
	} {
		out, err := DownConvert([]byte("front"), append(bytes.Clone(ab), tc.b...), 1, 0, testCodecs{}, DefaultPayloadLimit)
		require.ErrorIs(t, err, tc.want, tc.name)
		require.Equal(t, "front", string(out))
	}
}

func TestDownConvertKeepsRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, 1<<40).Draw(t, "base")
		recs := records(base, true).Draw(t, "records")
		codec := rapid.SampledFrom([]Codec{None, Gzip, Snappy}).Draw(t, "codec")
		magic := rapid.Int8Range(0, 1).Draw(t, "magic")
		first := base + rapid.Int64Range(0, 20).Draw(t, "first")
		b := NewBuilder(Options{BaseOffset: base, Codec: codec})
		want := ""
		for _, r := range recs {
			require.NoError(t, b.Append(r))
			if codec == None && r.Offset < first {
				continue
			}
			if magic == 0 {
				r.Timestamp = NoTimestamp
			}
			r.headers, r.headerCount = nil, 0
			want += describe(r)
		}
		batch, err := b.Build(nil, testCodecs{})
		require.NoError(t, err)
		down, err := DownConvert(nil, batch, magic, first, testCodecs{}, DefaultPayloadLimit)
		require.NoError(t, err)
		back, err := LegacyRecords(down, testCodecs{}, DefaultPayloadLimit)
		require.NoError(t, err)
		got := ""
		for _, r := range back {
			got += describe(r)
		}
		require.Equal(t, want, got)
	})
}

// Frames as Kafka's writers made them, with the header checksum of format 0
// (1a) and the right one (82).
func TestLZ4HeaderChecksum(t *testing.T) {
	wrong, right := unhex(t, "04224d186040 1a 00000000"), unhex(t, "04224d186040 82 00000000")
	for _, b := range [][]byte{wrong, right} {
		kept := bytes.Clone(b)
		require.Equal(t, right, rightLZ4Checksum(b))
		require.Equal(t, wrong, wrongLZ4Checksum(b))
		require.Equal(t, kept, b, "the bytes given are left alone")
	}
	for _, odd := range [][]byte{nil, right[:6], unhex(t, "04224d19604082"), unhex(t, "04224d1868 40 00 00")} {
		require.Equal(t, odd, rightLZ4Checksum(odd))
		require.Equal(t, odd, wrongLZ4Checksum(odd))
	}
	sized := unhex(t, "04224d18 68 40 0500000000000000 00 00000000")
	require.Equal(t, byte(xxh32Short(sized[4:14])>>8), rightLZ4Checksum(sized)[14])
	// Known answers of xxHash.
	require.Equal(t, uint32(0x02cc5d05), xxh32Short(nil))
	require.Equal(t, uint32(0x550d7456), xxh32Short([]byte("a")))
	require.Equal(t, uint32(0x32d153ff), xxh32Short([]byte("abc")))
}

func FuzzLegacy(f *testing.F) {
	f.Add(unhex(f, format0))
	f.Add(unhex(f, format1))
	f.Add(set(f, 0, Snappy, "a", "b"))
	f.Add(set(f, 1, LZ4, "a", "b"))
	f.Add(build(f, Options{}, "a", "b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, _, err := nextAny(b); err == nil && e != nil && e.magic() != Magic {
			if e.checkLegacy() != nil && len(e) >= legacyKey1+8 {
				binary.BigEndian.PutUint32(e[legacyCRC:], crcOf(e)) // else nothing would get past the checksum
			}
		}
		recs, err := LegacyRecords(b, testCodecs{}, 1<<16)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		for _, magic := range []int8{0, 1} {
			down, downErr := DownConvert(nil, b, magic, 0, testCodecs{}, 1<<16)
			if downErr != nil {
				if !errors.Is(downErr, ErrCorrupt) && !errors.Is(downErr, ErrUnsupportedCodec) {
					t.Fatal(downErr)
				}
				continue
			}
			back, backErr := LegacyRecords(down, testCodecs{}, 1<<17)
			if err == nil && magic == 1 && (backErr != nil || len(back) != len(recs)) {
				t.Fatalf("%d records become %d, %v", len(recs), len(back), backErr)
			}
		}
	})
}
