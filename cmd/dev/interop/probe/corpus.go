package probe

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// HeaderSum is the record header in which clients that know headers send the hex SHA-256 of the value.
const HeaderSum = "sha256"

// File is one text of the corpus: record number i of a topic has its name as key and its bytes as value.
type File struct {
	Name  string    // the record's key
	Path  string    // where the bytes are on this machine
	Sum   string    // hex SHA-256 of the bytes
	Time  time.Time // the record's timestamp, in whole milliseconds, later than that of the file before
	Value []byte
}

// Record is a record as a client library gave it, or is to send it.
type Record struct {
	Key, Value []byte
	Time       time.Time
	Offset     int64  // set on records read
	Sum        string // value of the header HeaderSum, "" when there is none
}

// Line is the file's line in the manifest: milliseconds, SHA-256, length, name and path, separated by tabs.
func (f File) Line() string {
	return fmt.Sprintf("%d\t%s\t%d\t%s\t%s\n", f.Time.UnixMilli(), f.Sum, len(f.Value), f.Name, f.Path)
}

// Record is what a client has to send for f.
func (f File) Record() Record {
	return Record{Key: []byte(f.Name), Value: f.Value, Time: f.Time, Sum: f.Sum}
}

// NewFile reads the text at path.
func NewFile(name, path string, at time.Time) (File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("corpus: %w", err)
	}
	sum := sha256.Sum256(b)
	return File{Name: name, Path: path, Sum: hex.EncodeToString(sum[:]), Time: at, Value: b}, nil
}

// LoadCorpus reads the manifest and all the texts that it names; a text that has changed since is an error.
func LoadCorpus(manifest string) ([]File, error) {
	b, err := os.ReadFile(manifest)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	var files []File
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		col := strings.Split(sc.Text(), "\t")
		if len(col) != 5 {
			return nil, fmt.Errorf("corpus: %s: %q does not have five columns", manifest, sc.Text())
		}
		ms, err := strconv.ParseInt(col[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("corpus: %s: %w", manifest, err)
		}
		f, err := NewFile(col[3], col[4], time.UnixMilli(ms))
		if err != nil {
			return nil, err
		}
		if f.Sum != col[1] {
			return nil, fmt.Errorf("corpus: %s has changed", f.Path)
		}
		files = append(files, f)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("corpus: %s: %w", manifest, err)
	}
	return files, nil
}

// Compare says how a record differs from the file that was sent, nil when it does not. A timestamp counts only when
// the writer chose it (checkTime); a header counts when it is there.
func Compare(f File, r Record, checkTime bool) error {
	switch {
	case string(r.Key) != f.Name:
		return fmt.Errorf("offset %d: key %.60q instead of %q", r.Offset, r.Key, f.Name)
	case !bytes.Equal(r.Value, f.Value):
		return fmt.Errorf("offset %d: value of %s differs at byte %d (%d bytes instead of %d)",
			r.Offset, f.Name, firstDifference(r.Value, f.Value), len(r.Value), len(f.Value))
	case r.Sum != "" && r.Sum != f.Sum:
		return fmt.Errorf("offset %d: header %s is %q instead of %q", r.Offset, HeaderSum, r.Sum, f.Sum)
	case checkTime && !r.Time.Equal(f.Time):
		return fmt.Errorf("offset %d: timestamp %d instead of %d", r.Offset, r.Time.UnixMilli(), f.Time.UnixMilli())
	}
	return nil
}

// CompareAll compares records[i] with files[first+i], offsets included: a topic of the corpus has no gaps.
func CompareAll(files []File, first int, records []Record, checkTime bool) error {
	if want := len(files) - first; len(records) != want {
		return fmt.Errorf("%d records instead of %d", len(records), want)
	}
	for i, r := range records {
		if r.Offset != int64(first+i) {
			return fmt.Errorf("record %d has offset %d", first+i, r.Offset)
		}
		if err := Compare(files[first+i], r, checkTime); err != nil {
			return err
		}
	}
	return nil
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
