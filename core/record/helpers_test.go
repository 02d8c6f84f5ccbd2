package record

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// testCodecs has gzip, and under the numbers of snappy and lz4 something that
// only tests understand. Zstd it does not have.
type testCodecs struct{}

var errBlock = errors.New("bad block")

func (testCodecs) Compress(c Codec, _ int, dst, src []byte) ([]byte, error) {
	switch c {
	case Gzip:
		w := bytes.NewBuffer(dst)
		z := gzip.NewWriter(w)
		_, err := z.Write(src)
		err = errors.Join(err, z.Close())
		return w.Bytes(), err
	case Snappy, LZ4:
		return append(append(dst, byte(c)), src...), nil
	}
	return dst, fmt.Errorf("no %s", c)
}

func (testCodecs) Decompress(c Codec, dst, src []byte, limit int) ([]byte, error) {
	switch c {
	case Gzip:
		z, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return dst, errBlock
		}
		out, err := io.ReadAll(io.LimitReader(z, int64(limit)+1))
		if err != nil || len(out) > limit {
			return dst, errBlock
		}
		return append(dst, out...), nil
	case Snappy, LZ4:
		if len(src) == 0 || src[0] != byte(c) || len(src)-1 > limit {
			return dst, errBlock
		}
		return append(dst, src[1:]...), nil
	}
	return dst, fmt.Errorf("no %s", c)
}

const baseTime = int64(1_600_000_000_000)

// build makes a batch of records with the keys k0, k1 … and these values, one
// millisecond apart.
func build(t testing.TB, o Options, values ...string) []byte {
	t.Helper()
	b := NewBuilder(o)
	for i, v := range values {
		require.NoError(t, b.Append(Record{Offset: o.BaseOffset + int64(i), Timestamp: baseTime + int64(i),
			Key: fmt.Appendf(nil, "k%d", i), Value: []byte(v)}))
	}
	out, err := b.Build(nil, testCodecs{})
	require.NoError(t, err)
	return out
}

// edit changes a batch and makes its checksum right again.
func edit(b []byte, change func(b []byte)) []byte {
	b = bytes.Clone(b)
	change(b)
	SetCRC(b)
	return b
}

// raw is a batch with this payload and count; everything else is right.
func raw(count int32, codec Codec, payload ...byte) []byte {
	h := Header{Magic: Magic, BaseTimestamp: baseTime, MaxTimestamp: baseTime, ProducerID: -1, ProducerEpoch: -1,
		BaseSequence: -1, Count: count, LastOffsetDelta: count - 1, Attributes: Attributes(codec)}
	b, _ := appendBatch(nil, h, None, 0, payload, nil)
	return b
}

func put32(at int, v int32) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
}

func put64(at int, v int64) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint64(b[at:], uint64(v)) }
}

// set is a legacy message set: one message for each value or, with a codec,
// one compressed message that holds them.
func set(t testing.TB, magic byte, codec Codec, values ...string) []byte {
	t.Helper()
	var out []byte
	for i, v := range values {
		m := message{magic: magic, offset: int64(i), timestamp: baseTime + int64(i), key: fmt.Appendf(nil, "k%d", i), value: []byte(v)}
		out = m.append(out)
	}
	if codec == None {
		return out
	}
	block, err := testCodecs{}.Compress(codec, 0, nil, out)
	require.NoError(t, err)
	w := message{magic: magic, offset: int64(len(values) - 1), timestamp: baseTime + int64(len(values)-1), codec: codec, value: block}
	return w.append(nil)
}

// text writes the records of a batch down, so that they can be compared.
func text(t testing.TB, b Batch) string {
	t.Helper()
	var out string
	for r, err := range b.Each(testCodecs{}, DefaultPayloadLimit) {
		require.NoError(t, err)
		out += describe(r)
	}
	return out
}

func describe(r Record) string {
	quote := func(b []byte) string {
		if b == nil {
			return "null"
		}
		return fmt.Sprintf("%q", b)
	}
	s := fmt.Sprintf("{%d @%d %s=%s", r.Offset, r.Timestamp, quote(r.Key), quote(r.Value))
	for k, v := range r.Headers() {
		s += " " + quote(k) + ":" + quote(v)
	}
	return s + "}"
}

// nullable draws bytes that may be null.
func nullable() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		if rapid.Bool().Draw(t, "null") {
			return nil
		}
		return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")...)
	})
}

// records draws up to 20 records with rising offsets from base on.
func records(base int64, headers bool) *rapid.Generator[[]Record] {
	return rapid.Custom(func(t *rapid.T) []Record {
		out := make([]Record, rapid.IntRange(1, 20).Draw(t, "records"))
		next := base
		for i := range out {
			next += rapid.Int64Range(0, 3).Draw(t, "gap")
			out[i] = Record{Offset: next, Timestamp: rapid.Int64Range(-1, 1<<45).Draw(t, "time"),
				Key: nullable().Draw(t, "key"), Value: nullable().Draw(t, "value")}
			if headers {
				for range rapid.IntRange(0, 3).Draw(t, "headers") {
					out[i].AddHeader(rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "hk"), nullable().Draw(t, "hv"))
				}
			}
			next++
		}
		return out
	})
}
