package standalone

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/election/state"
)

// formatName and formatVersion are in the first line of the file. FORMAT.md describes version 1.
const (
	formatName    = "barnabas-standalone"
	formatVersion = 1
)

// header is the first line of the file.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// Errors about the file. They are wrapped with its path and what to do.
var (
	errFormat  = errors.New("not a coordination file")
	errNewer   = errors.New("written by a newer Barnabas")
	errCorrupt = errors.New("coordination file is damaged")
	errInUse   = errors.New("in use by another process")
	errFailed  = errors.New("an earlier write of the coordination file failed; restart the broker when the disk is well")
)

// file is what a journal needs of an *os.File; tests put failing ones in its place.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// journal appends lines to the file. Its owner calls it from one goroutine at a time.
type journal struct {
	path     string
	file     file
	size     int64 // bytes of the file that are good
	appended int64 // bytes since the file was written as a whole
	failed   error // why nothing is written any more
}

// openJournal opens the file, or makes it, locks it, and reads it. It says how many bytes of an unfinished last line were
// cut off. A file that can't be read is left as it is.
func openJournal(path string) (j *journal, st *state.State, cut int64, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		j := &journal{path: path}
		if err := j.rewrite(state.New()); err != nil {
			return nil, nil, 0, err
		}
		return j, state.New(), 0, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := lockNamed(f, path); err != nil {
		return nil, nil, 0, err
	}
	st, good, err := decode(f)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, 0, err
	}
	if cut = info.Size() - good; cut > 0 {
		if err := f.Truncate(good); err != nil {
			return nil, nil, 0, err
		}
		if err := f.Sync(); err != nil {
			return nil, nil, 0, err
		}
	}
	return &journal{path: path, file: f, size: good, appended: good}, st, cut, nil
}

// lockNamed locks an open file, and makes sure that it still is the one with that name: a process that was rewriting the
// file may have put another in its place before it let go of this one.
func lockNamed(f *os.File, path string) error {
	if err := lock(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(path); err != nil || !os.SameFile(mine, named) {
		return fmt.Errorf("%s: %w", path, errInUse)
	}
	return nil
}

func checksum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// appendLine appends one line to b: eight hexadecimal digits of CRC-32C over the JSON, a blank, the JSON, a line feed.
func appendLine(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return b, err
	}
	b = fmt.Appendf(b, "%08x ", checksum(text))
	b = append(b, text...)
	return append(b, '\n'), nil
}

// parseLine gives the JSON of a line without its line feed.
func parseLine(line []byte) ([]byte, bool) {
	if len(line) < 9 || line[8] != ' ' {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(line[:8]), 16, 32)
	if err != nil || uint32(sum) != checksum(line[9:]) {
		return nil, false
	}
	return line[9:], true
}

// decode reads a file: the state that it leads to, and the length up to the end of the last good line.
//
// A bad line with nothing good behind it is the write that a crash interrupted: it was never acknowledged, and ends the
// file. One with a good line behind it is damage, which nobody may paper over.
func decode(r io.Reader) (st *state.State, good int64, err error) {
	st = state.New()
	in := bufio.NewReaderSize(r, 64<<10)
	bad := int64(-1) // where the first bad line begins
	for pos, number := int64(0), 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		whole := err == nil
		text, ok := []byte(nil), false
		if whole {
			text, ok = parseLine(line[:len(line)-1])
		}
		switch {
		case number == 1 && !ok:
			return nil, 0, fmt.Errorf("%w: its first line is not one", errFormat)
		case number == 1:
			if err := checkHeader(text); err != nil {
				return nil, 0, err
			}
			good = int64(len(line))
		case ok && bad >= 0:
			return nil, 0, fmt.Errorf("%w at byte %d: restore it from a copy; the logs beside it are not affected", errCorrupt, bad)
		case ok:
			if err := applyLine(st, text); err != nil {
				return nil, 0, fmt.Errorf("%w in line %d: %w", errCorrupt, number, err)
			}
			good = pos + int64(len(line))
		case len(line) > 0 && bad < 0:
			bad = pos
		}
		pos += int64(len(line))
		if !whole {
			return st, good, nil
		}
	}
}

func checkHeader(text []byte) error {
	var h header
	if err := json.Unmarshal(text, &h); err != nil || h.Format != formatName {
		return fmt.Errorf("%w: its first line says %q", errFormat, shorten(text))
	}
	if h.Version > formatVersion {
		return fmt.Errorf("%w: format version %d, this one reads up to %d; start the newer one", errNewer, h.Version, formatVersion)
	}
	if h.Version < 1 {
		return fmt.Errorf("%w: format version %d", errFormat, h.Version)
	}
	return nil
}

func applyLine(st *state.State, text []byte) error {
	var ops []state.Op
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // version 1 is complete: what it doesn't know would be lost by the next rewrite
	if err := d.Decode(&ops); err != nil {
		return err
	}
	for i := range ops {
		if err := st.Apply(&ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func shorten(text []byte) string {
	if len(text) > 60 {
		return string(text[:60]) + "…"
	}
	return string(text)
}

// append writes operations as one line and makes it durable. After an error nothing of it is in the file, or the journal
// has failed for good: when a sync failed, nobody knows what the disk holds.
func (j *journal) append(ops []state.Op) error {
	if j.failed != nil {
		return j.failed
	}
	line, err := appendLine(nil, ops)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(line); err != nil {
		if undo := j.file.Truncate(j.size); undo != nil {
			j.fail(undo)
		}
		return err
	}
	if err := j.file.Sync(); err != nil {
		j.fail(err)
		return err
	}
	j.size += int64(len(line))
	j.appended += int64(len(line))
	return nil
}

func (j *journal) fail(cause error) { j.failed = fmt.Errorf("%w (%w)", errFailed, cause) }

// compact rewrites the file without what is outdated in it. After an error the old file is still the one in use.
func (j *journal) compact(st *state.State) error {
	if j.failed != nil {
		return j.failed
	}
	j.appended = 0 // also after an error, so that it isn't tried at each write
	return j.rewrite(st)
}

// rewrite puts a new file with the whole state in place of the one there is: written beside it, synced, locked, renamed.
func (j *journal) rewrite(st *state.State) (err error) {
	tmp := j.path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if err := lockNamed(f, tmp); err != nil {
		f.Close() // another process is at it
		return err
	}
	defer func() {
		if err != nil && f != j.file {
			os.Remove(tmp)
			f.Close()
		}
	}()
	if err := f.Truncate(0); err != nil { // what an earlier crash left
		return err
	}
	size, err := encode(f, st)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(tmp, j.path); err != nil {
		return err
	}
	if j.file != nil {
		j.file.Close() // gives its lock back; the new file's is held already
	}
	j.file, j.size, j.appended = f, size, 0
	if err := syncDir(filepath.Dir(j.path)); err != nil {
		j.fail(err) // the new file is in use, but may not be there after a power cut
	}
	return j.failed
}

// encode writes a whole file and returns its length. Each operation is a line, so that the file can be read and compared.
func encode(w io.Writer, st *state.State) (int64, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	line, err := appendLine(nil, header{formatName, formatVersion})
	if err != nil {
		return 0, err
	}
	size := int64(len(line))
	_, err = out.Write(line)
	st.Dump(func(o state.Op) bool {
		if err == nil {
			line, err = appendLine(line[:0], []state.Op{o})
		}
		if err == nil {
			size += int64(len(line))
			_, err = out.Write(line)
		}
		return err == nil
	})
	if err == nil {
		err = out.Flush()
	}
	return size, err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
