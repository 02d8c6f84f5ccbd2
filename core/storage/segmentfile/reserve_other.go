//go:build !linux

package segmentfile

import "errors"

// Reserve reserves blocks for n bytes from pos on, without making the file longer. It is errors.ErrUnsupported here.
func (f *File) Reserve(pos, n int64) error { return errors.ErrUnsupported }
