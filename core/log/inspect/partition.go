package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/core/record"
)

// The names of files.
const (
	logSuffix      = ".log"
	offsetSuffix   = ".index"
	timeSuffix     = ".timeindex"
	txnSuffix      = ".txnindex"
	snapshotSuffix = ".snapshot"

	epochFile    = "leader-epoch-checkpoint"
	metadataFile = "partition.metadata"
)

// maxFile is the length of the largest file that is read whole: all but segments.
const maxFile = 1 << 30

// ReadFile reads a file that isn't a segment, and refuses one that is too long for that.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, more than such a file can have", path, info.Size())
	}
	return os.ReadFile(path)
}

// Type is what a file holds.
type Type int8

// The types of files that can be read.
const (
	Unknown     Type = iota
	Log              // OpenSegment
	OffsetIndex      // ReadOffsetIndex
	TimeIndex        // ReadTimeIndex
	TxnIndex         // ReadTxnIndex
	Snapshot         // ReadSnapshot
	Epochs           // ReadEpochs
	Metadata         // ReadMetadata
	Offsets          // ReadOffsets
)

// TypeOf says by its name what a file holds, also one that left its log or isn't in it yet (.deleted, .cleaned, .swap). base is the
// offset in its name, 0 when there is none.
func TypeOf(path string) (t Type, base int64) {
	name := filepath.Base(path)
	for _, suffix := range []string{".deleted", ".swap", ".cleaned"} {
		name = strings.TrimSuffix(name, suffix)
	}
	switch {
	case name == epochFile:
		return Epochs, 0
	case name == metadataFile:
		return Metadata, 0
	case IsCheckpoint(name):
		return Offsets, 0
	}
	for t, suffix := range map[Type]string{Log: logSuffix, OffsetIndex: offsetSuffix, TimeIndex: timeSuffix, TxnIndex: txnSuffix, Snapshot: snapshotSuffix} {
		if base, ok := offsetOf(name, suffix); ok {
			return t, base
		}
	}
	return Unknown, 0
}

// offsetOf reads the offset that a file's name begins with: 20 digits.
func offsetOf(name, suffix string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n >= 0
}

// known is what a log directory says of one of its partitions.
type known struct {
	stopped                        bool // its broker stopped in order
	recovery, start, high, cleaned int64
}

// verifier verifies one partition.
type verifier struct {
	*Report
	o     Options
	dir   string
	known known

	epochs     []Epoch
	next       int64 // the offset behind the last batch
	lastEpoch  int32
	incomplete bool // a fault may hide what comes behind it
}

func (v *verifier) path(name string) string { return filepath.Join(v.dir, name) }

// verify looks at all files of the partition.
func (v *verifier) verify() error {
	v.Partitions++
	list, err := os.ReadDir(v.dir)
	if err != nil {
		return err
	}
	var bases []int64
	var snapshots []string
	for _, e := range list {
		name := e.Name()
		if base, ok := offsetOf(name, logSuffix); ok {
			bases = append(bases, base)
			continue
		}
		for _, suffix := range []string{offsetSuffix, timeSuffix, txnSuffix} {
			if stem, ok := strings.CutSuffix(name, suffix); ok && !slices.ContainsFunc(list, func(e os.DirEntry) bool { return e.Name() == stem+logSuffix }) {
				v.harmless(v.path(name), -1, "there is no such segment")
			}
		}
		switch _, ok := offsetOf(name, snapshotSuffix); {
		case ok:
			snapshots = append(snapshots, name)
		case strings.HasSuffix(name, logSuffix):
			v.fault(v.path(name), -1, "the name of a segment has 20 digits")
		case strings.HasSuffix(name, ".swap"), strings.HasSuffix(name, ".cleaned"), strings.HasSuffix(name, ".tmp"):
			v.harmless(v.path(name), -1, "left by a replacement that is under way or was interrupted")
		}
	}
	if len(bases) == 0 {
		v.fault(v.dir, -1, "there is no segment")
		return nil
	}
	slices.Sort(bases)
	v.readEpochs()
	if b, err := ReadFile(v.path(metadataFile)); err == nil {
		if _, err := ReadMetadata(b); err != nil {
			v.fault(v.path(metadataFile), -1, "%s", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	v.lastEpoch = record.NoLeaderEpoch
	for i, base := range bases {
		last := i == len(bases)-1
		limit := int64(math.MaxInt64)
		if !last {
			limit = bases[i+1]
		}
		if err := v.segment(base, limit, last); err != nil {
			return err
		}
	}
	for _, name := range snapshots {
		if err := v.snapshot(name); err != nil {
			return err
		}
	}
	v.ends(bases[len(bases)-1])
	return nil
}

func (v *verifier) readEpochs() {
	b, err := ReadFile(v.path(epochFile))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		v.epochs, err = ReadEpochs(b)
	}
	if err != nil {
		v.fault(v.path(epochFile), -1, "%s", err)
	}
}

// snapshot reads a producer snapshot.
func (v *verifier) snapshot(name string) error {
	path := v.path(name)
	b, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	list, err := ReadSnapshot(b)
	switch {
	case err != nil && !v.known.stopped && unfinished(b):
		v.harmless(path, -1, "%d bytes: it is being written, or that was interrupted", len(b))
		return nil
	case err != nil:
		v.fault(path, -1, "%s", err)
		return nil
	}
	at, _ := offsetOf(name, snapshotSuffix)
	seen := map[int64]bool{}
	for i, p := range list {
		if p.ID < 0 || seen[p.ID] || p.LastOffset >= at || p.TxnFirstOffset >= at || p.OffsetDelta < 0 {
			v.fault(path, -1, "producer %d (number %d): last offset %d, delta %d, transaction from %d on, in a snapshot of offset %d", p.ID, i, p.LastOffset, p.OffsetDelta, p.TxnFirstOffset, at)
		}
		seen[p.ID] = true
	}
	if v.known.stopped && at > v.next && !v.incomplete {
		v.fault(path, -1, "the log ends before, at offset %d", v.next)
	}
	return nil
}

// ends compares the end of the log with what else speaks of it.
func (v *verifier) ends(lastBase int64) {
	if v.incomplete {
		return // that is told already
	}
	path := v.path(segmentName(lastBase))
	k := v.known
	switch {
	case k.stopped && k.recovery >= 0 && k.recovery != v.next:
		v.fault(path, -1, "the log ends at offset %d, but the broker stopped with all up to %d on the device (recovery-point-offset-checkpoint)", v.next, k.recovery)
	case k.recovery > v.next:
		v.fault(path, -1, "the log ends at offset %d, but all up to %d was on the device (recovery-point-offset-checkpoint)", v.next, k.recovery)
	}
	if !k.stopped {
		return
	}
	for _, other := range []struct {
		file, what string
		offset     int64
	}{{highFile, "its high watermark", k.high}, {startFile, "its start", k.start}, {cleanerFile, "where compaction came to", k.cleaned}} {
		if other.offset > v.next {
			v.fault(path, -1, "the log ends at offset %d, below %s, %d (%s)", v.next, other.what, other.offset, other.file)
		}
	}
	if n := len(v.epochs); n > 0 && v.epochs[n-1].Start > v.next {
		v.fault(v.path(epochFile), -1, "epoch %d begins at offset %d, but the log ends at %d", v.epochs[n-1].Epoch, v.epochs[n-1].Start, v.next)
	}
}

func segmentName(base int64) string { return fmt.Sprintf("%020d%s", base, logSuffix) }
