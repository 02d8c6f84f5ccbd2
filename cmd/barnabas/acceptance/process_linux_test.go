package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// memory is the memory of the process that no file backs, in bytes.
func (n *node) memory() int64 {
	n.t.Helper()
	for line := range strings.Lines(string(read(n.t, fmt.Sprintf("/proc/%d/status", n.Pid())))) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			require.NoError(n.t, err)
			return kib << 10
		}
	}
	require.Fail(n.t, "no RssAnon")
	return 0
}

// cpu is the processor time that the process has used.
func (n *node) cpu() time.Duration {
	n.t.Helper()
	stat := read(n.t, fmt.Sprintf("/proc/%d/stat", n.Pid()))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the state on, which is the third
	const tick = 10 * time.Millisecond
	var sum int64
	for _, f := range fields[11:13] { // utime and stime
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		require.NoError(n.t, err)
		sum += ticks
	}
	return time.Duration(sum) * tick
}

// descriptors is how many files and connections the process has open.
func (n *node) descriptors() int {
	n.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Pid()))
	require.NoError(n.t, err)
	return len(entries)
}

// maps is how many mappings the process has.
func (n *node) maps() int {
	n.t.Helper()
	return bytes.Count(read(n.t, fmt.Sprintf("/proc/%d/maps", n.Pid())), []byte("\n"))
}

// processes is how many processes a command has that name it, dead ones apart.
func processes(command string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		// A process that ends meanwhile, or has ended, has none.
		if b, err := os.ReadFile(line); err == nil && bytes.HasPrefix(b, append([]byte(command), 0)) {
			n++
		}
	}
	return n
}

// peak is the largest that the process's memory ever was, with the files that it has mapped.
func (n *node) peak() int64 {
	n.t.Helper()
	for line := range strings.Lines(string(read(n.t, fmt.Sprintf("/proc/%d/status", n.Pid())))) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			require.NoError(n.t, err)
			return kib << 10
		}
	}
	require.Fail(n.t, "no VmHWM")
	return 0
}
