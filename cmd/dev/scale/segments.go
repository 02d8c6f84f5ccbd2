package scale

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const long = "long"

// segments makes a log of many segments and starts over it, with none of its bytes in memory.
func segments(ctx context.Context, f *field) error {
	n, err := f.start(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { n.Kill() }()
	const size = 1 << 20
	if err := n.create(ctx, long, 1, 1, map[string]string{"segment.bytes": strconv.Itoa(size)}); err != nil {
		return err
	}
	without, err := n.restartCold(ctx)
	if err != nil {
		return err
	}
	if err := n.fill(ctx, long, f.Segments*size); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(n.Data, long+"-0", "*.log"))
	if err != nil {
		return err
	}
	f.atLeast(float64(f.Segments), float64(len(logs)), "segments")
	with, err := n.restartCold(ctx)
	if err != nil {
		return err
	}
	f.atMost(1, float64(with.read-without.read)/float64(len(logs))/1e3, "KB read for each segment by a start, with nothing cached")
	f.atMost(64, float64(with.loaded-without.loaded)/float64(len(logs))/1e3, "KB loaded from the disk for each segment, read-ahead included")
	f.atMost(1.1, float64(with.descriptors-without.descriptors)/float64(len(logs)), "file descriptors for each segment")
	f.atMost(0, float64(with.segmentMaps-without.segmentMaps), "memory maps of segments that nobody reads")
	f.atMost(0.5, with.took-without.took, "s: what the start takes longer")
	return n.Stop()
}

// started is what a start took.
type started struct {
	holdings
	took   float64 // seconds
	read   int64   // bytes that system calls read
	loaded int64   // bytes that came from the disk
}

// restartCold stops the broker, takes its files out of memory and starts it.
func (n *node) restartCold(ctx context.Context) (s started, err error) {
	if err := n.Stop(); err != nil {
		return s, err
	}
	err = filepath.WalkDir(n.Data, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return forget(path)
	})
	if err != nil {
		return s, err
	}
	took, err := n.again(ctx)
	if err != nil {
		return s, err
	}
	s.took = took.Seconds()
	if s.read, s.loaded, err = transfers(n.Pid()); err == nil {
		s.holdings, err = n.holds(ctx)
	}
	return s, err
}

// transfers is what a process has read: through system calls, and from disks.
func transfers(pid int) (read, loaded int64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "rchar":
			read = n
		case "read_bytes":
			loaded = n
		}
	}
	return read, loaded, nil
}
