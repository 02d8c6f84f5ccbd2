//go:build unix

package storagemmap

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// segment implements storage.Segment over a file, and a map of it that is made when it is first of use: one of the whole
// capacity while the segment is written to, a read-only one of its size later. Without a map everything still works,
// through the descriptor: that is how it goes on when the system allows no more maps.
type segment struct {
	storage  *mmapStorage
	file     *segmentfile.File
	capacity int64
	readOnly bool
	size     atomic.Int64
	sealed   atomic.Bool // changed under write

	write    sync.Mutex // held by whatever changes the file: Append, Truncate, Seal, Close, Remove
	length   int64      // under write: of the file; what lies beyond size is allocated for appends
	reserved bool       // under write: there may be blocks beyond length

	remap   sync.Mutex // held to set current
	current atomic.Pointer[mapping]
}

func (g *segment) Size() int64 { return g.size.Load() }

func (g *segment) Append(b []byte) (int64, error) {
	g.write.Lock()
	defer g.write.Unlock()
	pos := g.size.Load()
	switch {
	case g.file.Closed():
		return 0, g.file.Error("append to", storage.ErrClosed)
	case g.sealed.Load():
		return 0, g.file.Error("append to", storage.ErrSealed)
	case int64(len(b)) > g.capacity-pos:
		return 0, g.file.Error("append to", storage.ErrFull)
	}
	if err := g.file.Failed("append to"); err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return pos, nil
	}
	if err := g.put(b, pos); err != nil {
		// What went out lies beyond the segment's end: cut it off, so that a later Open doesn't take it for data.
		cut := g.file.Cut(pos)
		if cut == nil {
			g.length, g.reserved = pos, false
		}
		if cut == nil && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)) {
			return 0, g.file.Error("append to", err) // as if nothing had happened: there may be room later
		}
		return 0, g.file.Fail("append to", err)
	}
	g.size.Store(pos + int64(len(b)))
	return pos, nil
}

// put writes b at pos, the end of the segment. The caller holds write.
func (g *segment) put(b []byte, pos int64) error {
	end := pos + int64(len(b))
	if end > g.length {
		// A small segment is an ordinary file: most partitions that get little never need more than this.
		if end <= int64(g.storage.options.MinGrowth) {
			_, err := g.file.WriteAt(b, pos)
			g.length = end
			return err
		}
		if err := g.grow(end); err != nil {
			return err
		}
	}
	if int64(len(b)) < int64(g.storage.options.CopyBelow) {
		// Seal and Close hold write, too: the map isn't taken away meanwhile.
		m := g.current.Load()
		if m == nil {
			m = g.makeMap()
		}
		if m != nil {
			return guardedCopy(m.data[pos:end], b)
		}
	}
	_, err := g.file.WriteAt(b, pos)
	return err
}

// grow allocates at least up to end: the file grows by as much as it has, within the bounds of the options, so that what is
// allocated in vain stays in proportion, and large segments don't ask often. On a disk that is nearly full it takes what is
// needed only.
func (g *segment) grow(end int64) error {
	growth := min(max(g.length, int64(g.storage.options.MinGrowth)), int64(g.storage.options.MaxGrowth))
	length := max(end, g.length+growth)
	length = min((length+pageSize-1)/pageSize*pageSize, g.capacity)
	err := g.file.Allocate(g.length, length-g.length)
	if err != nil && length > end {
		length = end
		err = g.file.Allocate(g.length, length-g.length)
	}
	if err == nil {
		g.length = length
	}
	return err
}

func (g *segment) View(pos, n int64) (storage.View, error) {
	if !g.file.Retain() {
		return nil, g.file.Error("view", storage.ErrClosed)
	}
	m := g.holdMap(n > 0 && n <= g.size.Load())
	if size := g.size.Load(); pos < 0 || n < 0 || pos > size || n > size-pos {
		if m != nil {
			m.release()
		}
		g.file.Release()
		return nil, g.file.Error("view", storage.ErrRange)
	}
	v := g.storage.views.Get().(*view)
	v.file, v.mapping, v.pos, v.n = g.file, m, pos, n
	return v, nil
}

// holdMap gives the segment's map, with the caller as a user, or nil if there is none. When wanted it is made. The caller
// must be a user of the file. The map is never shorter than the segment.
func (g *segment) holdMap(wanted bool) *mapping {
	if m := g.current.Load(); m != nil && m.retain() {
		return m
	}
	if wanted && g.makeMap() != nil {
		// Seal may have taken it away again: then this view does without.
		if m := g.current.Load(); m != nil && m.retain() {
			return m
		}
	}
	return nil
}

// makeMap maps the segment if it isn't, and gives nil when that can't be. The caller must be a user of the file, or hold
// write.
func (g *segment) makeMap() *mapping {
	g.remap.Lock()
	defer g.remap.Unlock()
	if m := g.current.Load(); m != nil {
		return m
	}
	if g.file.Closed() {
		return nil
	}
	length, writable := g.capacity, true
	if g.sealed.Load() {
		length, writable = g.size.Load(), false
	}
	if length == 0 {
		return nil
	}
	m, err := newMapping(g.file, length, writable, &g.storage.budget)
	if err != nil {
		return nil
	}
	g.current.Store(m)
	return m
}

// dropMap takes the segment's map away; views keep theirs.
func (g *segment) dropMap() {
	g.remap.Lock()
	defer g.remap.Unlock()
	if m := g.current.Swap(nil); m != nil {
		m.release()
	}
}

func (g *segment) ReadAt(b []byte, pos int64) (int, error) {
	if !g.file.Retain() {
		return 0, g.file.Error("read", storage.ErrClosed)
	}
	defer g.file.Release()
	if pos < 0 {
		return 0, g.file.Error("read", storage.ErrRange)
	}
	size := g.size.Load()
	if pos >= size {
		return 0, io.EOF
	}
	part := b[:min(int64(len(b)), size-pos)]
	n, err := g.get(part, pos)
	if err != nil {
		if g.size.Load() < pos+int64(len(part)) { // truncated meanwhile
			return int(min(max(g.size.Load()-pos, 0), int64(n))), io.EOF
		}
		return n, g.file.Error("read", err)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// get reads into b what the segment has, or had, at pos. The caller must be a user of the file.
func (g *segment) get(b []byte, pos int64) (int, error) {
	if int64(len(b)) < int64(g.storage.options.CopyBelow) {
		if m := g.holdMap(false); m != nil {
			defer m.release()
			return readMapped(b, m, pos)
		}
	}
	return readFile(b, g.file, pos)
}

func readMapped(b []byte, m *mapping, pos int64) (int, error) {
	if end := pos + int64(len(b)); end > int64(len(m.data)) {
		return 0, storage.ErrFault // truncated since the caller looked
	}
	if err := guardedCopy(b, m.data[pos:]); err != nil {
		return 0, err
	}
	return len(b), nil
}

func readFile(b []byte, f *segmentfile.File, pos int64) (int, error) {
	n, err := f.ReadAt(b, pos)
	if n == len(b) {
		return n, nil
	}
	if err == io.EOF {
		err = storage.ErrFault
	}
	return n, err
}

func (g *segment) Sync() error {
	if g.file.Retain() {
		defer g.file.Release()
		if m := g.holdMap(false); m != nil {
			defer m.release()
			if err := flushMap(m, g.size.Load()); err != nil {
				return g.file.Fail("sync", err)
			}
		}
	}
	return g.file.Sync()
}

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
	g.length, g.reserved = size, false
	return nil
}

func (g *segment) Seal() error {
	g.write.Lock()
	defer g.write.Unlock()
	if g.file.Closed() {
		return g.file.Error("seal", storage.ErrClosed)
	}
	if g.sealed.CompareAndSwap(false, true) {
		g.dropMap() // that of the whole capacity; who reads makes one that fits
	}
	return g.trim("seal")
}

// trim gives the file its true length. The caller holds write.
func (g *segment) trim(op string) error {
	if g.readOnly {
		return nil
	}
	size := g.size.Load()
	if g.length == size && !g.reserved {
		return nil
	}
	if err := g.file.Cut(size); err != nil {
		return g.file.Error(op, err)
	}
	g.length, g.reserved = size, false
	return nil
}

func (g *segment) Rename(path string) error { return g.file.Rename(path) }

func (g *segment) Remove() error {
	g.write.Lock()
	defer g.write.Unlock()
	err := g.file.Remove()
	g.dropMap()
	return err
}

func (g *segment) Close() error {
	g.write.Lock()
	defer g.write.Unlock()
	if g.file.Closed() {
		return nil
	}
	err := g.trim("close")
	g.file.Close()
	g.dropMap()
	return err
}
