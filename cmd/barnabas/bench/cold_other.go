//go:build !linux

package bench

import "errors"

// DropCache makes the kernel forget what it has cached of files. Only Linux does.
func DropCache(string) (float64, error) {
	return 0, errors.New("the page cache can only be dropped on Linux: leave --cold out")
}
