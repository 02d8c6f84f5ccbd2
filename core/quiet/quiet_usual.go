//go:build unix && (!linux || race)

package quiet

import "syscall"

func read(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }

func write(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
