package segmentfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func reserveBlocks(f *os.File, n int64) error {
	return fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, n)
}

// Allocate makes the file n bytes longer, from pos, which is its length, and reserves the blocks for them: a later write
// there through a map can't run into a full disk. The new bytes read as zeros. After an error the file is as long as it
// was. The caller must be a user.
func (f *File) Allocate(pos, n int64) error {
	err := fallocate(f.Fd(), 0, pos, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = writeZeros(f.f, pos, n)
	}
	if err != nil {
		_ = f.f.Truncate(pos)
	}
	return err
}

func fallocate(fd int, mode uint32, pos, n int64) error {
	for {
		if err := unix.Fallocate(fd, mode, pos, n); err != unix.EINTR {
			return err
		}
	}
}
