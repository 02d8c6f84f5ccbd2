package inspect

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// The widths of index entries in bytes.
const (
	offsetWidth = 8
	timeWidth   = 12
	txnWidth    = 34
)

// OffsetEntry is an entry of a `.index` file.
type OffsetEntry struct {
	Offset   int64 `json:"offset"`
	Position int64 `json:"position"`
}

// TimeEntry is an entry of a `.timeindex` file.
type TimeEntry struct {
	Timestamp int64 `json:"timestamp"`
	Offset    int64 `json:"offset"`
}

// TxnEntry is an entry of a `.txnindex` file: an aborted transaction.
type TxnEntry struct {
	ProducerID       int64 `json:"producer_id"`
	FirstOffset      int64 `json:"first_offset"`
	LastOffset       int64 `json:"last_offset"` // of the marker
	LastStableOffset int64 `json:"last_stable_offset"`
}

// entries cuts preallocated zeros off the end, and says how many entries they are. A rest that is no entry is an error.
func entries(b []byte, width int) (used []byte, zeros int, err error) {
	if len(b)%width != 0 {
		return nil, 0, fmt.Errorf("%d bytes, no multiple of %d", len(b), width)
	}
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	n = (n + width - 1) / width * width
	return b[:n], (len(b) - n) / width, nil
}

// ReadOffsetIndex reads the entries of the `.index` file of the segment with that base offset. zeros counts the preallocated entries
// at its end.
func ReadOffsetIndex(b []byte, base int64) (out []OffsetEntry, zeros int, err error) {
	b, zeros, err = entries(b, offsetWidth)
	for ; len(b) > 0; b = b[offsetWidth:] {
		out = append(out, OffsetEntry{base + int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))})
	}
	return out, zeros, err
}

// ReadTimeIndex is ReadOffsetIndex for a `.timeindex` file.
func ReadTimeIndex(b []byte, base int64) (out []TimeEntry, zeros int, err error) {
	b, zeros, err = entries(b, timeWidth)
	for ; len(b) > 0; b = b[timeWidth:] {
		out = append(out, TimeEntry{int64(binary.BigEndian.Uint64(b)), base + int64(int32(binary.BigEndian.Uint32(b[8:])))})
	}
	return out, zeros, err
}

// ReadTxnIndex reads the entries of a `.txnindex` file. They must be of version 0.
func ReadTxnIndex(b []byte) ([]TxnEntry, error) {
	if len(b)%txnWidth != 0 {
		return nil, fmt.Errorf("%d bytes, no multiple of %d", len(b), txnWidth)
	}
	var out []TxnEntry
	be := binary.BigEndian
	for ; len(b) > 0; b = b[txnWidth:] {
		if v := be.Uint16(b); v != 0 {
			return out, fmt.Errorf("entry %d has version %d, want 0", len(out), v)
		}
		out = append(out, TxnEntry{int64(be.Uint64(b[2:])), int64(be.Uint64(b[10:])), int64(be.Uint64(b[18:])), int64(be.Uint64(b[26:]))})
	}
	return out, nil
}

// Producer is an entry of a `.snapshot` file: the last that a partition knows of an idempotent producer.
type Producer struct {
	ID               int64 `json:"producer_id"`
	Epoch            int16 `json:"producer_epoch"`
	LastSequence     int32 `json:"last_sequence"` // -1 for none
	LastOffset       int64 `json:"last_offset"`   // -1 for none
	OffsetDelta      int32 `json:"offset_delta"`
	Timestamp        int64 `json:"timestamp"`
	CoordinatorEpoch int32 `json:"coordinator_epoch"`
	TxnFirstOffset   int64 `json:"txn_first_offset"` // of the open transaction, -1 for none
}

// The shape of a snapshot: version, checksum and count, then entries.
const (
	snapshotHead  = 10
	snapshotWidth = 46
)

// unfinished says whether a snapshot ends before its last entry does.
func unfinished(b []byte) bool {
	return len(b) < snapshotHead || int64(len(b)-snapshotHead) < int64(int32(binary.BigEndian.Uint32(b[6:])))*snapshotWidth
}

// ReadSnapshot reads a `.snapshot` file of version 1, and checks its checksum.
func ReadSnapshot(b []byte) ([]Producer, error) {
	be := binary.BigEndian
	if len(b) < snapshotHead {
		return nil, fmt.Errorf("%d bytes, want at least %d", len(b), snapshotHead)
	}
	if v := be.Uint16(b); v != 1 {
		return nil, fmt.Errorf("version %d, want 1", v)
	}
	if want, got := be.Uint32(b[2:]), crc32.Checksum(b[6:], crc32.MakeTable(crc32.Castagnoli)); want != got {
		return nil, fmt.Errorf("checksum is %08x, the bytes have %08x", want, got)
	}
	if n := int64(int32(be.Uint32(b[6:]))); n*snapshotWidth != int64(len(b)-snapshotHead) {
		return nil, fmt.Errorf("%d producers in %d bytes", n, len(b))
	}
	var out []Producer
	for b = b[snapshotHead:]; len(b) > 0; b = b[snapshotWidth:] {
		out = append(out, Producer{
			ID: int64(be.Uint64(b)), Epoch: int16(be.Uint16(b[8:])), LastSequence: int32(be.Uint32(b[10:])), LastOffset: int64(be.Uint64(b[14:])),
			OffsetDelta: int32(be.Uint32(b[22:])), Timestamp: int64(be.Uint64(b[26:])), CoordinatorEpoch: int32(be.Uint32(b[34:])),
			TxnFirstOffset: int64(be.Uint64(b[38:])),
		})
	}
	return out, nil
}

// Epoch is a row of leader-epoch-checkpoint.
type Epoch struct {
	Epoch int32 `json:"leader_epoch"`
	Start int64 `json:"start_offset"`
}

// ReadEpochs reads leader-epoch-checkpoint. Both fields must rise from row to row.
func ReadEpochs(b []byte) ([]Epoch, error) {
	rows, err := checkpoint(b, 2)
	if err != nil {
		return nil, err
	}
	out := make([]Epoch, 0, len(rows))
	last := Epoch{-1, -1}
	for i, row := range rows {
		epoch, err1 := strconv.ParseInt(row[0], 10, 32)
		start, err2 := strconv.ParseInt(row[1], 10, 64)
		e := Epoch{int32(epoch), start}
		if err1 != nil || err2 != nil || e.Epoch <= last.Epoch || e.Start <= last.Start {
			return nil, fmt.Errorf("row %d: %q behind epoch %d from %d on", i+1, clip(strings.Join(row, " ")), last.Epoch, last.Start)
		}
		out = append(out, e)
		last = e
	}
	return out, nil
}

// Offset is a row of one of a log directory's checkpoint files.
type Offset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// Name is the name of the partition's directory.
func (o Offset) Name() string { return o.Topic + "-" + strconv.Itoa(int(o.Partition)) }

// ReadOffsets reads a checkpoint file of a log directory.
func ReadOffsets(b []byte) ([]Offset, error) {
	rows, err := checkpoint(b, 3)
	if err != nil {
		return nil, err
	}
	out := make([]Offset, 0, len(rows))
	seen := make(map[string]bool, len(rows))
	for i, row := range rows {
		p, err1 := strconv.ParseInt(row[1], 10, 32)
		offset, err2 := strconv.ParseInt(row[2], 10, 64)
		o := Offset{row[0], int32(p), offset}
		if err1 != nil || err2 != nil || p < 0 || offset < 0 || seen[o.Name()] {
			return nil, fmt.Errorf("row %d: %q", i+1, clip(strings.Join(row, " ")))
		}
		seen[o.Name()] = true
		out = append(out, o)
	}
	return out, nil
}

// checkpoint reads a line "0", a line with the number of rows, and the rows.
func checkpoint(b []byte, fields int) ([][]string, error) {
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) < 2 {
		return nil, errors.New("no version and count")
	}
	if v := strings.TrimSpace(lines[0]); v != "0" {
		return nil, fmt.Errorf("version %q, want 0", clip(v))
	}
	if n, err := strconv.Atoi(strings.TrimSpace(lines[1])); err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("counts %q rows and has %d", clip(lines[1]), len(lines)-2)
	}
	rows := make([][]string, len(lines)-2)
	for i, line := range lines[2:] {
		if rows[i] = strings.Fields(line); len(rows[i]) != fields {
			return nil, fmt.Errorf("row %d has %d fields, want %d", i+1, len(rows[i]), fields)
		}
	}
	return rows, nil
}

// ReadMetadata reads partition.metadata and gives the topic's id, as 22 characters of URL-safe base64.
func ReadMetadata(b []byte) (string, error) {
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) != 2 || strings.TrimSpace(lines[0]) != "version: 0" {
		return "", fmt.Errorf("%q, want \"version: 0\" and a topic_id", clip(string(b)))
	}
	id, ok := strings.CutPrefix(lines[1], "topic_id: ")
	id = strings.TrimSpace(id)
	if raw, err := base64.RawURLEncoding.DecodeString(id); !ok || err != nil || len(raw) != 16 {
		return "", fmt.Errorf("second line %q, want a topic_id of 22 characters", clip(lines[1]))
	}
	return id, nil
}
