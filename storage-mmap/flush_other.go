//go:build unix && !linux

package storagemmap

import "golang.org/x/sys/unix"

// flushMap hands what was changed through the map over to the file: POSIX promises no more of fsync(2) than to write
// what was written with write(2).
func flushMap(m *mapping, size int64) error {
	if !m.writable || size == 0 {
		return nil
	}
	return unix.Msync(m.data[:size], unix.MS_SYNC)
}
