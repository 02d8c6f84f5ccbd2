package log

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strconv"
)

// EpochStart says at which offset a leader epoch began.
type EpochStart struct {
	Epoch int32
	Start int64
}

// epochs is the content of leader-epoch-checkpoint (KIP-101): both fields strictly rise. It is guarded by the log's lock.
//
// An epoch counts from its first record on: one that begins at the end of the log isn't read back. So it is noted in memory,
// and written by settle before the first record under it is: a leader of thousands of idle partitions writes no file for it.
type epochs struct {
	path    string
	entries []EpochStart
	dirty   bool // the file may not be on the device
	pending bool // the file lacks entries
}

// openEpochs reads the file; a missing one is empty. errDamaged when it can't be read as what it is.
func openEpochs(path string) (*epochs, error) {
	e := &epochs{path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	if e.entries, err = parseEpochs(b); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// parseEpochs reads the lines "0", count, and "epoch startOffset" for each.
func parseEpochs(b []byte) ([]EpochStart, error) {
	rows, err := parseCheckpoint(b, 2)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	out := make([]EpochStart, 0, len(rows))
	for _, r := range rows {
		epoch, err1 := strconv.ParseInt(r[0], 10, 32)
		start, err2 := strconv.ParseInt(r[1], 10, 64)
		if err1 != nil || err2 != nil || epoch < 0 || start < 0 {
			return nil, fmt.Errorf("%w: epoch line %q", errDamaged, r)
		}
		// Kafka keeps what rises and drops the rest, in the order of the lines.
		out = assign(out, EpochStart{int32(epoch), start})
	}
	return out, nil
}

func formatEpochs(entries []EpochStart) []byte {
	b := fmt.Appendf(nil, "0\n%d\n", len(entries))
	for _, e := range entries {
		b = fmt.Appendf(b, "%d %d\n", e.Epoch, e.Start)
	}
	return b
}

// assign puts an entry at the end and removes those it contradicts.
func assign(entries []EpochStart, e EpochStart) []EpochStart {
	keep := len(entries)
	for keep > 0 && (entries[keep-1].Epoch >= e.Epoch || entries[keep-1].Start >= e.Start) {
		keep--
	}
	return append(entries[:keep], e)
}

// latest is the last epoch, -1 when there is none.
func (e *epochs) latest() int32 {
	if len(e.entries) == 0 {
		return -1
	}
	return e.entries[len(e.entries)-1].Epoch
}

// assign notes that epoch begins at start. An epoch that isn't newer than the latest changes nothing.
func (e *epochs) assign(epoch int32, start int64) {
	if epoch > e.latest() {
		e.entries, e.pending = assign(e.entries, EpochStart{epoch, start}), true
	}
}

// settle puts what was assigned into the file. It comes before the first record of an epoch.
func (e *epochs) settle() error {
	if !e.pending {
		return nil
	}
	return e.write()
}

// cutEnd removes the entries that start at or above end.
func (e *epochs) cutEnd(end int64) error {
	n := sort.Search(len(e.entries), func(i int) bool { return e.entries[i].Start >= end })
	if n == len(e.entries) {
		return nil
	}
	e.entries = e.entries[:n]
	return e.write()
}

// cutStart removes the entries that ended at or below start; the one that start belongs to then begins there.
func (e *epochs) cutStart(start int64) error {
	n := sort.Search(len(e.entries), func(i int) bool { return e.entries[i].Start > start }) - 1
	if n < 0 || e.entries[n].Start == start && n == 0 {
		return nil
	}
	e.entries = slices.Delete(e.entries, 0, n)
	e.entries[0].Start = start
	return e.write()
}

// endOf gives the largest epoch up to the one asked for, and where it ends: the start of the next one or the log's end. It
// is Kafka's endOffsetFor: (-1, -1) for an epoch above the latest or when nothing is known, and (epoch, first start) for one
// below the first.
func (e *epochs) endOf(epoch int32, end int64) (int32, int64) {
	if len(e.entries) == 0 || epoch > e.latest() || epoch == -1 {
		return -1, -1
	}
	if epoch == e.latest() {
		return epoch, end
	}
	next := sort.Search(len(e.entries), func(i int) bool { return e.entries[i].Epoch > epoch })
	if next == 0 {
		return epoch, e.entries[0].Start
	}
	return e.entries[next-1].Epoch, e.entries[next].Start
}

// at gives the epoch that an offset was written under, -1 when that isn't known.
func (e *epochs) at(offset int64) int32 {
	n := sort.Search(len(e.entries), func(i int) bool { return e.entries[i].Start > offset })
	if n == 0 {
		return -1
	}
	return e.entries[n-1].Epoch
}

// write replaces the file without waiting for the device: above the recovery point the entries can be found again in the
// batches' headers, and sync runs before the recovery point moves.
func (e *epochs) write() error {
	tmp := e.path + ".tmp"
	if err := os.WriteFile(tmp, formatEpochs(e.entries), 0o644); err != nil {
		return err
	}
	e.dirty = true
	if err := os.Rename(tmp, e.path); err != nil {
		return err
	}
	e.pending = false
	return nil
}

// sync makes the file durable.
func (e *epochs) sync() error {
	if !e.dirty {
		return nil
	}
	if err := syncFile(e.path); err != nil {
		return err
	}
	e.dirty = false
	return nil
}

// parseCheckpoint reads Kafka's checkpoint format: a line "0" for the version, a line with the number of rows, and that many
// lines of fields separated by white space. Anything else is an error.
func parseCheckpoint(b []byte, fields int) ([][]string, error) {
	lines := bytes.Split(b, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	if len(lines) < 2 {
		return nil, errors.New("checkpoint has no version and count")
	}
	if v := string(bytes.TrimSpace(lines[0])); v != "0" {
		return nil, fmt.Errorf("checkpoint version %q, want 0", clip(v))
	}
	count, err := strconv.Atoi(string(bytes.TrimSpace(lines[1])))
	if err != nil || count != len(lines)-2 {
		return nil, fmt.Errorf("checkpoint counts %q rows and has %d", clip(string(lines[1])), len(lines)-2)
	}
	rows := make([][]string, 0, count)
	for i, l := range lines[2:] {
		f := bytes.Fields(l)
		if len(f) != fields {
			return nil, fmt.Errorf("checkpoint row %d has %d fields, want %d", i+1, len(f), fields)
		}
		row := make([]string, fields)
		for j := range f {
			row[j] = string(f[j])
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// clip shortens what a hostile file may have put into an error.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
