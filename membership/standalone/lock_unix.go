//go:build unix

package standalone

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file for this process. The system gives it back when the file is closed, also by the process's death.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errInUse
	}
	return err
}
