package record

import (
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unhex turns hexadecimal digits, spaced as one likes, into bytes.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

// oneRecord is a batch with one record: null key, value "hello", time 1000.
const oneRecord = `0000000000000000 0000003d 00000000 02 5d035a13 0000 00000000 00000000000003e8
	00000000000003e8 ffffffffffffffff ffff ffffffff 00000001 16000000010a68656c6c6f00`

func TestParseHeader(t *testing.T) {
	b := unhex(t, oneRecord)
	h, err := ParseHeader(b)
	require.NoError(t, err)
	want := Header{Length: 61, Magic: 2, CRC: 0x5d035a13, BaseTimestamp: 1000, MaxTimestamp: 1000,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Count: 1}
	require.Equal(t, want, h)
	require.Equal(t, 73, h.Size())
	require.Equal(t, NoSequence, h.LastSequence())

	again := make([]byte, HeaderSize)
	h.Put(again)
	require.Equal(t, b[:HeaderSize], again)
}

func TestParseHeaderRefuses(t *testing.T) {
	good := unhex(t, oneRecord)
	with := func(at int, v ...byte) []byte {
		b := append([]byte(nil), good...)
		copy(b[at:], v)
		return b
	}
	for _, tc := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrShort},
		{"one byte less than a header", good[:HeaderSize-1], ErrShort},
		{"format 0", with(atMagic, 0), ErrLegacy},
		{"format 1", with(atMagic, 1), ErrLegacy},
		{"format 1, short", with(atMagic, 1)[:30], ErrLegacy},
		{"format 3", with(atMagic, 3), ErrCorrupt},
		{"format -1", with(atMagic, 0xff), ErrCorrupt},
		{"length less than a header", with(atLength, 0, 0, 0, HeaderSize-LogOverhead-1), ErrCorrupt},
		{"largest length", with(atLength, 0x7f, 0xff, 0xff, 0xff), ErrCorrupt},
		{"negative length", with(atLength, 0xff), ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseHeader(tc.b)
			require.ErrorIs(t, err, tc.want)
		})
	}
	require.ErrorIs(t, ErrLegacy, ErrCorrupt)
	require.False(t, errors.Is(ErrShort, ErrCorrupt))
}

func TestSequenceWraps(t *testing.T) {
	h := Header{BaseSequence: math.MaxInt32 - 1, LastOffsetDelta: 2}
	require.Equal(t, int32(0), h.LastSequence())
	require.Equal(t, int32(0), AddSequence(math.MaxInt32, 1))
	require.Equal(t, int32(math.MaxInt32), AddSequence(math.MaxInt32-3, 3))
}

func TestAttributes(t *testing.T) {
	a := Attributes(0x7c)
	require.Equal(t, Zstd, a.Codec())
	require.True(t, a.LogAppendTime() && a.Transactional() && a.Control() && a.DeleteHorizon())
	require.False(t, Attributes(7).Codec().Valid())
	for c := None; c.Valid(); c++ {
		got, err := ParseCodec(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	_, err := ParseCodec("brotli")
	require.Error(t, err)
}

func TestAllWalksWholeBatches(t *testing.T) {
	one := unhex(t, oneRecord)
	for cut := range len(one) {
		b := append(append(append([]byte(nil), one...), one...), one[:cut]...)
		n, last := 0, error(nil)
		for batch, err := range All(b) {
			if last = err; err == nil {
				n++
				require.Equal(t, []byte(batch), one)
				require.Equal(t, len(batch), cap(batch))
			}
		}
		require.Equal(t, 2, n)
		if cut == 0 {
			require.NoError(t, last)
		} else {
			require.ErrorIs(t, last, ErrShort)
		}
	}
}

func TestStamps(t *testing.T) {
	b := unhex(t, oneRecord)
	require.NoError(t, CheckCRC(b))
	SetBaseOffset(b, 1<<40)
	SetLeaderEpoch(b, 7)
	require.NoError(t, CheckCRC(b), "the checksum covers neither")
	SetMaxTimestamp(b, true, 5000)
	require.NoError(t, CheckCRC(b))
	h, err := ParseHeader(b)
	require.NoError(t, err)
	require.Equal(t, int64(1<<40), h.BaseOffset)
	require.Equal(t, int32(7), h.LeaderEpoch)
	require.Equal(t, int64(5000), h.MaxTimestamp)
	require.True(t, h.Attributes.LogAppendTime())

	SetMaxTimestamp(b, false, 1000)
	SetBaseOffset(b, 0)
	SetLeaderEpoch(b, 0)
	require.Equal(t, unhex(t, oneRecord), b)

	for i := atAttributes; i < len(b); i++ {
		b[i] ^= 4
		require.ErrorIs(t, CheckCRC(b), ErrCorrupt)
		b[i] ^= 4
	}
	require.ErrorIs(t, CheckCRC(b[:HeaderSize-1]), ErrShort)
}

func TestHeaderFunctionsDoNotAllocate(t *testing.T) {
	one := unhex(t, oneRecord)
	b := append(append([]byte(nil), one...), one...)
	n := testing.AllocsPerRun(100, func() {
		for batch, err := range All(b) {
			if err != nil || batch.Header().Count != 1 || CheckCRC(batch) != nil {
				t.Fatal(err)
			}
			SetBaseOffset(batch, 3)
			SetMaxTimestamp(batch, false, 1000)
		}
	})
	require.Zero(t, n)
}

func FuzzWalk(f *testing.F) {
	f.Add(unhex(f, oneRecord))
	f.Add(unhex(f, oneRecord+oneRecord+"00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		walked := 0
		for batch, err := range All(b) {
			if err != nil {
				if !errors.Is(err, ErrShort) && !errors.Is(err, ErrCorrupt) {
					t.Fatal(err)
				}
				return
			}
			h := batch.Header()
			again := make([]byte, HeaderSize)
			h.Put(again)
			if string(again) != string(batch[:HeaderSize]) || h.Size() != len(batch) {
				t.Fatal("the header does not survive")
			}
			walked += len(batch)
		}
		if walked != len(b) {
			t.Fatal("the walk ended early without an error")
		}
	})
}
