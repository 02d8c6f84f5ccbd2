// Package segmentfile is a kit for storages that keep each segment in one plain file: it owns the file descriptor, counts
// who still needs it, remembers its path and whether a write or sync of it has failed, and makes it durable.
//
// What isn't its business: how bytes get into the file and out of it, how many of them belong to the segment, and which
// calls a segment takes in which state. Those are the storage's.
package segmentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// closedBit is set in File.users once the owner has closed the file; the bits below it count who still uses it.
const closedBit = 1 << 62

// File is an open segment file. The segment that made it owns it and ends with Close or Remove; views and calls in flight
// are further users, which keep the descriptor open beyond that. All methods may be called from any goroutine.
//
// Errors are *fs.PathError with the present path, and wrap the sentinel errors of package storage where one applies.
type File struct {
	f     *os.File
	users atomic.Int64

	// changes counts what fdatasync(2) need not make durable: that the file was cut to a length. durable is how many of
	// these a full sync has seen to.
	changes atomic.Int64
	durable atomic.Int64

	failure atomic.Pointer[error]

	mu      sync.Mutex // guards path and removed
	path    string
	removed bool
}

// Create makes the file at path for reading and writing. It fails with fs.ErrExist, touching nothing, when something is
// there already. When reserve is positive, so many bytes of disk are reserved for it, without making it longer; if that
// fails no file is left behind.
func Create(path string, reserve int64) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, pathError("create", path, err)
	}
	file := newFile(f, path)
	if reserve > 0 {
		if err := reserveBlocks(f, reserve); err != nil {
			return nil, errors.Join(pathError("preallocate", path, err), file.Remove())
		}
	}
	return file, nil
}

// Open opens the file at path and gives its length. It fails with fs.ErrNotExist when there is none.
func Open(path string, readOnly bool) (*File, int64, error) {
	mode := os.O_RDWR
	if readOnly {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return nil, 0, pathError("open", path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, 0, errors.Join(pathError("open", path, err), f.Close())
	}
	return newFile(f, path), info.Size(), nil
}

func newFile(f *os.File, path string) *File {
	file := &File{f: f, path: path}
	file.users.Store(1)
	return file
}

// Retain adds a user, unless the file was closed or removed. The user must call Release.
func (f *File) Retain() bool {
	for {
		users := f.users.Load()
		if users&closedBit != 0 {
			return false
		}
		if f.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

// Share adds a user on behalf of one that is there already, even when the file was closed meanwhile.
func (f *File) Share() { f.users.Add(1) }

// Release takes a user away. The last one closes the descriptor; an error of that is dropped, as nothing written hangs
// on it: who wants durability calls Sync.
func (f *File) Release() {
	if f.users.Add(-1) == closedBit {
		_ = f.f.Close()
	}
}

// Closed says whether the owner has closed or removed the file.
func (f *File) Closed() bool { return f.users.Load()&closedBit != 0 }

// Close ends the owner's use; the file stays open until its other users have released it. It reports whether this call
// was the one that closed it: closing again changes nothing.
func (f *File) Close() bool {
	for {
		users := f.users.Load()
		if users&closedBit != 0 {
			return false
		}
		if f.users.CompareAndSwap(users, users|closedBit) {
			f.Release()
			return true
		}
	}
}

// Remove closes the file, if that hasn't been done, and deletes it. Removing it again is fine and does nothing, even when
// another file has taken its name since.
func (f *File) Remove() error {
	f.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.removed {
		return nil
	}
	if err := os.Remove(f.path); err != nil {
		return pathError("remove", f.path, err)
	}
	f.removed = true
	return nil
}

// Rename moves the file, within its file system, over whatever is at the new path. storage.ErrClosed after Close.
func (f *File) Rename(path string) error {
	if !f.Retain() {
		return f.Error("rename", storage.ErrClosed)
	}
	defer f.Release()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.Rename(f.path, path); err != nil {
		return fmt.Errorf("rename segment file: %w", err)
	}
	f.path = path
	return nil
}

// Path is where the file is now.
func (f *File) Path() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.path
}

// ReadAt reads the file as it is on disk, up to its length there. The caller must be a user.
func (f *File) ReadAt(b []byte, pos int64) (int, error) { return f.f.ReadAt(b, pos) }

// WriteAt writes at pos, whatever the length of the file. After an error any part of b may have been written, whatever the
// number says: os.File counts whole rounds only. The caller must be a user.
func (f *File) WriteAt(b []byte, pos int64) (int, error) { return f.f.WriteAt(b, pos) }

// Cut shortens the file to length, and gives back blocks reserved beyond it. It never makes the file longer: one that is
// shorter already was cut by somebody else, and gives storage.ErrFault. The caller must be a user.
func (f *File) Cut(length int64) error {
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < length {
		return storage.ErrFault
	}
	err = f.f.Truncate(length)
	f.changes.Add(1)
	return err
}

// Sync makes what was written and cut before the call durable on the device. The entry in the directory isn't part of it.
// storage.ErrClosed after Close; storage.ErrFailed when an earlier write or sync failed. An error marks the file failed.
func (f *File) Sync() error {
	if !f.Retain() {
		return f.Error("sync", storage.ErrClosed)
	}
	defer f.Release()
	if err := f.Failed("sync"); err != nil {
		return err
	}
	changes := f.changes.Load()
	if changes == f.durable.Load() {
		if err := syncData(f.f); err != nil {
			return f.Fail("sync", err)
		}
		return nil
	}
	if err := f.f.Sync(); err != nil {
		return f.Fail("sync", err)
	}
	for {
		durable := f.durable.Load()
		if durable >= changes || f.durable.CompareAndSwap(durable, changes) {
			return nil
		}
	}
}

// Fail marks the file as failed, because op gave err, and returns the error to hand out. The first failure is kept.
func (f *File) Fail(op string, err error) error {
	err = f.Error(op, err)
	f.failure.CompareAndSwap(nil, &err)
	return err
}

// Failed gives nil, or the error for op when the file was marked failed before: it wraps storage.ErrFailed and the cause.
func (f *File) Failed(op string) error {
	cause := f.failure.Load()
	if cause == nil {
		return nil
	}
	return f.Error(op, fmt.Errorf("%w: %w", storage.ErrFailed, *cause))
}

// Error wraps err with the operation and the present path.
func (f *File) Error(op string, err error) error { return pathError(op, f.Path(), err) }

func pathError(op, path string, err error) error {
	// The error of an *os.File carries the path under which it was opened, which may be long gone.
	if inner, ok := err.(*fs.PathError); ok {
		err = inner.Err
	}
	return &fs.PathError{Op: op + " segment", Path: path, Err: err}
}
