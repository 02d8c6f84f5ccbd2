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

// Reserve reserves blocks for n bytes from pos on, beyond the end of the file or not, without making it longer. After an
// error, which may be errors.ErrUnsupported, some may be reserved; Cut gives them back. The caller must be a user.
func (f *File) Reserve(pos, n int64) error {
	return fallocate(f.Fd(), unix.FALLOC_FL_KEEP_SIZE, pos, n)
}

func fallocate(fd int, mode uint32, pos, n int64) error {
	for {
		if err := unix.Fallocate(fd, mode, pos, n); err != unix.EINTR {
			return err
		}
	}
}
