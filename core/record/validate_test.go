package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const now = baseTime + 1_000_000

func rules(changes ...func(*Rules)) *Rules {
	r := DefaultRules(now)
	r.LeaderEpoch = 3
	for _, change := range changes {
		change(&r)
	}
	return &r
}

func target(c Codec) func(*Rules) { return func(r *Rules) { r.Target = Target{Codec: c} } }
func compacted(r *Rules)          { r.Compacted = true }
func appendTime(r *Rules)         { r.LogAppendTime = true }
func hourly(r *Rules)             { r.BeforeMaxMs, r.AfterMaxMs = 3_600_000, 3_600_000 }
func coordinator(r *Rules)        { r.Origin = FromCoordinator }

func validate(b []byte, r *Rules) (Result, error) { return NewValidator(testCodecs{}).Validate(b, r) }

// What Kafka 3.9 does with what a producer may send, as recorded from it.
func TestValidateTakes(t *testing.T) {
	ab := build(t, Options{}, "a", "b")
	const abText = `{0 @1600000000000 "k0"="a"}{1 @1600000000001 "k1"="b"}`
	flag := func(a Attributes) []byte {
		return edit(ab, func(b []byte) { b[atAttributes], b[atAttributes+1] = byte(a>>8), byte(a) })
	}
	odd := func(payload ...byte) []byte { return raw(2, None, payload...) }
	timeless := edit(edit(raw(1, None, 0x0c, 0, 0, 0, 1, 1, 0), put64(atBaseTimestamp, -1)), put64(atMaxTimestamp, -1))
	for _, tc := range []struct {
		name    string
		b       []byte
		rules   *Rules
		records string
		attrs   Attributes
		max     int64
		rewrite bool
	}{
		{"a batch", ab, rules(), abText, 0, baseTime + 1, false},
		{"leader epoch of the client", edit(ab, put32(atLeaderEpoch, 9)), rules(), abText, 0, baseTime + 1, false},
		{"max timestamp too high", edit(ab, put64(atMaxTimestamp, baseTime+500)), rules(), abText, 0, baseTime + 1, false},
		{"max timestamp -1", edit(ab, put64(atMaxTimestamp, -1)), rules(), abText, 0, baseTime + 1, false},
		{"unused attribute bits", flag(1 << 9), rules(), abText, 1 << 9, baseTime + 1, false},
		{"delete horizon", flag(AttrDeleteHorizon), rules(), abText, AttrDeleteHorizon, baseTime + 1, false},
		{"claims append time", flag(AttrLogAppendTime), rules(), abText, 0, baseTime + 1, false},
		{"claims append time, wrong", edit(flag(AttrLogAppendTime), put64(atMaxTimestamp, 5)), rules(hourly), abText, 0, baseTime + 1, false},
		{"claims append time, rewritten", edit(flag(AttrLogAppendTime), put64(atMaxTimestamp, 5)), rules(target(Gzip)), abText, 1, baseTime + 1, true},
		{"transactional", flag(AttrTransactional), rules(), abText, AttrTransactional, baseTime + 1, false},
		{"append time", ab, rules(appendTime), `{0 @1600001000000 "k0"="a"}{1 @1600001000000 "k1"="b"}`, AttrLogAppendTime, now, false},
		{"append time, gzip", build(t, Options{Codec: Gzip}, "a"), rules(appendTime), `{0 @1600001000000 "k0"="a"}`, AttrLogAppendTime | 1, now, false},
		{"gzip", build(t, Options{Codec: Gzip}, "a", "b"), rules(), abText, 1, baseTime + 1, false},
		{"gzip where gzip is asked for", build(t, Options{Codec: Gzip}, "a", "b"), rules(target(Gzip)), abText, 1, baseTime + 1, false},
		{"none where gzip is asked for", ab, rules(target(Gzip)), abText, 1, baseTime + 1, true},
		{"gzip where none is asked for", build(t, Options{Codec: Gzip}, "a", "b"), rules(target(None)), abText, 0, baseTime + 1, true},
		{"gzip to snappy, append time", build(t, Options{Codec: Gzip}, "a"), rules(target(Snappy), appendTime), `{0 @1600001000000 "k0"="a"}`, AttrLogAppendTime | 2, now, true},
		{"rewriting drops unused bits", flag(1<<9 | AttrDeleteHorizon), rules(target(Gzip)), abText, 1, baseTime + 1, true},
		{"rewriting keeps transactions", flag(AttrTransactional), rules(target(Gzip)), abText, AttrTransactional | 1, baseTime + 1, true},
		{"inner offsets wrong", odd(0x0c, 0, 0, 0, 1, 1, 0, 0x0c, 0, 2, 10, 1, 1, 0), rules(), `{0 @1600000000000 null=null}{5 @1600000000001 null=null}`, 0, baseTime + 1, false},
		{"inner offsets wrong, rewritten", odd(0x0c, 0, 0, 0, 1, 1, 0, 0x0c, 0, 2, 10, 1, 1, 0), rules(target(Gzip)), `{0 @1600000000000 null=null}{1 @1600000000001 null=null}`, 1, baseTime + 1, true},
		{"first time is not the base, rewritten", odd(0x0c, 0, 6, 0, 1, 1, 0, 0x0c, 0, 2, 2, 1, 1, 0), rules(target(Gzip)), `{0 @1600000000003 null=null}{1 @1600000000001 null=null}`, 1, baseTime + 3, true},
		{"junk behind the batch", append(bytes.Clone(ab), 1, 2, 3), rules(), abText, 0, baseTime + 1, false},
		{"half a batch behind the batch", append(bytes.Clone(ab), ab[:30]...), rules(), abText, 0, baseTime + 1, false},
		{"empty key in a compacted topic", odd(0x0c, 0, 0, 0, 0, 1, 0, 0x0c, 0, 0, 2, 0, 1, 0), rules(compacted), `{0 @1600000000000 ""=null}{1 @1600000000000 ""=null}`, 0, baseTime, false},
		{"times inside of the bounds", ab, rules(hourly), abText, 0, baseTime + 1, false},
		{"no time with bounds", timeless, rules(hourly), `{0 @-1 null=null}`, 0, -1, false},
		{"producer without epoch", build(t, Options{Producer: &Producer{5, -1, 0}}, "a", "b"), rules(), abText, 0, baseTime + 1, false},
		{"negative producer", build(t, Options{Producer: &Producer{-5, 0, -1}}, "a", "b"), rules(), abText, 0, baseTime + 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			given := tc.b
			tc.b = bytes.Clone(given) // work is done in place
			res, err := validate(tc.b, tc.rules)
			require.NoError(t, err)
			require.NoError(t, CheckCRC(res.Batch))
			h := res.Batch.Header()
			require.Equal(t, h, res.Header)
			require.Equal(t, tc.records, text(t, res.Batch))
			require.Equal(t, tc.attrs, h.Attributes)
			require.Equal(t, tc.max, h.MaxTimestamp)
			require.Equal(t, int32(3), h.LeaderEpoch)
			require.Zero(t, h.BaseOffset)
			require.Equal(t, h.Count-1, h.LastOffsetDelta)
			require.Equal(t, tc.rewrite, res.Rewritten)
			before, err := ParseHeader(given)
			require.NoError(t, err)
			require.Equal(t, []any{before.ProducerID, before.ProducerEpoch, before.BaseSequence}, []any{h.ProducerID, h.ProducerEpoch, h.BaseSequence})
			if tc.rewrite {
				require.Equal(t, given[atAttributes:], tc.b[atAttributes:], "the producer's bytes are not touched")
			} else {
				require.Same(t, &tc.b[0], &res.Batch[0])
			}
			if tc.rules.LogAppendTime {
				require.Equal(t, now, res.LogAppendTime)
			} else {
				require.Equal(t, NoTimestamp, res.LogAppendTime)
			}
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	ab := build(t, Options{}, "a", "b")
	big := build(t, Options{}, strings.Repeat("x", 900))
	small := func(r *Rules) { r.MaxBatchBytes = 500 }
	zipped := raw(2, Gzip, func() []byte {
		block, _ := testCodecs{}.Compress(Gzip, 0, nil, []byte{0x0c, 0, 0, 0, 1, 1, 0, 0x0c, 0, 0, 10, 1, 1, 0})
		return block
	}()...)
	type refused struct {
		name  string
		b     []byte
		rules *Rules
		want  error
	}
	cases := []refused{
		{"checksum", append(bytes.Clone(ab[:len(ab)-1]), ab[len(ab)-1]^1), rules(), ErrCorrupt},
		{"magic 3", edit(ab, func(b []byte) { b[atMagic] = 3 }), rules(), ErrCorrupt},
		{"magic -1", edit(ab, func(b []byte) { b[atMagic] = 0xff }), rules(), ErrCorrupt},
		{"length too low", edit(ab, put32(atLength, int32(len(ab)-LogOverhead-10))), rules(), ErrCorrupt},
		{"length 0", edit(ab, put32(atLength, 0)), rules(), ErrCorrupt},
		{"length 48", edit(ab, put32(atLength, 48)), rules(), ErrCorrupt},
		{"length negative", edit(ab, put32(atLength, -16)), rules(), ErrCorrupt},
		{"length largest", edit(ab, put32(atLength, math.MaxInt32)), rules(), ErrUnreadable},
		{"junk", bytes.Repeat([]byte{0xab}, 40), rules(), ErrCorrupt},
		{"two batches", append(bytes.Clone(ab), ab...), rules(), ErrInvalid},
		{"two batches, the second corrupt", append(bytes.Clone(ab), append(bytes.Clone(ab[:len(ab)-1]), 9)...), rules(), ErrCorrupt},
		{"a message of format 1 behind the batch", append(bytes.Clone(ab), set(t, 1, None, "a")...), rules(), ErrInvalid},
		{"base offset 5", edit(ab, put64(atBaseOffset, 5)), rules(), ErrInvalid},
		{"base offset -1", edit(ab, put64(atBaseOffset, -1)), rules(), ErrInvalid},
		{"count too high", edit(ab, put32(atCount, 3)), rules(), ErrInvalid},
		{"count too low", edit(ab, put32(atCount, 1)), rules(), ErrInvalid},
		{"count and last delta too high", edit(edit(ab, put32(atCount, 3)), put32(atLastOffsetDelta, 2)), rules(), ErrInvalid},
		{"count and last delta too low", edit(edit(ab, put32(atCount, 1)), put32(atLastOffsetDelta, 0)), rules(), ErrInvalid},
		{"count 0", edit(ab, put32(atCount, 0)), rules(), ErrInvalid},
		{"no records", raw(0, None), rules(), ErrInvalid},
		{"no records, last delta 0", edit(raw(0, None), put32(atLastOffsetDelta, 0)), rules(), ErrInvalid},
		{"count -1", edit(ab, put32(atCount, -1)), rules(), ErrInvalid},
		{"count huge", edit(edit(ab, put32(atCount, math.MaxInt32)), put32(atLastOffsetDelta, math.MaxInt32-1)), rules(), ErrInvalid},
		{"last delta too high", edit(ab, put32(atLastOffsetDelta, 7)), rules(), ErrInvalid},
		{"last delta largest", edit(edit(ab, put32(atLastOffsetDelta, math.MaxInt32)), put32(atCount, math.MinInt32)), rules(), ErrInvalid},
		{"last delta 0 for two records (A10)", edit(ab, put32(atLastOffsetDelta, 0)), rules(), ErrInvalid},
		{"last delta negative", edit(ab, put32(atLastOffsetDelta, -1)), rules(), ErrInvalid},
		{"control batch", edit(ab, func(b []byte) { b[atAttributes+1] = byte(AttrControl) }), rules(), ErrInvalid},
		{"producer without sequence", build(t, Options{Producer: &Producer{7, 0, -1}}, "a"), rules(), ErrInvalid},
		{"codec 5", edit(ab, func(b []byte) { b[atAttributes+1] = 5 }), rules(), ErrUnreadable},
		{"codec 7", edit(ab, func(b []byte) { b[atAttributes+1] = 7 }), rules(), ErrUnreadable},
		{"codec that is not there", edit(ab, func(b []byte) { b[atAttributes+1] = byte(Zstd) }), rules(), ErrUnreadable},
		{"gzip with junk", raw(2, Gzip, bytes.Repeat([]byte{0xab}, 40)...), rules(), ErrUnreadable},
		{"gzip with nothing", raw(2, Gzip), rules(), ErrUnreadable},
		{"gzip that is too much", build(t, Options{Codec: Gzip}, strings.Repeat("x", 2000)), rules(func(r *Rules) { r.PayloadLimit = 1000 }), ErrUnreadable},
		{"inner offsets wrong, gzip", zipped, rules(), ErrUnreadable},
		{"too large", big, rules(small), ErrTooLarge},
		{"too large, two batches", append(bytes.Clone(big), big...), rules(small), ErrTooLarge},
		{"too large when recompressed", build(t, Options{Codec: Gzip}, strings.Repeat("x", 900)), rules(small, target(None)), ErrTooLarge},
		{"larger than a segment", big, rules(func(r *Rules) { r.SegmentBytes = 500 }), ErrLargerThanSegment},
		{"time too old", ab, rules(hourly, func(r *Rules) { r.Now += 3_600_000 }), ErrTimestamp},
		{"time too new", ab, rules(hourly, func(r *Rules) { r.Now -= 10_000_000 }), ErrTimestamp},
		{"append time claimed under append time", edit(ab, func(b []byte) { b[atAttributes+1] = byte(AttrLogAppendTime) }), rules(appendTime), ErrTimestamp},
		{"no key in a compacted topic", unhex(t, oneRecord), rules(compacted), ErrInvalid},
	}
	for _, tc := range malformed {
		cases = append(cases, refused{tc.name, raw(tc.count, None, tc.payload...), rules(), kindOf(tc.name)},
			refused{tc.name + ", to be compressed", raw(tc.count, None, tc.payload...), rules(target(Gzip)), kindOf(tc.name)})
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			res, err := validate(tc.b, tc.rules)
			require.ErrorIs(t, err, tc.want)
			require.Equal(t, Result{}, res)
			// The broker tells the kinds apart by asking for the particular first.
			for _, kind := range []error{ErrInvalid, ErrUnreadable} {
				require.Equal(t, kind == tc.want, errors.Is(err, kind), kind)
			}
		})
	}
}

func TestValidateTakesNothingForNothing(t *testing.T) {
	ab := build(t, Options{}, "a", "b")
	for _, b := range [][]byte{nil, {}, ab[:5], ab[:16], ab[:40], ab[:len(ab)-1], edit(ab, put32(atLength, 1000))} {
		res, err := validate(b, rules())
		require.NoError(t, err)
		require.Equal(t, Result{LogAppendTime: NoTimestamp}, res)
	}
}

func TestValidateNamesTheRecords(t *testing.T) {
	b := NewBuilder(Options{})
	for i, r := range []Record{{Key: []byte("k"), Timestamp: baseTime}, {Timestamp: baseTime}, {Key: []byte("k"), Timestamp: 5}, {Timestamp: 5}} {
		r.Offset = int64(i)
		require.NoError(t, b.Append(r))
	}
	batch, err := b.Build(nil, nil)
	require.NoError(t, err)

	var refused *RecordErrors
	_, err = validate(bytes.Clone(batch), rules(compacted, hourly))
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, ErrTimestamp, "one wrong time makes it Kafka's INVALID_TIMESTAMP")
	require.Equal(t, []RecordError{{1, reasonNoKey}, {2, reasonTimestamp}, {3, reasonNoKey}}, refused.Records)
	require.ErrorContains(t, err, "3 records refused, record 1 first")

	_, err = validate(bytes.Clone(batch), rules(compacted))
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, ErrInvalid)
	require.False(t, errors.Is(err, ErrTimestamp))
	require.Equal(t, []RecordError{{1, reasonNoKey}, {3, reasonNoKey}}, refused.Records)

	_, err = validate(build(t, Options{Codec: Gzip}, "a"), rules(hourly, func(r *Rules) { r.Now = 0 }))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []RecordError{{0, reasonTimestamp}}, refused.Records)
}

func TestValidateBelievesCoordinators(t *testing.T) {
	b := NewBuilder(Options{BaseOffset: 40, Control: true, Transactional: true, Producer: &Producer{5, 6, NoSequence}})
	require.NoError(t, b.Append(EndTxnMarker{Commit: true}.Record(40, baseTime)))
	marker, err := b.Build(nil, nil)
	require.NoError(t, err)
	res, err := validate(marker, rules(coordinator, target(Gzip)))
	require.NoError(t, err)
	require.False(t, res.Rewritten, "markers stay uncompressed")
	require.Zero(t, res.Header.BaseOffset)
	_, err = validate(raw(2, None, 0x0c, 0, 0, 0, 1, 1, 0), rules(coordinator))
	require.ErrorIs(t, err, ErrInvalid, "records are counted all the same")
}

func TestValidateFindsTheLargestTimestamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := records(0, true).Draw(t, "records")
		codec := rapid.SampledFrom([]Codec{None, Gzip, Snappy}).Draw(t, "codec")
		want := rapid.SampledFrom([]Codec{None, Gzip, Snappy}).Draw(t, "target")
		b := NewBuilder(Options{Codec: codec})
		highest, at, texts := NoTimestamp, 0, ""
		for i, r := range recs {
			r.Offset = int64(i)
			texts += describe(r)
			require.NoError(t, b.Append(r))
			if r.Timestamp > highest {
				highest, at = r.Timestamp, i
			}
		}
		batch, err := b.Build(nil, testCodecs{})
		require.NoError(t, err)
		given := bytes.Clone(batch)
		SetMaxTimestamp(batch, false, rapid.Int64().Draw(t, "claimed"))
		res, err := validate(batch, rules(target(want)))
		require.NoError(t, err)
		require.Equal(t, highest, res.Header.MaxTimestamp)
		require.Equal(t, int32(at), res.MaxTimestampOffset)
		require.Equal(t, want, res.Header.Attributes.Codec())
		require.Equal(t, want != codec, res.Rewritten)
		got := ""
		for r, err := range res.Batch.Each(testCodecs{}, DefaultPayloadLimit) {
			require.NoError(t, err)
			got += describe(r)
		}
		require.Equal(t, texts, got)
		if !res.Rewritten {
			SetLeaderEpoch(given, 3)
			require.Equal(t, given, []byte(res.Batch))
		}
	})
}

func TestCheckVersion(t *testing.T) {
	ab := build(t, Options{}, "a", "b")
	zstd := edit(ab, func(b []byte) { b[atAttributes+1] = byte(Zstd) })
	two := append(bytes.Clone(ab), ab...)
	for _, tc := range []struct {
		name    string
		version int16
		b       []byte
		want    error
	}{
		{"a batch", 3, ab, nil},
		{"a batch and a part of one", 9, two[:len(two)-1], nil},
		{"nothing", 9, nil, ErrInvalid},
		{"a part of a batch", 9, ab[:len(ab)-1], ErrInvalid},
		{"two batches", 3, two, ErrInvalid},
		{"a length that overflows", 3, edit(ab, put32(atLength, math.MaxInt32)), ErrUnreadable},
		{"format 0", 3, set(t, 0, None, "a"), ErrInvalid},
		{"format 1", 11, set(t, 1, None, "a"), ErrInvalid},
		{"zstd", 6, zstd, ErrUnsupportedCodec},
		{"zstd, later", 7, zstd, nil},
		{"junk", 3, bytes.Repeat([]byte{0xab}, 40), ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := CheckVersion(tc.version, tc.b)
			require.ErrorIs(t, err, tc.want)
			require.NoError(t, CheckVersion(2, tc.b))
		})
	}
	n, err := Count(append(two, set(t, 1, None, "a", "b")...))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	_, err = Count(append(two, bytes.Repeat([]byte{0xab}, 40)...))
	require.ErrorIs(t, err, ErrCorrupt)
}

func FuzzValidate(f *testing.F) {
	ab := build(f, Options{}, "a", "b")
	f.Add(ab)
	f.Add(append(bytes.Clone(ab), ab...))
	f.Add(build(f, Options{Codec: Gzip}, "a", "b"))
	f.Add(set(f, 0, None, "a", "b"))
	f.Add(set(f, 1, Snappy, "a", "b"))
	for _, tc := range malformed {
		f.Add(raw(tc.count, None, tc.payload...))
		f.Add(raw(tc.count, Snappy, append([]byte{byte(Snappy)}, tc.payload...)...))
	}
	v := NewValidator(testCodecs{})
	all := []*Rules{rules(), rules(target(Snappy)), rules(target(None), appendTime), rules(compacted, hourly), rules(coordinator)}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= HeaderSize && b[atMagic] == Magic {
			if first, _, err := nextAny(b); err == nil && len(first) >= HeaderSize {
				SetCRC(first) // else nothing would get past the checksum
			}
		}
		for _, r := range all {
			r.PayloadLimit = 1 << 16
			res, err := v.Validate(bytes.Clone(b), r)
			switch {
			case err == nil && res.Batch == nil:
			case err == nil:
				checkValidated(t, res, r)
			case errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTimestamp) || errors.Is(err, ErrTooLarge):
			default:
				t.Fatal(err)
			}
		}
	})
}

// checkValidated holds a result against what every reader of a log expects.
func checkValidated(t *testing.T, res Result, r *Rules) {
	first, rest, err := Next(res.Batch)
	if err != nil || len(rest) > 0 || CheckCRC(first) != nil || first.Header() != res.Header {
		t.Fatalf("not one batch: %v", err)
	}
	n := int32(0)
	highest := NoTimestamp
	for rec, err := range first.Each(testCodecs{}, 1<<16) {
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, rec.Timestamp)
		n++
	}
	if n != res.Header.Count || r.Origin == FromClient && n != res.Header.LastOffsetDelta+1 {
		t.Fatalf("%d records, header %+v", n, res.Header)
	}
	if n > 0 && highest != res.Header.MaxTimestamp {
		t.Fatalf("largest timestamp %d, header %+v", highest, res.Header)
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, size := range []int{100, 1000} {
		for _, codec := range []Codec{None, Snappy} {
			b.Run(fmt.Sprintf("64KiB of %d bytes/%s", size, codec), func(b *testing.B) {
				value := strings.Repeat("x", size)
				batch := build(b, Options{Codec: codec}, strings.Split(strings.Repeat(value+" ", 65536/size), " ")[:65536/size]...)
				v, r := NewValidator(testCodecs{}), rules()
				b.SetBytes(int64(len(batch)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Validate(batch, r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func TestValidateDoesNotAllocate(t *testing.T) {
	batch := build(t, Options{}, strings.Split(strings.Repeat("x ", 600), " ")...)
	v := NewValidator(testCodecs{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r := DefaultRules(now)
		r.Compacted, r.BeforeMaxMs = true, 3_600_000
		if _, err := v.Validate(batch, &r); err != nil {
			t.Fatal(err)
		}
	}))
}
