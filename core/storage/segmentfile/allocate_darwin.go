package segmentfile

import (
	"os"

	"golang.org/x/sys/unix"
)

func reserveBlocks(f *os.File, n int64) error {
	return unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &unix.Fstore_t{
		Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: n,
	})
}

// Allocate makes the file n bytes longer, from pos, which is its length, and reserves the blocks for them: a later write
// there through a map can't run into a full disk. The new bytes read as zeros. After an error the file is as long as it
// was. The caller must be a user.
func (f *File) Allocate(pos, n int64) error {
	err := reserveBlocks(f.f, n)
	if err == unix.ENOTSUP {
		err = writeZeros(f.f, pos, n)
	}
	if err == nil {
		err = f.f.Truncate(pos + n)
	}
	if err != nil {
		_ = f.f.Truncate(pos)
	}
	return err
}
