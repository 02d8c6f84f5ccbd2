package acceptance

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

// compressed compresses with a codec by its number in the protocol.
func compressed(t *testing.T, codec int16, b []byte) []byte {
	t.Helper()
	switch codec {
	case 0:
		return b
	case 1:
		return gzipped(t, b)
	case 2:
		return rawSnappy(b)
	case 3:
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		_, err := w.Write(b)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	default:
		w, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		return w.EncodeAll(b, nil)
	}
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func rawSnappy(b []byte) []byte { return snappy.Encode(nil, b) }

// xerial frames snappy as the Java library does, in blocks of some size before compression.
func xerial(b []byte, block int) []byte {
	out := []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}
	for len(b) > 0 {
		part := rawSnappy(b[:min(block, len(b))])
		b = b[min(block, len(b)):]
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return out
}

// replaced is a copy with some bytes changed.
func replaced(b []byte, at int, with ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], with)
	return b
}
