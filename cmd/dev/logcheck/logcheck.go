// Package logcheck reads the files of a log directory whose broker has stopped cleanly, and says what doesn't fit together: the batches of
// the segments, and the offset and time indexes with them.
//
// It knows the format of the files (core/log/FORMAT.md), and nothing of the code that wrote them.
package logcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Found is what a directory has.
type Found struct{ Partitions, Segments, Batches, OffsetEntries, TimeEntries int }

// Directory checks all partitions of a log directory. The error joins everything that is wrong.
func Directory(dir string) (Found, error) {
	var f Found
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, err
	}
	var faults []error
	for _, e := range entries {
		if e.IsDir() && !strings.HasSuffix(e.Name(), "-delete") {
			f.Partitions++
			if err := f.partition(filepath.Join(dir, e.Name())); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", e.Name(), err))
			}
		}
	}
	return f, errors.Join(faults...)
}

func (f *Found) partition(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return errors.New("no segment")
	}
	slices.Sort(logs)
	var faults []error
	next := int64(0)
	for _, path := range logs {
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), ".log"), 10, 64)
		if err != nil {
			return err
		}
		if base < next {
			faults = append(faults, fmt.Errorf("segment %d begins before %d, the end of the one before it", base, next))
		}
		next, err = f.segment(path, base)
		if err != nil {
			faults = append(faults, fmt.Errorf("segment %d: %w", base, err))
		}
	}
	for _, kind := range []string{".index", ".timeindex"} {
		indexes, err := filepath.Glob(filepath.Join(dir, "*"+kind))
		if err != nil {
			return err
		}
		for _, path := range indexes {
			if !slices.Contains(logs, strings.TrimSuffix(path, kind)+".log") {
				faults = append(faults, fmt.Errorf("%s has no segment", filepath.Base(path)))
			}
		}
	}
	return errors.Join(faults...)
}

// segment checks one segment and returns the offset behind its last batch.
func (f *Found) segment(path string, base int64) (next int64, err error) {
	f.Segments++
	data, err := os.ReadFile(path)
	if err != nil {
		return base, err
	}
	var headers []record.Header
	starts := map[int64]int{} // position to index in headers
	next = base
	position := int64(0)
	for batch, err := range record.All(data) {
		if err != nil {
			return next, fmt.Errorf("at %d of %d bytes: %w", position, len(data), err)
		}
		h := batch.Header()
		if err := record.CheckCRC(batch); err != nil {
			return next, fmt.Errorf("at %d: %w", position, err)
		}
		if h.BaseOffset < next {
			return next, fmt.Errorf("at %d: offset %d where at least %d should be", position, h.BaseOffset, next)
		}
		starts[position] = len(headers)
		headers = append(headers, h)
		next = h.LastOffset() + 1
		position += int64(h.Size())
	}
	f.Batches += len(headers)
	stem := strings.TrimSuffix(path, ".log")
	return next, errors.Join(f.offsetIndex(stem+".index", base, headers, starts), f.timeIndex(stem+".timeindex", base, headers))
}

func (f *Found) offsetIndex(path string, base int64, headers []record.Header, starts map[int64]int) error {
	data, err := entries(path, 8)
	if err != nil {
		return err
	}
	last := int64(-1)
	for i := 0; i < len(data); i += 8 {
		f.OffsetEntries++
		offset := base + int64(binary.BigEndian.Uint32(data[i:]))
		position := int64(binary.BigEndian.Uint32(data[i+4:]))
		at, ok := starts[position]
		switch {
		case !ok:
			return fmt.Errorf("index entry %d: no batch begins at %d", i/8, position)
		case headers[at].LastOffset() != offset:
			return fmt.Errorf("index entry %d: offset %d, but the batch at %d ends with %d", i/8, offset, position, headers[at].LastOffset())
		case offset <= last:
			return fmt.Errorf("index entry %d: offset %d follows %d", i/8, offset, last)
		}
		last = offset
	}
	return nil
}

func (f *Found) timeIndex(path string, base int64, headers []record.Header) error {
	data, err := entries(path, 12)
	if err != nil {
		return err
	}
	at := 0
	largest, indexed := int64(-1), int64(-1)
	for i := 0; i < len(data); i += 12 {
		f.TimeEntries++
		timestamp := int64(binary.BigEndian.Uint64(data[i:]))
		offset := base + int64(binary.BigEndian.Uint32(data[i+8:]))
		for at < len(headers) && headers[at].LastOffset() <= offset {
			largest = max(largest, headers[at].MaxTimestamp)
			at++
		}
		switch {
		case at == 0 || headers[at-1].LastOffset() != offset:
			return fmt.Errorf("time index entry %d: no batch ends with offset %d", i/12, offset)
		case timestamp != largest:
			return fmt.Errorf("time index entry %d: timestamp %d, but the largest up to offset %d is %d", i/12, timestamp, offset, largest)
		case timestamp <= indexed:
			return fmt.Errorf("time index entry %d: timestamp %d follows %d", i/12, timestamp, indexed)
		}
		indexed = timestamp
	}
	for ; at < len(headers); at++ {
		largest = max(largest, headers[at].MaxTimestamp)
	}
	if indexed < largest {
		return fmt.Errorf("time index ends with %d, but there is a timestamp %d", indexed, largest)
	}
	return nil
}

// entries reads an index whose entries have a size.
func entries(path string, size int) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err == nil && len(data)%size != 0 {
		err = fmt.Errorf("%s has %d bytes, no multiple of %d", filepath.Base(path), len(data), size)
	}
	return data, err
}
