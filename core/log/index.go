package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
)

// The widths of the entries of `.index` (int32 relative offset, int32 position) and `.timeindex` (int64 timestamp, int32
// relative offset), all big endian.
const (
	offsetWidth = 8
	timeWidth   = 12
)

const (
	// Of an index in its file only every fencedEntries-th entry is kept in memory, and only once somebody looked something
	// up: a lookup reads one block of that many entries.
	fencedEntries = 512
	// tailEntries are kept in memory behind the file; when there are more, the older half is written.
	tailEntries = 256
)

// errDamaged says that an index can't be what was written: it is to be rebuilt from the segment.
var errDamaged = errors.New("index is damaged")

// index is a file of fixed-width entries that rise from each to the next. Its end may be in memory only, until write or
// sync: an index can be rebuilt from its segment at any time, so that only a segment below the recovery point needs its
// index on disk. Of an empty segment there may be no file at all. No file is held open.
//
// mu is a leaf lock: nothing else is locked under it, but files are read.
type index struct {
	width int

	mu     sync.RWMutex
	path   string
	disk   int    // entries in the file
	tail   []byte // entries behind those
	fences []byte // entry 0, fencedEntries, 2*fencedEntries, … of the file
	fenced bool   // fences are loaded
	final  [timeWidth]byte
	dirty  bool // the file may not be on the device
	absent bool // there is no file yet: it is made by touch or write

	block atomic.Pointer[block] // the last one read
}

// newIndex gives an index without entries, of a file that is empty or, as it says then, absent.
func newIndex(path string, width int, absent bool) *index {
	return &index{path: path, width: width, fenced: true, absent: absent}
}

// openIndex opens an existing index and reads its last entry. errDamaged when the length is no multiple of the width;
// fs.ErrNotExist when there is none.
func openIndex(path string, width int) (*index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	x := &index{path: path, width: width}
	if st.Size()%int64(width) != 0 {
		return nil, fmt.Errorf("%w: %s has %d bytes, no multiple of %d", errDamaged, path, st.Size(), width)
	}
	if x.disk = int(st.Size() / int64(width)); x.disk > 0 {
		if _, err := f.ReadAt(x.final[:width], st.Size()-int64(width)); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	} else {
		x.fenced = true
	}
	return x, nil
}

// len is the number of entries.
func (x *index) len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.disk + len(x.tail)/x.width
}

// last gives the last entry.
func (x *index) last() (e [timeWidth]byte, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.final, x.disk+len(x.tail) > 0
}

// add puts an entry at the end. An error is that of writing older entries to the file; the entry was taken nevertheless.
func (x *index) add(entry []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tail = append(x.tail, entry[:x.width]...)
	copy(x.final[:], entry[:x.width])
	if len(x.tail) < tailEntries*x.width {
		return nil
	}
	return x.spill(tailEntries / 2)
}

// touch makes the file, if there is none.
func (x *index) touch() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.spill(0)
}

// spill moves the first n entries of the tail to the file. The caller holds mu.
func (x *index) spill(n int) error {
	if n == 0 && !x.absent {
		return nil
	}
	f, err := os.OpenFile(x.path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	x.absent = false
	if n == 0 {
		return f.Close() // nothing that could be lost
	}
	b := x.tail[:n*x.width]
	if _, err := f.WriteAt(b, int64(x.disk*x.width)); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if x.fenced {
		for i := range n {
			if (x.disk+i)%fencedEntries == 0 {
				x.fences = append(x.fences, b[i*x.width:(i+1)*x.width]...)
			}
		}
	}
	x.disk += n
	x.tail = x.tail[:copy(x.tail, x.tail[len(b):])]
	x.dirty = true
	return nil
}

// write puts all entries into the file, which is there then in any case, and gives the memory of the tail back.
func (x *index) write() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.spill(len(x.tail) / x.width); err != nil {
		return err
	}
	x.tail = nil
	return nil
}

// sync writes all entries and makes them durable.
func (x *index) sync() error {
	if err := x.write(); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.dirty {
		return nil
	}
	if err := syncFile(x.path); err != nil {
		return err
	}
	x.dirty = false
	return nil
}

// floor finds the last entry for which upTo is true; upTo must be true for a beginning of the entries and false for the
// rest.
func (x *index) floor(upTo func(e []byte) bool) (e [timeWidth]byte, ok bool, err error) {
	e, at, err := x.find(upTo)
	return e, at >= 0, err
}

// find is floor that also says which entry it is, -1 for none.
func (x *index) find(upTo func(e []byte) bool) (e [timeWidth]byte, at int, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.tail) > 0 && upTo(x.tail) {
		i := floorOf(x.tail, x.width, upTo)
		copy(e[:], x.tail[i*x.width:(i+1)*x.width])
		return e, x.disk + i, nil
	}
	if x.disk == 0 {
		return e, -1, nil
	}
	if !x.fenced {
		x.mu.RUnlock()
		err := x.load()
		x.mu.RLock()
		if err != nil {
			return e, -1, err
		}
	}
	if len(x.fences) == 0 || !upTo(x.fences) {
		return e, -1, nil
	}
	first := floorOf(x.fences, x.width, upTo) * fencedEntries
	b, err := x.read(first)
	if err != nil {
		return e, -1, err
	}
	if !upTo(b) {
		return e, -1, fmt.Errorf("%w: %s changed", errDamaged, x.path)
	}
	i := floorOf(b, x.width, upTo)
	copy(e[:], b[i*x.width:(i+1)*x.width])
	return e, first + i, nil
}

// block is one block of an index's file, from entry first on. It isn't changed any more.
type block struct {
	first   int
	entries []byte
}

// read gives the entries of the file's block that begins with entry first. The last block read is kept: who reads a log in
// order looks into the same one many times. The caller holds mu at least for reading.
func (x *index) read(first int) ([]byte, error) {
	n := min(fencedEntries, x.disk-first) * x.width
	if b := x.block.Load(); b != nil && b.first == first && len(b.entries) == n {
		return b.entries, nil
	}
	b := &block{first, make([]byte, n)}
	if err := readFile(x.path, b.entries, int64(first*x.width)); err != nil {
		return nil, err
	}
	x.block.Store(b)
	return b.entries, nil
}

// ceiling finds the first entry for which below is false; below is what floor's upTo is.
func (x *index) ceiling(below func(e []byte) bool) (e [timeWidth]byte, ok bool, err error) {
	_, at, err := x.find(below)
	if err != nil {
		return e, false, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch at++; {
	case at >= x.disk+len(x.tail)/x.width:
		return e, false, nil
	case at >= x.disk:
		copy(e[:x.width], x.tail[(at-x.disk)*x.width:])
		return e, true, nil
	}
	err = readFile(x.path, e[:x.width], int64(at*x.width))
	return e, err == nil, err
}

// floorOf gives the index of the last entry for which upTo is true; it is true for the first.
func floorOf(b []byte, width int, upTo func(e []byte) bool) int {
	lo, hi := 0, len(b)/width // upTo(lo), !upTo(hi)
	for hi-lo > 1 {
		mid := int(uint(lo+hi) / 2)
		if upTo(b[mid*width : (mid+1)*width]) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// load reads the file once, checks that its entries rise, and keeps the fences.
func (x *index) load() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fenced {
		return nil
	}
	f, err := os.Open(x.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		return err
	}
	defer f.Close()
	buf := make([]byte, fencedEntries*x.width)
	var fences []byte
	var before [timeWidth]byte
	for first := 0; first < x.disk; first += fencedEntries {
		b := buf[:min(fencedEntries, x.disk-first)*x.width]
		if _, err := f.ReadAt(b, int64(first*x.width)); err != nil {
			if err == io.EOF {
				err = errDamaged
			}
			return fmt.Errorf("read %s: %w", x.path, err)
		}
		fences = append(fences, b[:x.width]...)
		for i := 0; i < len(b); i += x.width {
			if first+i > 0 && !rises(before[:x.width], b[i:i+x.width]) {
				return fmt.Errorf("%w: %s does not rise at entry %d", errDamaged, x.path, first+i/x.width)
			}
			copy(before[:], b[i:i+x.width])
		}
	}
	x.fences, x.fenced = fences, true
	return nil
}

// rises reports whether b may follow a: both fields of an offset index rise; of a time index the timestamp rises and the
// offset doesn't fall.
func rises(a, b []byte) bool {
	if len(a) == offsetWidth {
		ao, ap := offsetEntry(a)
		bo, bp := offsetEntry(b)
		return bo > ao && bp > ap && ao >= 0 && ap >= 0
	}
	at, ao := timeEntry(a)
	bt, bo := timeEntry(b)
	return bt > at && bo >= ao && ao >= 0
}

// keep drops the entries behind the last one for which upTo is true.
func (x *index) keep(upTo func(e []byte) bool) error {
	if err := x.write(); err != nil {
		return err
	}
	e, at, err := x.find(upTo)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	n := at + 1
	if n == x.disk {
		return nil
	}
	if err := os.Truncate(x.path, int64(n*x.width)); err != nil {
		return err
	}
	x.disk, x.final, x.dirty = n, e, true
	x.block.Store(nil)
	if x.fenced {
		x.fences = x.fences[:(n+fencedEntries-1)/fencedEntries*x.width]
	}
	return nil
}

// replace makes the entries of b the whole content, durable before the old file is given up.
func (x *index) replace(b []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := replaceFile(x.path, b, false); err != nil {
		return err
	}
	x.tail, x.fences, x.fenced, x.dirty, x.absent = nil, nil, true, false, false
	x.block.Store(nil)
	x.disk = len(b) / x.width
	x.final = [timeWidth]byte{}
	if len(b) > 0 {
		copy(x.final[:], b[len(b)-x.width:])
	}
	for i := 0; i < x.disk; i += fencedEntries {
		x.fences = append(x.fences, b[i*x.width:(i+1)*x.width]...)
	}
	return nil
}

// reset empties the index. It does not wait for the device: it is for a segment that is checked anew after the next crash.
func (x *index) reset() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := os.WriteFile(x.path, nil, 0o644); err != nil {
		return err
	}
	x.block.Store(nil)
	x.disk, x.tail, x.fences, x.fenced, x.final, x.dirty, x.absent = 0, nil, nil, true, [timeWidth]byte{}, true, false
	return nil
}

// rename moves the file; nobody who looks something up sees it between its names.
func (x *index) rename(path string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := os.Rename(x.path, path); err != nil {
		return err
	}
	x.path = path
	return nil
}

func offsetEntry(e []byte) (relative, position int32) {
	return int32(binary.BigEndian.Uint32(e)), int32(binary.BigEndian.Uint32(e[4:]))
}

func putOffsetEntry(e []byte, relative, position int32) {
	binary.BigEndian.PutUint32(e, uint32(relative))
	binary.BigEndian.PutUint32(e[4:], uint32(position))
}

func timeEntry(e []byte) (timestamp int64, relative int32) {
	return int64(binary.BigEndian.Uint64(e)), int32(binary.BigEndian.Uint32(e[8:]))
}

func putTimeEntry(e []byte, timestamp int64, relative int32) {
	binary.BigEndian.PutUint64(e, uint64(timestamp))
	binary.BigEndian.PutUint32(e[8:], uint32(relative))
}
