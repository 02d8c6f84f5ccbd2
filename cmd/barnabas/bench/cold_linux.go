package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DropCache makes the kernel forget what it has cached of all files below a directory (posix_fadvise, POSIX_FADV_DONTNEED),
// after it has written them. It gives the part of their bytes that is cached all the same: pages that a process has mapped
// stay, so a broker that maps its segments has to be started anew before.
func DropCache(dir string) (left float64, err error) {
	var size, cached int64
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil // deleted meanwhile
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		n, in, err := dropFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		size, cached = size+n, cached+in
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("drop the page cache of %s: %w", dir, err)
	}
	return per(float64(cached), float64(size)), nil
}

func dropFile(path string) (size, cached int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if err := f.Sync(); err != nil { // what isn't written can't be forgotten
		return 0, 0, err
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, 0, &fs.PathError{Op: "fadvise", Path: path, Err: err}
	}
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, 0, err
	}
	cached, err = inCache(f, info.Size())
	return info.Size(), cached, err
}

// inCache is how many bytes of a file the kernel has cached.
func inCache(f *os.File, size int64) (int64, error) {
	m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, &fs.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	defer func() { _ = unix.Munmap(m) }()
	page := int64(os.Getpagesize())
	pages := make([]byte, (size+page-1)/page)
	if _, _, code := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&pages[0]))); code != 0 {
		return 0, &fs.PathError{Op: "mincore", Path: f.Name(), Err: code}
	}
	n := int64(0)
	for _, p := range pages {
		n += int64(p & 1)
	}
	return min(n*page, size), nil
}
