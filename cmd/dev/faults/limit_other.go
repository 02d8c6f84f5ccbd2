//go:build !linux

package faults

import "errors"

// limitFiles lets no file of a process grow beyond so many bytes from now on: to it the disk is full.
func limitFiles(int, uint64) error {
	return errors.New("only Linux lets one process limit the files of another")
}
