package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"sync"
)

// AbortedTxn is a transaction whose records a read_committed consumer has to drop.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// txnEntry is one entry of `.txnindex`.
type txnEntry struct {
	producerID, firstOffset, lastOffset, lastStable int64
}

// txnWidth is the width of an entry: int16 version 0, then the four fields of txnEntry.
const txnWidth = 34

// txnIndex holds a segment's aborted transactions, in the order of their markers. It is small and kept in memory whole once
// it was needed. mu is a leaf lock.
type txnIndex struct {
	mu      sync.Mutex
	path    string
	loaded  bool
	entries []txnEntry
	dirty   bool
}

func newTxnIndex(path string) *txnIndex { return &txnIndex{path: path} }

// load reads the file, if there is one. The caller holds mu.
func (x *txnIndex) load() error {
	if x.loaded {
		return nil
	}
	b, err := os.ReadFile(x.path)
	if errors.Is(err, fs.ErrNotExist) {
		x.loaded = true
		return nil
	}
	if err != nil {
		return err
	}
	if x.entries, err = parseTxns(b); err != nil {
		return fmt.Errorf("%s: %w", x.path, err)
	}
	x.loaded = true
	return nil
}

func parseTxns(b []byte) ([]txnEntry, error) {
	if len(b)%txnWidth != 0 {
		return nil, fmt.Errorf("%w: %d bytes, no multiple of %d", errDamaged, len(b), txnWidth)
	}
	out := make([]txnEntry, 0, len(b)/txnWidth)
	last := int64(-1)
	for ; len(b) > 0; b = b[txnWidth:] {
		if v := binary.BigEndian.Uint16(b); v != 0 {
			return nil, fmt.Errorf("%w: entry version %d", errDamaged, v)
		}
		e := txnEntry{
			producerID:  int64(binary.BigEndian.Uint64(b[2:])),
			firstOffset: int64(binary.BigEndian.Uint64(b[10:])),
			lastOffset:  int64(binary.BigEndian.Uint64(b[18:])),
			lastStable:  int64(binary.BigEndian.Uint64(b[26:])),
		}
		if e.lastOffset <= last || e.firstOffset < 0 || e.firstOffset > e.lastOffset {
			return nil, fmt.Errorf("%w: offsets of entry %d", errDamaged, len(out))
		}
		last = e.lastOffset
		out = append(out, e)
	}
	return out, nil
}

func appendTxn(b []byte, e txnEntry) []byte {
	b = binary.BigEndian.AppendUint16(b, 0)
	for _, v := range [...]int64{e.producerID, e.firstOffset, e.lastOffset, e.lastStable} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// add appends an entry, to the file as well.
func (x *txnIndex) add(e txnEntry) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.load(); err != nil {
		return err
	}
	f, err := os.OpenFile(x.path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(appendTxn(nil, e), int64(len(x.entries)*txnWidth))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	x.entries, x.dirty = append(x.entries, e), true
	return nil
}

// collect appends to out the transactions that overlap [from, to). done says that no later segment can hold another one.
func (x *txnIndex) collect(out []AbortedTxn, from, to int64) (all []AbortedTxn, done bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.load(); err != nil {
		return out, false, err
	}
	for _, e := range x.entries {
		if e.lastOffset >= from && e.firstOffset < to {
			out = append(out, AbortedTxn{e.producerID, e.firstOffset})
		}
		if e.lastStable >= to {
			return out, true, nil
		}
	}
	return out, false, nil
}

// cut removes the entries whose marker is at or above end.
func (x *txnIndex) cut(end int64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.load(); err != nil {
		return err
	}
	n := len(x.entries)
	for n > 0 && x.entries[n-1].lastOffset >= end {
		n--
	}
	if n == len(x.entries) {
		return nil
	}
	x.entries, x.dirty = x.entries[:n], true
	return os.Truncate(x.path, int64(n*txnWidth))
}

// replace makes entries the whole content. An empty index has no file.
func (x *txnIndex) replace(entries []txnEntry) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b []byte
	for _, e := range entries {
		b = appendTxn(b, e)
	}
	var err error
	if len(b) == 0 {
		if err = os.Remove(x.path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = replaceFile(x.path, b, false)
	}
	if err != nil {
		return err
	}
	x.entries, x.loaded, x.dirty = entries, true, false
	return nil
}

// sync makes the file durable.
func (x *txnIndex) sync() error {
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

// rename moves the file, if there is one; nobody who looks something up sees it between its names.
func (x *txnIndex) rename(path string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := os.Rename(x.path, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	x.path = path
	return nil
}

// all gives the entries whose transactions were ended at or behind an offset.
func (x *txnIndex) all(from int64) ([]txnEntry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.load(); err != nil {
		return nil, err
	}
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].lastOffset >= from })
	return slices.Clone(x.entries[i:]), nil
}
