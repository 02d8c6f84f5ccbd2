//go:build unix

package wire

import (
	"math"
	"net"
	"syscall"
)

// defaultDescriptors is nine tenths of the files that this process may have open. The system gives the lowest number that is
// free, so that whoever stays below leaves the rest to the others: a log that can't open a file takes its directory offline.
func defaultDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	most := min(uint64(limit.Cur), math.MaxInt32)
	return int(most - most/10)
}

// descriptor is the number of a connection's file descriptor, 0 when it has none.
func descriptor(nc net.Conn) (n int) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	if raw.Control(func(fd uintptr) { n = int(fd) }) != nil {
		return 0
	}
	return n
}
