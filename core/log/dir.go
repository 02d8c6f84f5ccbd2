package log

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// What may be wrong with a log directory. The errors say what to do about it; nothing in the directory was changed.
var (
	// ErrDirInUse says that another process, or another broker of this one, has the directory.
	ErrDirInUse = errors.New("log directory is in use")
	// ErrDirForeign says that the directory belongs to another broker or cluster.
	ErrDirForeign = errors.New("log directory belongs to somebody else")
	// ErrDirFormat says that the directory is of a format that this program doesn't know, or holds what it can't be asked
	// to keep.
	ErrDirFormat = errors.New("log directory can't be used")
)

// The files of a log directory.
const (
	lockFile     = ".lock"
	metaFile     = "meta.properties"
	cleanFile    = ".kafka_cleanshutdown"
	maxMetaBytes = 64 << 10
)

// The checkpoint files of a log directory.
const (
	RecoveryPoints = "recovery-point-offset-checkpoint"
	StartOffsets   = "log-start-offset-checkpoint"
	HighWatermarks = "replication-offset-checkpoint"
	CleanerOffsets = "cleaner-offset-checkpoint"
)

// Meta is the content of meta.properties.
type Meta struct {
	BrokerID  int32 // -1 when the file has none
	ClusterID string
}

// Dir is one log directory (an entry of log.dirs), locked for this broker. Methods may be called from any goroutine.
type Dir struct {
	path    string
	lock    *os.File
	meta    *Meta
	log     *slog.Logger
	offline atomic.Pointer[error]
}

// OpenDir makes the directory if there is none, locks it and reads meta.properties. ErrDirInUse when somebody else has it,
// ErrDirFormat when it is of another format; an error of the system when it can't be written to.
func OpenDir(path string, logger *slog.Logger) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, fmt.Errorf("log directory %s: %w", abs, err)
	}
	d := &Dir{path: abs, log: logger}
	d.lock, err = os.OpenFile(filepath.Join(abs, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return nil, fmt.Errorf("log directory %s can't be written to by this user: %w", abs, err)
		}
		return nil, fmt.Errorf("log directory %s: %w", abs, err)
	}
	if err := lockExclusive(d.lock); err != nil {
		d.lock.Close()
		if errors.Is(err, errLocked) {
			return nil, fmt.Errorf("%w: %s is locked by another broker, ours or Apache Kafka's: stop that one, or choose another directory in log.dirs", ErrDirInUse, abs)
		}
		return nil, fmt.Errorf("lock %s: %w", d.lock.Name(), err)
	}
	if err := d.readMeta(); err != nil {
		d.lock.Close()
		return nil, err
	}
	return d, nil
}

// Path is where the directory is, as an absolute path.
func (d *Dir) Path() string { return d.path }

// Meta is what meta.properties says; ok is false for a directory that nobody has claimed yet.
func (d *Dir) Meta() (m Meta, ok bool) {
	if d.meta == nil {
		return Meta{BrokerID: -1}, false
	}
	return *d.meta, true
}

// Err is nil, or why the directory is offline.
func (d *Dir) Err() error {
	if p := d.offline.Load(); p != nil {
		return *p
	}
	return nil
}

// Close gives the lock back.
func (d *Dir) Close() error { return d.lock.Close() }

func (d *Dir) readMeta() error {
	path := filepath.Join(d.path, metaFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := parseMeta(b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d.meta = &m
	return nil
}

// parseMeta reads meta.properties of version 0.
func parseMeta(b []byte) (Meta, error) {
	if len(b) > maxMetaBytes {
		return Meta{}, fmt.Errorf("%w: meta.properties has %d bytes", ErrDirFormat, len(b))
	}
	p := parseProperties(string(b))
	switch v, ok := p["version"]; {
	case !ok:
		return Meta{}, fmt.Errorf("%w: no version", ErrDirFormat)
	case v == "1":
		return Meta{}, fmt.Errorf("%w: version 1 is of a Kafka broker without ZooKeeper; such directories are not opened: give this broker a directory of its own", ErrDirFormat)
	case v != "0":
		return Meta{}, fmt.Errorf("%w: version %q is newer than this program, which knows version 0", ErrDirFormat, clip(v))
	}
	m := Meta{BrokerID: -1, ClusterID: p["cluster.id"]}
	if v, ok := p["broker.id"]; ok {
		id, err := strconv.ParseInt(v, 10, 32)
		if err != nil || id < -1 {
			return Meta{}, fmt.Errorf("%w: broker.id=%s", ErrDirFormat, clip(v))
		}
		m.BrokerID = int32(id)
	}
	return m, nil
}

func formatMeta(m Meta) []byte {
	return fmt.Appendf(nil, "version=0\nbroker.id=%d\ncluster.id=%s\n", m.BrokerID, m.ClusterID)
}

// parseProperties reads a Java properties file as far as such files need it: key=value lines, comments, escaped characters.
func parseProperties(s string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		at := strings.IndexAny(line, "=: \t")
		if at < 0 {
			out[line] = ""
			continue
		}
		value := strings.TrimLeft(line[at:], " \t")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = value[1:]
		}
		out[line[:at]] = strings.ReplaceAll(strings.TrimSpace(value), `\`, "")
	}
	return out
}

// Claim says whose directory this is: it writes meta.properties, or compares with what is there. A broker id or cluster id
// that the file doesn't have is added. ErrDirForeign when they differ.
func (d *Dir) Claim(m Meta) error {
	if have := d.meta; have != nil {
		if have.ClusterID != "" && have.ClusterID != m.ClusterID {
			return fmt.Errorf("%w: %s is of cluster %s, this broker is in cluster %s: point log.dirs elsewhere, or the broker to its cluster",
				ErrDirForeign, d.path, have.ClusterID, m.ClusterID)
		}
		if have.BrokerID >= 0 && have.BrokerID != m.BrokerID {
			return fmt.Errorf("%w: %s is of broker %d, this is broker %d: point log.dirs elsewhere, or set broker.id to %d",
				ErrDirForeign, d.path, have.BrokerID, m.BrokerID, have.BrokerID)
		}
	}
	if err := d.probe(); err != nil {
		return err
	}
	if d.meta != nil && *d.meta == m {
		return nil
	}
	if err := replaceFile(filepath.Join(d.path, metaFile), formatMeta(m), true); err != nil {
		return fmt.Errorf("claim log directory: %w", err)
	}
	d.meta = &m
	return nil
}

// probe finds out whether the directory takes a little more: better now than at the first record.
func (d *Dir) probe() error {
	path := filepath.Join(d.path, ".probe"+tmpSuffix)
	err := os.WriteFile(path, make([]byte, 4096), 0o644)
	if e := removeFile(path); err == nil {
		err = e
	}
	switch {
	case noSpace(err):
		return fmt.Errorf("log directory %s is full: free some space on its file system first: %w", d.path, err)
	case err != nil:
		return fmt.Errorf("log directory %s can't be written to: %w", d.path, err)
	}
	return nil
}

// cleanShutdown is the content of the clean-shutdown marker.
type cleanShutdown struct {
	Version     int   `json:"version"`
	BrokerEpoch int64 `json:"brokerEpoch"`
}

// takeMarker reports whether the directory was left in order, and removes the marker: whatever happens from now on, it isn't
// in order until it is left so again.
func (d *Dir) takeMarker() (bool, error) {
	err := os.Remove(filepath.Join(d.path, cleanFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncPath(d.path)
}

// leaveMarker says that the directory was left in order.
func (d *Dir) leaveMarker(brokerEpoch int64) error {
	b, err := json.Marshal(cleanShutdown{BrokerEpoch: brokerEpoch})
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(d.path, cleanFile), b, true)
}

// ReadCheckpoint reads one of the checkpoint files; a missing one is empty. A damaged one is empty, too, and said so in the
// log: Kafka does the same, since each of them can be done without.
func (d *Dir) ReadCheckpoint(name string) (map[TopicPartition]int64, error) {
	path := filepath.Join(d.path, name)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[TopicPartition]int64{}, nil
	}
	if err != nil {
		return nil, err
	}
	offsets, err := parseOffsets(b)
	if err != nil {
		d.log.Warn("checkpoint file is damaged, going on without it", "file", path, "err", err)
		return map[TopicPartition]int64{}, nil
	}
	return offsets, nil
}

func parseOffsets(b []byte) (map[TopicPartition]int64, error) {
	rows, err := parseCheckpoint(b, 3)
	if err != nil {
		return nil, err
	}
	out := make(map[TopicPartition]int64, len(rows))
	for _, r := range rows {
		p, err1 := strconv.ParseInt(r[1], 10, 32)
		offset, err2 := strconv.ParseInt(r[2], 10, 64)
		if err1 != nil || err2 != nil || p < 0 || offset < 0 || CheckTopic(r[0]) != nil {
			return nil, fmt.Errorf("checkpoint row %q", clip(strings.Join(r, " ")))
		}
		out[TopicPartition{r[0], int32(p)}] = offset
	}
	return out, nil
}

// WriteCheckpoint replaces one of the checkpoint files.
func (d *Dir) WriteCheckpoint(name string, offsets map[TopicPartition]int64) error {
	return replaceFile(filepath.Join(d.path, name), formatOffsets(offsets), true)
}

func formatOffsets(offsets map[TopicPartition]int64) []byte {
	b := fmt.Appendf(make([]byte, 0, 16+len(offsets)*32), "0\n%d\n", len(offsets))
	for tp, offset := range offsets {
		b = append(b, tp.Topic...)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(tp.Partition), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, offset, 10)
		b = append(b, '\n')
	}
	return b
}

// partitions lists the partitions of the directory. ErrDirFormat when there is a directory that isn't a partition's: Apache
// Kafka wouldn't start over it, and it may be somebody's data.
func (d *Dir) partitions() ([]TopicPartition, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var out []TopicPartition
	var strange []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		switch kind, tp := kindOf(e.Name()); kind {
		case partitionDir:
			out = append(out, tp)
		case strangeDir:
			strange = append(strange, clip(e.Name()))
		case keptDir:
			if strings.HasSuffix(e.Name(), "-future") || strings.HasSuffix(e.Name(), "-stray") {
				d.log.Warn("leaving a directory alone that is no replica of this broker", "dir", filepath.Join(d.path, e.Name()))
			}
		}
	}
	if len(strange) > 0 {
		return nil, fmt.Errorf("%w: %s holds %q, which is no directory of a partition: move it elsewhere", ErrDirFormat, d.path, strange)
	}
	return out, nil
}

// finishDeletions removes what was deleted and not removed yet.
func (d *Dir) finishDeletions() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if kind, _ := kindOf(e.Name()); kind == deletedDir && e.IsDir() {
			if err := os.RemoveAll(filepath.Join(d.path, e.Name())); err != nil {
				return fmt.Errorf("finish deletion: %w", err)
			}
		}
	}
	return nil
}
