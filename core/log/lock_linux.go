package log

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

var errLocked = errors.New("locked by somebody else")

// lockExclusive locks a file until it is closed. The lock belongs to the open file, so that two brokers of one process
// exclude each other, and it excludes the fcntl lock that a Java process takes.
func lockExclusive(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errLocked
	}
	return err
}
