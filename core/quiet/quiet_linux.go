//go:build !race

package quiet

import (
	"syscall"
	"unsafe"
)

// short is how many bytes are copied in so little time that nobody need watch: some microseconds.
const short = 64 << 10

func read(fd uintptr, p []byte) (int, error) {
	if len(p) == 0 || len(p) > short {
		return syscall.Read(int(fd), p)
	}
	return untold(syscall.SYS_READ, fd, p)
}

func write(fd uintptr, p []byte) (int, error) {
	if len(p) == 0 || len(p) > short {
		return syscall.Write(int(fd), p)
	}
	return untold(syscall.SYS_WRITE, fd, p)
}

// untold makes the call, of which the scheduler learns nothing.
func untold(call, fd uintptr, p []byte) (int, error) {
	n, _, failed := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if failed != 0 {
		return 0, failed
	}
	return int(n), nil
}
