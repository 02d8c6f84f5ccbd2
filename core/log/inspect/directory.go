package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Options say how thoroughly to verify.
type Options struct {
	// Records has all records decompressed and read, too.
	Records bool
	// Codecs decompresses; needed for Records.
	Codecs record.Codecs
	// RecordLimit is the number of bytes that a batch may decompress to.
	RecordLimit int
	// Exact has index entries name the last offset of the batch that they are about, as ours do.
	Exact bool
	// Patience is how long to wait, once for each log that may be in use, before what seems corrupt at its end is read again.
	Patience time.Duration
}

// The files of a log directory that are read.
const (
	cleanFile      = ".kafka_cleanshutdown"
	recoveryFile   = "recovery-point-offset-checkpoint"
	startFile      = "log-start-offset-checkpoint"
	highFile       = "replication-offset-checkpoint"
	cleanerFile    = "cleaner-offset-checkpoint"
	propertiesFile = "meta.properties"
)

// Place is what a directory is.
type Place int8

const (
	// Elsewhere is a directory that is neither of the others.
	Elsewhere Place = iota
	// Partition is the directory of a partition.
	Partition
	// LogDirectory is an entry of log.dirs.
	LogDirectory
)

// PlaceOf says what a directory is, by the files and directories in it.
func PlaceOf(dir string) (Place, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return Elsewhere, err
	}
	place := Elsewhere
	for _, e := range list {
		switch name := e.Name(); {
		case !e.IsDir() && (strings.HasSuffix(name, logSuffix) || name == epochFile || name == metadataFile):
			return Partition, nil
		case e.IsDir() && IsPartition(name), !e.IsDir() && (name == propertiesFile || name == cleanFile || IsCheckpoint(name)):
			place = LogDirectory
		}
	}
	return place, nil
}

// IsPartition says whether a directory of a log directory has the name of a partition's, also of one that is to be moved or was taken
// from this broker. Those of deleted partitions are none.
func IsPartition(name string) bool {
	return regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}-[0-9]{1,10}(\.[0-9a-f]{32}-(future|stray))?$`).MatchString(name)
}

// IsCheckpoint says whether a file is a log directory's checkpoint of offsets.
func IsCheckpoint(name string) bool {
	switch name {
	case recoveryFile, startFile, highFile, cleanerFile:
		return true
	}
	return false
}

// Verify verifies a log directory or the directory of one partition. What is wrong is in the report; an error says that something
// couldn't be read, or that dir is neither. The report has what was seen before.
func Verify(dir string, o Options) (*Report, error) {
	r := &Report{}
	place, err := PlaceOf(dir)
	if err != nil {
		return r, err
	}
	defer r.sort()
	switch place {
	case Partition:
		abs, err := filepath.Abs(dir)
		if err != nil {
			return r, err
		}
		// What its log directory says of it counts, if it is in one. What is wrong with that one's files isn't asked for.
		of, err := (&Report{}).context(filepath.Dir(abs))
		if err != nil {
			return r, err
		}
		return r, r.partition(dir, of(filepath.Base(abs)), o)
	case LogDirectory:
		return r, r.directory(dir, o)
	}
	return r, fmt.Errorf("%s is neither a log directory nor a partition's", dir)
}

func (r *Report) partition(dir string, k known, o Options) error {
	v := verifier{Report: r, o: o, dir: dir, known: k}
	return v.verify()
}

func (r *Report) directory(dir string, o Options) error {
	of, err := r.context(dir)
	if err != nil {
		return err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var unread []error
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		switch {
		case !e.IsDir(), strings.HasPrefix(e.Name(), "."), strings.HasSuffix(e.Name(), "-delete"):
		case e.Name() == "remote-log-index-cache", e.Name() == "lost+found":
		case !IsPartition(e.Name()):
			r.fault(path, -1, "is no directory of a partition: no broker starts with it here")
		default:
			if err := r.partition(path, of(e.Name()), o); err != nil && !(errors.Is(err, fs.ErrNotExist) && gone(path)) {
				unread = append(unread, err)
			}
		}
	}
	return errors.Join(unread...)
}

// gone says that a directory was removed or renamed meanwhile.
func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// context reads what a log directory says of its partitions.
func (r *Report) context(dir string) (func(name string) known, error) {
	stopped := !gone(filepath.Join(dir, cleanFile))
	files := map[string]map[string]int64{}
	for _, name := range []string{recoveryFile, startFile, highFile, cleanerFile} {
		path := filepath.Join(dir, name)
		b, err := ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rows, err := ReadOffsets(b)
		if err != nil {
			r.fault(path, -1, "%s", err)
		}
		files[name] = map[string]int64{}
		for _, row := range rows {
			files[name][row.Name()] = row.Offset
		}
	}
	get := func(file, name string) int64 {
		if offset, ok := files[file][name]; ok {
			return offset
		}
		return -1
	}
	return func(name string) known {
		return known{stopped: stopped, recovery: get(recoveryFile, name), start: get(startFile, name), high: get(highFile, name), cleaned: get(cleanerFile, name)}
	}, nil
}
