package log

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// plainStorage is the simplest storage that keeps the contract: files, and views that read them.
type plainStorage struct {
	mu sync.Mutex
	// failSync and failAppend, when set, are what the next sync or append of any segment returns.
	failSync, failAppend error
	syncs                int
}

func (*plainStorage) Start(context.Context) error { return nil }
func (*plainStorage) Stop(context.Context) error  { return nil }

func (p *plainStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &plainSegment{st: p, f: f, path: path, capacity: o.Capacity}, nil
}

func (p *plainStorage) Open(path string, o storage.Options) (storage.Segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &plainSegment{st: p, f: f, path: path, capacity: max(o.Capacity, st.Size()), size: st.Size(), sealed: o.ReadOnly}, nil
}

type plainSegment struct {
	st       *plainStorage
	mu       sync.Mutex
	f        *os.File
	path     string
	capacity int64
	size     int64
	sealed   bool
	closed   bool
}

func (s *plainSegment) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

func (s *plainSegment) Append(b []byte) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, storage.ErrClosed
	case s.sealed:
		return 0, storage.ErrSealed
	case s.size+int64(len(b)) > s.capacity:
		return 0, storage.ErrFull
	case s.st.failAppend != nil:
		return 0, s.st.failAppend
	}
	if _, err := s.f.WriteAt(b, s.size); err != nil {
		return 0, err
	}
	pos := s.size
	s.size += int64(len(b))
	return pos, nil
}

func (s *plainSegment) View(pos, n int64) (storage.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, storage.ErrClosed
	}
	if pos < 0 || n < 0 || pos+n > s.size {
		return nil, storage.ErrRange
	}
	b := make(plainView, n)
	if _, err := s.f.ReadAt(b, pos); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrFault, err)
	}
	return b, nil
}

func (s *plainSegment) ReadAt(b []byte, pos int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, storage.ErrClosed
	}
	n := min(int64(len(b)), max(0, s.size-pos))
	if _, err := s.f.ReadAt(b[:n], pos); err != nil {
		return 0, err
	}
	if n < int64(len(b)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

func (s *plainSegment) Sync() error {
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	s.st.syncs++
	if s.st.failSync != nil {
		return s.st.failSync
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return storage.ErrClosed
	}
	return nil
}

func (s *plainSegment) Truncate(size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size < 0 || size > s.size {
		return storage.ErrRange
	}
	s.size = size
	return s.f.Truncate(size)
}

func (s *plainSegment) Seal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
	return nil
}

func (s *plainSegment) Rename(path string) error {
	err := os.Rename(s.path, path)
	s.path = path
	return err
}

func (s *plainSegment) Remove() error {
	s.Close()
	return os.Remove(s.path)
}

func (s *plainSegment) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.f.Close()
}

type plainView []byte

func (v plainView) Len() int64 { return int64(len(v)) }
func (v plainView) Slice(from, n int64) (storage.View, error) {
	if from < 0 || n < 0 || from+n > v.Len() {
		return nil, storage.ErrRange
	}
	return v[from : from+n], nil
}
func (v plainView) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(v)
	return int64(n), err
}
func (v plainView) Bytes([]byte) ([]byte, error) { return v, nil }
func (v plainView) Mapped() []byte               { return nil }
func (v plainView) Release()                     {}
