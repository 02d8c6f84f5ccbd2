//go:build unix

package quiet

import "syscall"

// Read is read(2) on a descriptor that doesn't block: it gives how many bytes came, 0 at the end, and an error of the system as it is, EAGAIN when
// there is nothing to read. It goes on after EINTR. The descriptor has to stay open meanwhile, as it does inside [syscall.RawConn]'s Read.
func Read(fd uintptr, p []byte) (int, error) {
	for {
		n, err := read(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// Write is write(2) on a descriptor that doesn't block: it gives how many bytes were taken, which may be a part of them, and an error of the system as
// it is, EAGAIN when there is no room. It goes on after EINTR. The descriptor has to stay open meanwhile, as it does inside [syscall.RawConn]'s Write.
func Write(fd uintptr, p []byte) (int, error) {
	for {
		n, err := write(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
