package storagetest

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// plain is the simplest implementation that passes the suite: a file, and copies. It is what the broken ones are made of.
type plain struct{ running atomic.Bool }

func (p *plain) Start(context.Context) error { p.running.Store(true); return nil }
func (p *plain) Stop(context.Context) error  { p.running.Store(false); return nil }

var errNotRunning = errors.New("not running")

func (p *plain) Create(path string, o storage.Options) (storage.Segment, error) {
	if !p.running.Load() {
		return nil, errNotRunning
	}
	var reserve int64
	if o.Preallocate {
		reserve = o.Capacity
	}
	f, err := segmentfile.Create(path, reserve)
	if err != nil {
		return nil, err
	}
	return &plainSegment{f: f, capacity: o.Capacity}, nil
}

func (p *plain) Open(path string, o storage.Options) (storage.Segment, error) {
	if !p.running.Load() {
		return nil, errNotRunning
	}
	f, size, err := segmentfile.Open(path, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	g := &plainSegment{f: f, capacity: max(o.Capacity, size), readOnly: o.ReadOnly, sealed: o.ReadOnly}
	g.size.Store(size)
	return g, nil
}

type plainSegment struct {
	f        *segmentfile.File
	capacity int64
	readOnly bool
	size     atomic.Int64
	mu       sync.Mutex
	sealed   bool
}

func (g *plainSegment) Size() int64 { return g.size.Load() }

func (g *plainSegment) Append(b []byte) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pos := g.size.Load()
	switch {
	case g.f.Closed():
		return 0, g.f.Error("append", storage.ErrClosed)
	case g.sealed:
		return 0, g.f.Error("append", storage.ErrSealed)
	case int64(len(b)) > g.capacity-pos:
		return 0, g.f.Error("append", storage.ErrFull)
	}
	if err := g.f.Failed("append"); err != nil {
		return 0, err
	}
	if _, err := g.f.WriteAt(b, pos); err != nil {
		_ = g.f.Cut(pos)
		return 0, g.f.Fail("append", err)
	}
	g.size.Add(int64(len(b)))
	return pos, nil
}

func (g *plainSegment) View(pos, n int64) (storage.View, error) {
	if !g.f.Retain() {
		return nil, g.f.Error("view", storage.ErrClosed)
	}
	if size := g.size.Load(); pos < 0 || n < 0 || pos > size || n > size-pos {
		g.f.Release()
		return nil, g.f.Error("view", storage.ErrRange)
	}
	return &plainView{g.f, pos, n}, nil
}

func (g *plainSegment) ReadAt(b []byte, pos int64) (int, error) {
	if !g.f.Retain() {
		return 0, g.f.Error("read", storage.ErrClosed)
	}
	defer g.f.Release()
	if pos < 0 {
		return 0, storage.ErrRange
	}
	size := g.size.Load()
	if pos >= size {
		return 0, io.EOF
	}
	part := b[:min(int64(len(b)), size-pos)]
	n, err := g.f.ReadAt(part, pos)
	switch {
	case n == len(b):
		return n, nil
	case n == len(part), g.size.Load() < size:
		return n, io.EOF
	case err == io.EOF:
		err = storage.ErrFault
	}
	return n, err
}

func (g *plainSegment) Sync() error { return g.f.Sync() }

func (g *plainSegment) Truncate(size int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.f.Closed():
		return storage.ErrClosed
	case g.readOnly:
		return storage.ErrSealed
	case size < 0 || size > g.size.Load():
		return storage.ErrRange
	}
	g.size.Store(size)
	return g.f.Cut(size)
}

func (g *plainSegment) Seal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.f.Closed() {
		return storage.ErrClosed
	}
	g.sealed = true
	if g.readOnly {
		return nil
	}
	return g.f.Cut(g.size.Load())
}

func (g *plainSegment) Rename(path string) error { return g.f.Rename(path) }

func (g *plainSegment) Remove() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.f.Remove()
}

func (g *plainSegment) Close() error {
	err := g.Seal()
	if errors.Is(err, storage.ErrClosed) {
		return nil
	}
	g.f.Close()
	return err
}

type plainView struct {
	f      *segmentfile.File
	pos, n int64
}

func (v *plainView) Len() int64     { return v.n }
func (v *plainView) Mapped() []byte { return nil }
func (v *plainView) Release()       { v.f.Release() }

func (v *plainView) Slice(from, n int64) (storage.View, error) {
	if from < 0 || n < 0 || from > v.n || n > v.n-from {
		return nil, storage.ErrRange
	}
	v.f.Share()
	return &plainView{v.f, v.pos + from, n}, nil
}

func (v *plainView) Bytes([]byte) ([]byte, error) {
	b := make([]byte, v.n)
	if n, err := v.f.ReadAt(b, v.pos); n < len(b) {
		return nil, errors.Join(storage.ErrFault, err)
	}
	return b, nil
}

func (v *plainView) WriteTo(w io.Writer) (int64, error) {
	b, err := v.Bytes(nil)
	if err != nil {
		return 0, err
	}
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return int64(n), err
}
