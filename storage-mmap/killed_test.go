//go:build unix

package storagemmap

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// segmentVariable names the segment that a child process of the test appends to until it is killed.
const segmentVariable = "STORAGEMMAP_TEST_SEGMENT"

// numbered is the n-th append of the child: its number, over and over, at a length that takes either way into the file.
func numbered(n int) []byte {
	b := make([]byte, 8*(1+n*37%900))
	for i := 0; i < len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], uint64(n+1))
	}
	return b
}

// TestKilledProcess holds that whatever Append has returned is in the file when the process is killed, and that what is
// behind it can be cut off.
func TestKilledProcess(t *testing.T) {
	if path := os.Getenv(segmentVariable); path != "" {
		appendForever(t, path)
	}
	for _, until := range []int{1, 10, 100, 3000} {
		path := filepath.Join(t.TempDir(), "a.log")
		child := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
		child.Env = append(os.Environ(), segmentVariable+"="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		told := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "appended "))
			require.NoError(t, err, lines.Text())
			told = n
			if n == until {
				require.NoError(t, child.Process.Kill())
			}
		}
		require.Error(t, child.Wait(), "it was killed")
		require.GreaterOrEqual(t, told, until)

		var want []byte
		for n := range told {
			want = append(want, numbered(n)...)
		}
		g, err := started(t, DefaultOptions()).Open(path, storage.Options{Capacity: 64 << 20})
		require.NoError(t, err)
		require.Equal(t, length(t, path), g.Size())
		got := make([]byte, len(want))
		_, err = g.ReadAt(got, 0)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, g.Truncate(int64(len(want))))
		require.Equal(t, int64(len(want)), length(t, path))
		_, err = g.Append(numbered(told))
		require.NoError(t, err)
		require.NoError(t, g.Close())
	}
}

func appendForever(t *testing.T, path string) {
	g, err := started(t, DefaultOptions()).Create(path, storage.Options{Capacity: 64 << 20})
	require.NoError(t, err)
	for n := 0; ; n++ {
		_, err := g.Append(numbered(n))
		require.NoError(t, err)
		fmt.Println("appended", n+1)
	}
}
