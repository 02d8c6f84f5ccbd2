package log

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// replaceFile makes content the file at path, so that after a crash there is either the old file or the new one, whole.
// With syncDir the new one is sure to be there on return.
func replaceFile(path string, content []byte, syncDir bool) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(tmp)
		return fmt.Errorf("write %s: %w", tmp, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	if syncDir {
		return syncPath(filepath.Dir(path))
	}
	return nil
}

// syncFile makes what was written to the file at path durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncPath makes the entries of a directory durable. Windows has no such thing.
func syncPath(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// noSpace tells the errors that say the disk, or somebody's share of it, is full. They may be over soon.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// noDescriptors tells the errors that say that this process, or the system, has as many files open as it may.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// readFile fills b from the file at path, from off on. A file that ends before is damaged.
func readFile(path string, b []byte, off int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadAt(b, off); err != nil {
		if err == io.EOF {
			err = errDamaged
		}
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
