package logcheck

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
)

// segment is a good segment of three batches of two records, with full indexes.
func segment(t *testing.T) (data, index, times []byte) {
	for i := range int64(3) {
		b := record.NewBuilder(record.Options{BaseOffset: 2 * i})
		for k := range int64(2) {
			require.NoError(t, b.Append(record.Record{Offset: 2*i + k, Timestamp: 10*i + k, Value: []byte("v")}))
		}
		index = binary.BigEndian.AppendUint32(index, uint32(2*i+1))
		index = binary.BigEndian.AppendUint32(index, uint32(len(data)))
		times = binary.BigEndian.AppendUint64(times, uint64(10*i+1))
		times = binary.BigEndian.AppendUint32(times, uint32(2*i+1))
		var err error
		data, err = b.Build(data, nil)
		require.NoError(t, err)
	}
	return data, index, times
}

func TestDirectory(t *testing.T) {
	inOrder := true
	check := func(change func(data, index, times []byte) ([]byte, []byte, []byte)) (Found, error) {
		dir := t.TempDir()
		part := filepath.Join(dir, "t-0")
		require.NoError(t, os.Mkdir(part, 0o755))
		if inOrder {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".kafka_cleanshutdown"), nil, 0o644))
		}
		data, index, times := change(segment(t))
		for kind, content := range map[string][]byte{"log": data, "index": index, "timeindex": times} {
			if content != nil {
				require.NoError(t, os.WriteFile(filepath.Join(part, "00000000000000000000."+kind), content, 0o644))
			}
		}
		return Directory(dir)
	}
	found, err := check(func(d, i, tm []byte) ([]byte, []byte, []byte) { return d, i, tm })
	require.NoError(t, err)
	require.Equal(t, Found{Partitions: 1, Segments: 1, Batches: 3, OffsetEntries: 3, TimeEntries: 3}, found)
	_, err = check(func(d, _, tm []byte) ([]byte, []byte, []byte) { return d, []byte{}, tm })
	require.NoError(t, err, "an index may have fewer entries")

	for want, change := range map[string]func(d, i, tm []byte) ([]byte, []byte, []byte){
		"unfinished batch":            func(d, i, tm []byte) ([]byte, []byte, []byte) { return d[:len(d)-1], i, tm },
		"checksum is":                 func(d, i, tm []byte) ([]byte, []byte, []byte) { d[len(d)-2] ^= 1; return d, i, tm },
		"at least 2 should be":        func(d, i, tm []byte) ([]byte, []byte, []byte) { d[len(d)/3+7] = 0; return d, i, tm },
		"no batch begins at 1":        func(d, i, tm []byte) ([]byte, []byte, []byte) { i[7] = 1; return d, i, tm },
		"batch at 0 ends with 1":      func(d, i, tm []byte) ([]byte, []byte, []byte) { i[3] = 0; return d, i, tm },
		"follows":                     func(d, i, tm []byte) ([]byte, []byte, []byte) { return d, append(i[:8:8], i...), tm },
		"no multiple of 8":            func(d, i, tm []byte) ([]byte, []byte, []byte) { return d, i[:7], tm },
		"no batch ends with offset 0": func(d, i, tm []byte) ([]byte, []byte, []byte) { tm[11] = 0; return d, i, tm },
		"but the batch with offset 1": func(d, i, tm []byte) ([]byte, []byte, []byte) { tm[7] = 7; return d, i, tm },
		"but there is 21":             func(d, i, tm []byte) ([]byte, []byte, []byte) { return d, i, tm[:24] },
		"is missing":                  func(d, _, tm []byte) ([]byte, []byte, []byte) { return d, nil, tm },
		"there is no such segment":    func(_, i, tm []byte) ([]byte, []byte, []byte) { return nil, i, tm },
	} {
		_, err := check(change)
		require.ErrorContains(t, err, want)
	}
	torn := func(d, i, tm []byte) ([]byte, []byte, []byte) { return d[:len(d)-1], i[:16], tm[:24] }
	_, err = check(torn)
	require.Error(t, err)
	inOrder = false
	_, err = check(torn)
	require.NoError(t, err, "an append was interrupted")
}
