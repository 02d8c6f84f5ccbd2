package storagesendfile

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// segment implements storage.Segment over a plain file that is exactly as long as the segment.
type segment struct {
	storage  *Storage
	file     *segmentfile.File
	capacity int64
	readOnly bool
	size     atomic.Int64

	write   sync.Mutex // held by whatever changes the file: Append, Truncate, Seal, Close, Remove
	sealed  bool       // under write
	surplus bool       // under write: the file may hold blocks, or bytes of a failed append, beyond size
	reserve int64      // under write: up to where blocks are reserved, or not to be
}

func (g *segment) Size() int64 { return g.size.Load() }

func (g *segment) Append(b []byte) (int64, error) {
	g.write.Lock()
	defer g.write.Unlock()
	pos := g.size.Load()
	switch {
	case g.file.Closed():
		return 0, g.file.Error("append to", storage.ErrClosed)
	case g.sealed:
		return 0, g.file.Error("append to", storage.ErrSealed)
	case int64(len(b)) > g.capacity-pos:
		return 0, g.file.Error("append to", storage.ErrFull)
	}
	if err := g.file.Failed("append to"); err != nil {
		return 0, err
	}
	if end := pos + int64(len(b)); end > g.reserve && end > reserveFrom {
		g.reserveAhead(end)
	}
	if _, err := g.file.WriteAt(b, pos); err != nil {
		// What went out lies beyond the segment's end: cut it off, so that a later Open doesn't take it for data.
		g.surplus, g.reserve = g.file.Cut(pos) != nil, 0
		if !g.surplus && noSpace(err) {
			return 0, g.file.Error("append to", err) // as if nothing had happened: there may be room later
		}
		return 0, g.file.Fail("append to", err)
	}
	g.size.Store(pos + int64(len(b)))
	return pos, nil
}

// reserveFrom is up to where a segment has no blocks reserved: most partitions that get little never need more than this.
const reserveFrom = 64 << 10

// reserveAhead reserves blocks at least up to end: as many as the segment has, within the bounds of the options. Writes
// into reserved blocks cost half of what the file system's allocation on the way to the disk costs. Nothing hangs on it:
// when it fails, there is no more of it in this segment. The caller holds write.
func (g *segment) reserveAhead(end int64) {
	from := max(g.reserve, g.size.Load())
	n := min(max(from, reserveFrom), int64(g.storage.reserve))
	to := min(max(end, from+n), g.capacity)
	if n == 0 || g.capacity <= from {
		g.reserve = g.capacity
		return
	}
	g.surplus = true
	g.reserve = to
	if err := g.file.Reserve(from, to-from); err != nil {
		g.reserve = g.capacity
		if noSpace(err) && g.file.Cut(g.size.Load()) == nil {
			g.surplus = false // the little there is may be needed elsewhere
		}
	}
}

// noSpace tells the errors that say the disk, or somebody's share of it, is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (g *segment) View(pos, n int64) (storage.View, error) {
	if !g.file.Retain() {
		return nil, g.file.Error("view", storage.ErrClosed)
	}
	if size := g.size.Load(); pos < 0 || n < 0 || pos > size || n > size-pos {
		g.file.Release()
		return nil, g.file.Error("view", storage.ErrRange)
	}
	v := g.storage.views.Get().(*view)
	v.file, v.pos, v.n = g.file, pos, n
	return v, nil
}

func (g *segment) ReadAt(b []byte, pos int64) (int, error) {
	if !g.file.Retain() {
		return 0, g.file.Error("read", storage.ErrClosed)
	}
	defer g.file.Release()
	size := g.size.Load()
	if pos < 0 {
		return 0, g.file.Error("read", storage.ErrRange)
	}
	if pos >= size {
		return 0, io.EOF
	}
	part := b[:min(int64(len(b)), size-pos)]
	n, err := g.file.ReadAt(part, pos)
	switch {
	case n == len(part) && n == len(b):
		return n, nil
	case n == len(part):
		return n, io.EOF
	case err == io.EOF && g.size.Load() < pos+int64(len(part)):
		return n, io.EOF // truncated meanwhile
	case err == io.EOF:
		return n, g.file.Error("read", storage.ErrFault)
	default:
		return n, g.file.Error("read", err)
	}
}

func (g *segment) Sync() error { return g.file.Sync() }

func (g *segment) Truncate(size int64) error {
	g.write.Lock()
	defer g.write.Unlock()
	old := g.size.Load()
	switch {
	case g.file.Closed():
		return g.file.Error("truncate", storage.ErrClosed)
	case g.readOnly:
		return g.file.Error("truncate", storage.ErrSealed)
	case size < 0 || size > old:
		return g.file.Error("truncate", storage.ErrRange)
	}
	if err := g.file.Failed("truncate"); err != nil {
		return err
	}
	// The size goes first: from here on nobody gets a view of what is cut.
	g.size.Store(size)
	if err := g.file.Cut(size); err != nil {
		g.size.Store(old)
		return g.file.Fail("truncate", err)
	}
	g.surplus, g.reserve = false, 0
	return nil
}

func (g *segment) Seal() error {
	g.write.Lock()
	defer g.write.Unlock()
	if g.file.Closed() {
		return g.file.Error("seal", storage.ErrClosed)
	}
	return g.trim("seal")
}

// trim ends appending and gives back what lies beyond the segment's end. The caller holds write.
func (g *segment) trim(op string) error {
	g.sealed = true
	if !g.surplus {
		return nil
	}
	if err := g.file.Cut(g.size.Load()); err != nil {
		return g.file.Error(op, err)
	}
	g.surplus = false
	return nil
}

func (g *segment) Rename(path string) error { return g.file.Rename(path) }

func (g *segment) Remove() error {
	g.write.Lock()
	defer g.write.Unlock()
	return g.file.Remove()
}

func (g *segment) Close() error {
	g.write.Lock()
	defer g.write.Unlock()
	if g.file.Closed() {
		return nil
	}
	err := g.trim("close")
	g.file.Close()
	return err
}
