//go:build !unix

package consensus

import (
	"errors"
	"io"
)

// LockDir takes a directory for this process, which this system has no way for.
func LockDir(string) (io.Closer, error) {
	return nil, errors.New("directories can't be locked on this system")
}
