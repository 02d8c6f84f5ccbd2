//go:build unix

package segmentfile

// Fd is the file descriptor, for system calls of the storage. The caller must be a user for as long as it uses it.
func (f *File) Fd() int { return int(f.f.Fd()) }
