//go:build !linux

package scale

import "errors"

// forget takes a file out of the page cache.
func forget(string) error { return errors.New("files can be taken out of memory on Linux only") }
