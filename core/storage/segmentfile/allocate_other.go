//go:build !linux && !darwin

package segmentfile

import (
	"errors"
	"os"
)

func reserveBlocks(*os.File, int64) error { return errors.ErrUnsupported }

// Allocate makes the file n bytes longer, from pos, which is its length, and reserves the blocks for them: a later write
// there through a map can't run into a full disk. The new bytes read as zeros. After an error the file is as long as it
// was. The caller must be a user.
func (f *File) Allocate(pos, n int64) error {
	err := writeZeros(f.f, pos, n)
	if err != nil {
		_ = f.f.Truncate(pos)
	}
	return err
}
