package faults

import "golang.org/x/sys/unix"

// limitFiles lets no file of a process grow beyond so many bytes from now on: to it the disk is full.
func limitFiles(pid int, bytes uint64) error {
	return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil)
}
