//go:build unix

package storagetest

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the CPU time of this process so far, its own and the kernel's for it.
func cpuTime() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
