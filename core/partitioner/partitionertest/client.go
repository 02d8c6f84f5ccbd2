package partitionertest

import (
	"context"
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// AsRecorded compares a started partitioner with what a client did, as a file says that was recorded from it. The file has
// columns parted by tabs. The first line says "key" and numbers of partitions; each line after it has a key, in hexadecimal, and
// the partition that the client gave it among that many.
func AsRecorded(t TB, p partitioner.Partitioner, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	counts := strings.Split(lines[0], "\t")
	require.Equal(t, "key", counts[0], "%s is no such file", file)
	require.Greater(t, len(counts), 1, "%s has no numbers of partitions", file)
	require.Greater(t, len(lines), 1, "%s has no keys", file)
	for column := 1; column < len(counts); column++ {
		n, err := strconv.ParseInt(counts[column], 10, 32)
		require.NoError(t, err)
		b := &partitioner.Batch{Topic: "t", Partitions: int32(n)}
		var want []string
		for _, line := range lines[1:] {
			fields := strings.Split(line, "\t")
			require.Len(t, fields, len(counts), "line %q", line)
			key, err := hex.DecodeString(fields[0])
			require.NoError(t, err)
			b.Records = append(b.Records, partitioner.Record{Key: key})
			want = append(want, fields[column])
		}
		got, err := p.Partition(context.Background(), nil, b)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range got {
			require.Equal(t, want[i], strconv.Itoa(int(got[i])), "key %x of %d partitions", b.Records[i].Key, n)
		}
	}
}
