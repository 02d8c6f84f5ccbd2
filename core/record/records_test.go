package record

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestVarint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		b := appendVarint(nil, v)
		got, n := varlong(append(b, 0x55))
		require.Equal(t, v, got)
		require.Equal(t, len(b), n)
		require.Equal(t, n, sizeVarint(v))
		for i := range b {
			_, n := varlong(b[:i])
			require.Zero(t, n)
		}
		small := int32(v)
		got32, n := varint(appendVarint(nil, int64(small)))
		require.Equal(t, small, got32)
		require.Equal(t, sizeVarint(int64(small)), n)
	})
	for _, v := range []int64{0, -1, 63, -64, 64, math.MinInt32, math.MaxInt32, math.MinInt64, math.MaxInt64} {
		got, _ := varlong(appendVarint(nil, v))
		require.Equal(t, v, got)
	}
	_, n := varint([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0})
	require.Zero(t, n, "32 bits in more than five bytes")
	_, n = varlong([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0})
	require.Zero(t, n)
}

// malformed are payloads of batches whose header is in order, all of which
// Kafka 3.9 answers with INVALID_RECORD.
var malformed = []struct {
	name    string
	count   int32
	payload []byte
}{
	{"record length past the end", 1, []byte{0x7e, 0, 0, 0, 1, 1, 0}},
	{"record length negative", 1, []byte{0x03, 0, 0, 0, 1, 1, 0}},
	{"bytes after the last record", 1, []byte{0x0c, 0, 0, 0, 1, 1, 0, 0, 0}},
	{"varint without end", 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	{"header count huge", 1, []byte{0x18, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0}},
	{"header count negative", 1, []byte{0x0c, 0, 0, 0, 1, 1, 1}},
	{"header key null", 1, []byte{0x10, 0, 0, 0, 1, 1, 2, 1, 0}},
	{"header value past the end", 1, []byte{0x10, 0, 0, 0, 1, 1, 2, 0, 2}},
	{"key past the end of the record", 2, []byte{0x0c, 0, 0, 0, 0x10, 1, 0, 0x0c, 0, 0, 2, 1, 1, 0}},
	{"inner length too long", 1, []byte{0x0e, 0, 0, 0, 1, 1, 0, 0}},
	{"inner length too short", 1, []byte{0x0a, 0, 0, 0, 1, 1, 0}},
	{"a record of no bytes", 1, []byte{0}},
	{"fewer records than the count", 2, []byte{0x0c, 0, 0, 0, 1, 1, 0}},
	{"no records at all", 1, nil},
}

// kindOf is the error of a malformed payload.
func kindOf(name string) error {
	if name == "varint without end" {
		return ErrUnreadable
	}
	return ErrInvalid
}

func TestIteratorRefuses(t *testing.T) {
	for _, tc := range malformed {
		t.Run(tc.name, func(t *testing.T) {
			var err error
			for _, err = range Batch(raw(tc.count, None, tc.payload...)).Each(nil, 0) {
			}
			require.ErrorIs(t, err, kindOf(tc.name))
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
	it := Iterate(Header{Count: -1}, nil)
	require.False(t, it.Next())
	require.ErrorIs(t, it.Err(), ErrInvalid)
}

func TestNegativeLengthsAreNull(t *testing.T) {
	b := raw(1, None, 0x0c, 0, 0, 0, 0x03, 0x05, 0) // key length -2, value length -3
	require.Equal(t, `{0 @1600000000000 null=null}`, text(t, b))
}

func TestPayload(t *testing.T) {
	plain := Batch(build(t, Options{}, "a", "b"))
	p, err := plain.Payload(nil, nil, 0)
	require.NoError(t, err)
	require.Same(t, &plain[HeaderSize], &p[0], "in place")

	zipped := Batch(build(t, Options{Codec: Gzip}, "a", "b"))
	buf := make([]byte, 3, 1000)
	q, err := zipped.Payload(testCodecs{}, buf, len(p))
	require.NoError(t, err)
	require.Equal(t, p, q)
	require.Same(t, &buf[0], &q[0], "into the caller's memory")

	_, err = zipped.Payload(testCodecs{}, nil, len(p)-1)
	require.ErrorIs(t, err, ErrUnreadable)
	require.ErrorIs(t, err, errBlock, "the codec's error is there, too")
	_, err = Batch(raw(1, 5, 0)).Payload(testCodecs{}, nil, 100)
	require.ErrorIs(t, err, ErrUnreadable)
}

func TestIterateDoesNotAllocate(t *testing.T) {
	b := Batch(build(t, Options{}, "a", "b", "c"))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		it := Iterate(b.Header(), b.Records())
		n := 0
		for it.Next() {
			n += len(it.Record.Key)
		}
		if it.Err() != nil || n != 6 {
			t.Fatal(it.Err())
		}
	}))
}

func FuzzRecords(f *testing.F) {
	b := Batch(build(f, Options{}, "a", "b"))
	f.Add(int32(2), []byte(b.Records()))
	for _, tc := range malformed {
		f.Add(tc.count, tc.payload)
	}
	f.Fuzz(func(t *testing.T, count int32, payload []byte) {
		it := Iterate(Header{Count: count}, payload)
		n := int32(0)
		for it.Next() {
			n++
			hs := 0
			for range it.Record.Headers() {
				hs++
			}
			if hs != it.Record.HeaderCount() {
				t.Fatal("headers are lost")
			}
		}
		switch {
		case it.Err() == nil && n != count:
			t.Fatalf("%d records of %d and no error", n, count)
		case it.Err() != nil && !errors.Is(it.Err(), ErrInvalid) && !errors.Is(it.Err(), ErrUnreadable):
			t.Fatal(it.Err())
		}
		_, err := (&Rules{LogAppendTime: true}).walk(Header{Count: count}, payload)
		if (err == nil) != (it.Err() == nil) {
			t.Fatalf("the iterator says %v, the walk %v", it.Err(), err)
		}
	})
}

func TestGoldenRecord(t *testing.T) {
	// The golden batch, field by field, for whoever doubts the offsets.
	b := unhex(t, oneRecord)
	require.Equal(t, uint32(0x5d035a13), binary.BigEndian.Uint32(b[atCRC:]))
	require.Equal(t, `{0 @1000 null="hello"}`, text(t, b))
}
