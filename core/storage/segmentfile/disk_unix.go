//go:build unix

package segmentfile

import "os"

// Fd is the file descriptor, for system calls of the storage. The caller must be a user for as long as it uses it.
func (f *File) Fd() int { return int(f.f.Fd()) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
