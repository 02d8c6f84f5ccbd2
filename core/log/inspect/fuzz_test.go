package inspect_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/log/inspect"
	"github.com/barnabas-mq/barnabas/core/record"
)

// FuzzSegment verifies any bytes as a segment: never a panic, and batches lie one behind the other, within the file.
func FuzzSegment(f *testing.F) {
	b := built(f, record.Options{}, record.Record{Value: []byte("v")}, record.Record{Offset: 1, Key: []byte("k")})
	old, err := record.DownConvert(nil, b, 1, 0, nil, 1<<20)
	require.NoError(f, err)
	for _, seed := range [][]byte{nil, b, b[:70], append(b[:60:60], make([]byte, 40)...), old, append(old, b...)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		file := filepath.Join(dir, "00000000000000000000.log")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		_, err := inspect.Verify(dir, inspect.Options{Records: true, RecordLimit: 1 << 16})
		require.NoError(t, err)
		s, err := inspect.OpenSegment(file)
		require.NoError(t, err)
		defer s.Close()
		end, ended := int64(0), false
		for b, err := range s.Batches() {
			require.False(t, ended)
			if err != nil {
				require.True(t, errors.As(err, new(*inspect.Damage)))
				ended = b.Length == 0 // no header: nothing can follow
				continue
			}
			require.GreaterOrEqual(t, b.Position, end)
			end = b.Position + int64(b.Size())
		}
		require.LessOrEqual(t, end, s.Size())
	})
}

// FuzzTables reads any bytes as each of the other files.
func FuzzTables(f *testing.F) {
	for _, seed := range []string{"", "0\n1\n3 10\n", "0\n1\nt 0 12\n", "version: 0\ntopic_id: Syo9mJEBTZyAKx9vPBGq_g", "0\n-1\n",
		"\x00\x01\x48\x67\x4b\xc7\x00\x00\x00\x00", "\x00\x00\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		offsets, zeros, err := inspect.ReadOffsetIndex(data, 5)
		if err == nil {
			require.Len(t, data, 8*(len(offsets)+zeros))
		}
		times, zeros, err := inspect.ReadTimeIndex(data, 5)
		if err == nil {
			require.Len(t, data, 12*(len(times)+zeros))
		}
		if list, err := inspect.ReadTxnIndex(data); err == nil {
			require.Len(t, data, 34*len(list))
		}
		if list, err := inspect.ReadSnapshot(data); err == nil {
			require.Len(t, data, 10+46*len(list))
		}
		_, _ = inspect.ReadEpochs(data)
		_, _ = inspect.ReadOffsets(data)
		_, _ = inspect.ReadMetadata(data)
	})
}
