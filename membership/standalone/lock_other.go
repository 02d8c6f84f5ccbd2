//go:build !unix

package standalone

import (
	"errors"
	"os"
)

// lock refuses: without file locks two brokers could write the same file.
func lock(*os.File) error {
	return errors.New("standalone coordination needs a system with file locks (flock)")
}
